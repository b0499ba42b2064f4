"""A model is found by folder, by the embedded default's name, or by its id on the hub."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from mtplx_engine.errors import ModelInvalid, ModelNotFound
from mtplx_engine.models import embedded
from mtplx_engine.models.locate import locate, locate_cached


def find(reference):
    return locate(reference, on_progress=lambda _: None)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    monkeypatch.setenv("MTPLX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MTPLX_INDEX_URL", "http://127.0.0.1:9/simple")


def test_a_folder_is_taken_as_it_is(folder):
    located = find(str(folder))
    assert (located.folder, located.id, located.head) == (folder, "my-model", None)
    assert located == locate_cached(str(folder))


@pytest.mark.parametrize("reference", [".", "../my-model", "~/my-model"])
def test_a_folder_may_be_named_in_any_way(folder, monkeypatch, reference):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert (find(reference).folder, find(reference).id) == (folder, "my-model")


@pytest.mark.parametrize("reference", ["/no/such/folder", "./x", "~/nothing", "a/b/c", "org/"])
def test_a_path_to_nothing_is_named_in_full(monkeypatch, tmp_path, reference):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ModelNotFound) as failure:
        find(reference)
    shown = reference.replace("~", str(tmp_path)).removeprefix("./").removesuffix("/")
    assert str(failure.value) == f"There is no folder {shown!r}."


def test_a_word_that_is_no_model_names_the_embedded_default():
    with pytest.raises(ModelNotFound, match=f"'qwen' is neither .* named {embedded.NAME}"):
        find("qwen")


def test_a_folder_without_config_is_no_model(tmp_path):
    with pytest.raises(ModelInvalid, match=r"config\.json is missing"):
        find(str(tmp_path))


def test_a_file_is_no_model(folder):
    with pytest.raises(ModelInvalid, match=r"config\.json is a file"):
        find(str(folder / "config.json"))


@pytest.mark.parametrize("reference", [None, embedded.NAME])
def test_the_embedded_default_needs_a_first_fetch(no_network, reference):
    with pytest.raises(ModelNotFound, match="could not be fetched"):
        find(reference)
    with pytest.raises(ModelNotFound, match="`mtplx serve` fetches it"):
        locate_cached(reference)


def test_the_embedded_default_once_fetched(no_network, published):
    home = embedded.home()
    made = embedded.ensure(
        home, on_progress=lambda _: None, source=published.source, index=published.index
    )
    unnamed, named = find(None), find(embedded.NAME)
    assert unnamed.folder == named.folder == made
    assert unnamed.id == named.id == embedded.NAME
    assert "because no model was named" in unnamed.why
    assert "which was named" in named.why
    assert unnamed.head.is_file()
    assert find(str(made)).head == unnamed.head
    assert locate_cached(None) == unnamed


HUB_FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"hello",
    "model.safetensors": b"weights" * 1000,
    "mtp.safetensors": b"head",
    "mtp/weights.safetensors": b"another head",
    "pytorch_model.bin": b"not wanted",
    "README.md": b"not wanted",
}
COMMIT = "a" * 40

# The hub's client reads its settings when it is imported, hence a process of its own.
CHILD = """
import json, os, sys
from mtplx_engine.errors import ModelError
from mtplx_engine.models.locate import locate, locate_cached

reports = []
def report(progress):
    reports.append([progress.stage, progress.done, progress.total])
    print("progress", flush=True)

try:
    if sys.argv[2] == "fetch":
        located = locate(sys.argv[1], on_progress=report)
    else:
        located = locate_cached(sys.argv[1])
except ModelError as error:
    print(json.dumps({"error": str(error), "kind": type(error).__name__}))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(130)
else:
    print(json.dumps({"folder": str(located.folder), "id": located.id, "reports": reports}))
"""


@pytest.fixture
def hub(site, make_page, tmp_path):
    """A hub with one model; returns a function that starts a child which asks for it."""
    tree = []
    for name, body in HUB_FILES.items():
        digest = hashlib.sha1(body).hexdigest()
        tree.append({"type": "file", "path": name, "size": len(body), "oid": digest})
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{digest}"'}
        site.pages[f"/org/tiny/resolve/{COMMIT}/{name}"] = make_page(body, headers=headers)
    info = {"id": "org/tiny", "sha": COMMIT, "siblings": []}
    api = "/api/models/org/tiny"
    for path, content in (("/revision/main", info), (f"/tree/{COMMIT}", tree)):
        site.pages[api + path] = make_page(json.dumps(content).encode(), "application/json")
    for path in ("/api/models/org/absent/revision/main",):
        missing = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
        site.pages[path] = make_page(b"{}", "application/json", 404, headers=missing)

    def start(reference, mode="fetch", **environment):
        settings = {"HF_ENDPOINT": site.url, "HF_HOME": str(tmp_path / "hf")} | environment
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, reference, mode],
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def outcome(child):
    output, errors = child.communicate(timeout=60)
    return json.loads(output.splitlines()[-1]), errors


def test_a_hub_model_is_downloaded_with_its_head(hub, site):
    found, errors = outcome(hub("org/tiny"))
    assert found["id"] == "org/tiny"
    there = {name for name in HUB_FILES if os.path.exists(os.path.join(found["folder"], name))}
    assert there == set(HUB_FILES) - {"pytorch_model.bin", "README.md"}
    stage, done, total = found["reports"][-1]
    assert stage == "fetch"
    assert done == total == sum(len(HUB_FILES[name]) for name in there)
    assert errors == ""
    asked = len(site.requests)
    cached, _ = outcome(hub("org/tiny", "cached"))
    assert cached["folder"] == found["folder"]
    assert len(site.requests) == asked


def test_a_hub_id_that_does_not_exist(hub):
    found, _ = outcome(hub("org/absent"))
    assert found["kind"] == "ModelNotFound"
    assert (
        "'org/absent' is neither a folder here nor a model on the Hugging Face hub"
        in (found["error"])
    )


@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}]
)
def test_without_the_hub_nothing_is_guessed(hub, environment):
    found, _ = outcome(hub("org/tiny", **environment))
    assert found["kind"] == "ModelNotFound"
    assert "hub cannot be reached" in found["error"]
    assert "\n" not in found["error"]


def test_a_model_in_the_cache_needs_no_hub(hub):
    first, _ = outcome(hub("org/tiny"))
    again, _ = outcome(hub("org/tiny", HF_HUB_OFFLINE="1"))
    assert again["folder"] == first["folder"]


def test_what_is_not_in_the_cache_is_said_with_the_cure(hub, site):
    found, _ = outcome(hub("org/tiny", "cached"))
    assert found["kind"] == "ModelNotFound"
    assert "`mtplx serve org/tiny` downloads it" in found["error"]
    assert site.requests == []


def test_ctrl_c_does_not_wait_for_a_slow_transfer(hub, site):
    path = f"/org/tiny/resolve/{COMMIT}/model.safetensors"
    site.pages[path].pause_s = 100
    with hub("org/tiny") as child:
        while not any(request[:2] == ("GET", path) for request in site.requests):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=50)
    assert output.splitlines()[-1] == "interrupted"
    assert child.returncode == 130
