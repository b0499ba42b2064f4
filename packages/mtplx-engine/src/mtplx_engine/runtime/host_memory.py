"""How much main memory this process may still take on Linux. Pure Python, reads small files.

The kernel's own estimate is `MemAvailable`. In a container it knows nothing of the container's
limit, which control groups enforce by killing the process, so the smaller of the two counts.
psutil would read the same line of `/proc/meminfo` but no control group, so it is no dependency.
"""

from pathlib import Path

_KIB = 1024


def available(root: Path = Path("/")) -> int | None:
    """Bytes that can be taken without swapping or being killed; None where nothing says so.

    Args:
        root: Where `proc` and `sys` are mounted.
    """
    known = [_system(root / "proc/meminfo"), *_groups(root)]
    return min((value for value in known if value is not None), default=None)


def _system(meminfo: Path) -> int | None:
    for line in _read(meminfo).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * _KIB
    return None


def _groups(root: Path) -> list[int | None]:
    """What each control group around this process leaves, in both versions of the interface."""
    left: list[int | None] = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            for folder in _with_parents(root / "sys/fs/cgroup", path):
                left.append(_left(folder, "memory.max", "memory.current", "inactive_file"))
        elif "memory" in controllers.split(","):
            for folder in _with_parents(root / "sys/fs/cgroup/memory", path):
                names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
                left.append(_left(folder, *names))
    return left


def _with_parents(mount: Path, path: str) -> list[Path]:
    """A group and those that contain it: each limits all groups below.

    Inside a container the path may be that of the host, which is not there; the container's own
    group is then the mount itself, which is always among the parents.
    """
    group = mount / path.lstrip("/")
    return [group, *(parent for parent in group.parents if parent.is_relative_to(mount))]


def _left(folder: Path, limit_name: str, usage_name: str, reclaimable_name: str) -> int | None:
    """Bytes until the group's limit; pages of files that nobody uses are given up before it."""
    limit, usage = _read(folder / limit_name).strip(), _read(folder / usage_name).strip()
    if not limit.isdigit() or not usage.isdigit():  # not there, or "max"
        return None
    reclaimable = 0
    for line in _read(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == reclaimable_name:
            reclaimable = int(value)
    return max(int(limit) - int(usage) + reclaimable, 0)


def _read(path: Path) -> str:
    """The contents of a file, or nothing where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
