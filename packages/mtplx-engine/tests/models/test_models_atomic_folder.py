"""A folder is absent or complete, whatever happens while it is made."""

import signal
import subprocess
import sys

import pytest

from mtplx_engine.models.atomic_folder import ensure_folder


def is_done(folder):
    return (folder / "done").exists()


def write_done(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("content")
    (folder / "done").write_text("")


def ensure(target, build=write_done, is_current=is_done):
    waits = []
    ensure_folder(target, build, is_current=is_current, on_wait=lambda: waits.append(1))
    return waits


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_it_is_built_once(tmp_path):
    target = tmp_path / "a" / "b" / "model"
    builds = []

    def build(folder):
        builds.append(folder)
        write_done(folder)

    ensure(target, build)
    ensure(target, build)
    assert len(builds) == 1
    assert (target / "sub" / "file").read_text() == "content"
    assert names(target.parent) == {"model", ".model.lock"}
    assert target.stat().st_mode & 0o777 == 0o755


def test_an_outdated_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("")
    ensure(target)
    assert names(target) == {"sub", "done"}
    assert names(tmp_path) == {"model", ".model.lock"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_a_failure_leaves_nothing_and_keeps_what_was_there(tmp_path, error):
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("")

    def build(folder):
        (folder / "half").write_text("")
        raise error

    with pytest.raises(error):
        ensure(target, build)
    assert names(target) == {"old"}
    assert names(tmp_path) == {"model", ".model.lock"}


def test_other_folders_are_left_alone(tmp_path):
    neighbour = tmp_path / ".model2.new-abc"
    neighbour.mkdir()
    ensure(tmp_path / "model")
    assert neighbour.is_dir()


CHILD = """
import sys, time
from pathlib import Path
from mtplx_engine.models.atomic_folder import ensure_folder

target = Path(sys.argv[1])

def build(folder):
    (folder / "half").write_text("")
    with (target.parent / "builds").open("a") as log:
        log.write("x")
    print("building", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "done").write_text("")

ensure_folder(
    target, build, is_current=lambda f: (f / "done").exists(),
    on_wait=lambda: print("waiting", flush=True),
)
"""


def start_child(target, seconds):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(target), str(seconds)], stdout=subprocess.PIPE, text=True
    )


def test_a_killed_builder_leaves_no_folder_and_the_next_one_cleans_up(tmp_path):
    target = tmp_path / "model"
    with start_child(target, 60) as child:
        assert child.stdout.readline() == "building\n"
        child.send_signal(signal.SIGKILL)
    assert not target.exists()
    assert any(name.startswith(".model.new-") for name in names(tmp_path))
    assert ensure(target) == []
    assert names(tmp_path) == {"model", ".model.lock", "builds"}


def test_an_interrupted_builder_cleans_up_itself(tmp_path):
    with start_child(tmp_path / "model", 60) as child:
        assert child.stdout.readline() == "building\n"
        child.send_signal(signal.SIGINT)
    assert child.returncode != 0
    assert names(tmp_path) == {".model.lock", "builds"}


def test_of_two_at_once_one_builds_and_the_other_waits_for_it(tmp_path):
    target = tmp_path / "model"
    with start_child(target, 1.0) as first:
        assert first.stdout.readline() == "building\n"
        with start_child(target, 1.0) as second:
            assert second.stdout.readline() == "waiting\n"
            assert second.stdout.read() == ""
    assert (first.returncode, second.returncode) == (0, 0)
    assert (tmp_path / "builds").read_text() == "x"
    assert is_done(target)


def test_a_waiter_takes_over_when_the_builder_dies(tmp_path):
    target = tmp_path / "model"
    with start_child(target, 60) as first:
        assert first.stdout.readline() == "building\n"
        with start_child(target, 0.0) as second:
            assert second.stdout.readline() == "waiting\n"
            first.kill()
            assert second.stdout.readline() == "building\n"
    assert second.returncode == 0
    assert is_done(target)
    assert names(tmp_path) == {"model", ".model.lock", "builds"}
