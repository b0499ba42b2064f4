"""Where a measurement was made."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("mlx", "mlx-lm", "numpy", "mtplx-engine")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, system, and how busy it was in the last minute."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that matter."""
    return {name: version(name) for name in PACKAGES}


def today() -> str:
    """The date, in UTC."""
    return datetime.now(UTC).date().isoformat()


def _processor() -> str:
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
