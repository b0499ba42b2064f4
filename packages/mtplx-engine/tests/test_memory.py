"""What is left of the memory, the limits set on it, and what a request took of it."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mtplx_engine.backend import mx

import pytest

from mtplx_engine.runtime import host_memory, memory
from mtplx_engine.runtime.memory import Limits, PeakMeter, apply_limits, available_bytes

MIB = 2**20


def test_the_meter_sees_what_passes_within_a_turn() -> None:
    meter = PeakMeter()
    assert meter.bytes == 0
    with meter:
        mx.eval(mx.sum(mx.ones((64, MIB // 4)) + mx.ones((64, MIB // 4))))
    assert meter.bytes >= 64 * MIB
    seen = meter.bytes
    with meter:
        mx.eval(mx.ones(8))
    assert meter.bytes == seen


def test_the_meter_does_not_see_the_turns_of_others() -> None:
    mine, other = PeakMeter(), PeakMeter()
    before = mx.get_active_memory()
    for _ in range(2):
        with mine:
            mx.eval(mx.ones((MIB // 4,)) + 1)
        with other:
            mx.eval(mx.sum(mx.ones((64, MIB // 4)) * 2))
    assert mine.bytes - before < 8 * MIB
    assert other.bytes - before >= 64 * MIB


def test_the_meter_counts_a_turn_that_fails() -> None:
    meter = PeakMeter()
    with suppress(ValueError), meter:
        mx.eval(mx.ones((8, MIB // 4)))
        raise ValueError
    assert meter.bytes >= 8 * MIB


# Limits of the host


def write(root: Path, name: str, text: object) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:    1000 kB\nCached: 5 kB")
    return tmp_path


def write_group(root: Path, folder: str, limit: object, usage: int, inactive: int) -> None:
    write(root, f"{folder}/memory.max", limit)
    write(root, f"{folder}/memory.current", usage)
    write(root, f"{folder}/memory.stat", f"anon 1\ninactive_file {inactive}\nactive_file 9")


def write_group_v1(root: Path, folder: str, limit: int, usage: int, inactive: int) -> None:
    write(root, f"{folder}/memory.limit_in_bytes", limit)
    write(root, f"{folder}/memory.usage_in_bytes", usage)
    stat = f"inactive_file 1\ntotal_inactive_file {inactive}"
    write(root, f"{folder}/memory.stat", stat)


def test_without_control_groups_the_system_decides(root: Path) -> None:
    assert host_memory.available(root) == 1000 * 1024


def test_nothing_is_known(tmp_path: Path) -> None:
    assert host_memory.available(tmp_path) is None


def test_the_smallest_group_on_the_way_up_decides(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/outer/inner")
    write_group(root, "sys/fs/cgroup/outer/inner", "max", 100, 0)
    write_group(root, "sys/fs/cgroup/outer", 50_000, 30_000, 7000)
    assert host_memory.available(root) == 27_000


def test_in_a_container_the_group_is_the_mount(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/docker/of-the-host")
    write_group(root, "sys/fs/cgroup", 40_000, 50_000, 0)
    assert host_memory.available(root) == 0


def test_version_1(root: Path) -> None:
    write(root, "proc/self/cgroup", "9:cpu,cpuacct:/a\n4:memory:/a\n1:name=systemd:/\n0::/")
    write_group_v1(root, "sys/fs/cgroup/memory/a", 60_000, 20_000, 5000)
    write_group_v1(root, "sys/fs/cgroup/memory", 9223372036854771712, 10**9, 0)
    assert host_memory.available(root) == 45_000


def test_a_limit_beyond_the_machine_limits_nothing(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/")
    write_group(root, "sys/fs/cgroup", 10**12, 0, 0)
    assert host_memory.available(root) == 1000 * 1024


# Limits of the device


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A GPU that is not there: what it says of itself, and what is set on it."""
    state: dict[str, Any] = {"info": {}, "metal": True, "active": 0, "cached": 0}
    monkeypatch.setattr(memory, "on_cpu", lambda: False)
    fake = SimpleNamespace(
        device_info=lambda: state["info"],
        metal=SimpleNamespace(is_available=lambda: state["metal"]),
        get_active_memory=lambda: state["active"],
        get_cache_memory=lambda: state["cached"],
        set_cache_limit=lambda limit: state.update(pool=limit),
        set_wired_limit=lambda limit: state.update(wired=limit),
    )
    monkeypatch.setattr(memory, "mx", fake)
    return state


def test_limits_on_metal(gpu: dict[str, Any]) -> None:
    gpu["info"] = {"max_recommended_working_set_size": 12 * 2**30, "memory_size": 16 * 2**30}
    assert apply_limits() == Limits(pool=768 * MIB, wired=12 * 2**30)
    assert (gpu["pool"], gpu["wired"]) == (768 * MIB, 12 * 2**30)
    gpu |= {"active": 5 * 2**30, "cached": 2**30}
    assert available_bytes() == 7 * 2**30
    gpu["active"] = 13 * 2**30
    assert available_bytes() == 0


def test_limits_on_cuda(gpu: dict[str, Any]) -> None:
    gpu |= {"metal": False, "active": 10 * 2**30, "cached": 2**30}
    gpu["info"] = {"total_memory": 140 * 2**30, "free_memory": 3 * 2**30}
    assert apply_limits() == Limits(pool=2**30)
    assert "wired" not in gpu
    assert available_bytes() == 4 * 2**30


def test_a_device_that_says_nothing(gpu: dict[str, Any]) -> None:
    assert apply_limits() == Limits()
    assert available_bytes() is None


def test_limits_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "on_cpu", lambda: True)
    assert apply_limits() == Limits()
    monkeypatch.setattr(host_memory, "available", lambda: 10**12)
    monkeypatch.setattr(memory.sys, "platform", "linux")
    assert available_bytes() == 10**12 + mx.get_cache_memory()
    monkeypatch.setattr(host_memory, "available", lambda: None)
    assert available_bytes() is None


def test_a_mac_without_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "on_cpu", lambda: True)
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    left = available_bytes()
    assert left is not None
    assert left > 0


def test_here_something_is_known() -> None:
    left = available_bytes()
    assert left is not None
    assert left > 0
