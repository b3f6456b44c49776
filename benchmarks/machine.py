"""The machine and the versions behind the numbers."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("jaxdyn", "jax", "jaxlib", "numpy", "pin", "cmeel-eigen", "mujoco")
PACKAGES += ("mujoco-mjx", "jaxsim", "brax", "adam-robotics", "frax")


def machine() -> dict[str, Any]:
    """Processor, cores, memory and system."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1
        ),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of jaxdyn and its peers; "missing" where there is none."""
    return {name: _version(name) for name in PACKAGES}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source" if package == "jaxdyn" else "missing"
