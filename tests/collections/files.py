"""The robot files of installed packages."""

import importlib.util
import re
import sys
from pathlib import Path

MJCF_PACKAGES = ("dm_control", "gymnasium", "gymnasium_robotics", "pybullet_data")
SHARED = "lib/python3*/site-packages/cmeel.prefix/share/example-robot-data"


def robot_files(package, ending, root):
    """Files of a package with a root element, but for parts that others include."""
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is missing: run `make test-robots`"
    folders = found.submodule_search_locations
    texts = {
        path: path.read_text(encoding="utf-8", errors="replace")
        for folder in folders
        for path in sorted(Path(folder).rglob(f"*.{ending}"))
    }
    included = {
        (path.parent / name).resolve()
        for path, text in texts.items()
        for name in re.findall(r'<include\s+file="([^"]*)"', text)
    }
    return [
        path
        for path, text in texts.items()
        if re.search(rf"<{root}[\s>]", text) and path.resolve() not in included
    ]


def mjcf_files():
    """The MJCF files of all packages."""
    return [x for name in MJCF_PACKAGES for x in robot_files(name, "xml", "mujoco")]


def urdf_files():
    """The URDF files of all packages, and the thousand random objects of pybullet."""
    pybullet = robot_files("pybullet_data", "urdf", "robot")
    objects = [path for path in pybullet if "random_urdfs" in path.parts]
    robots = sorted(Path(sys.prefix).glob(f"{SHARED}/robots/**/*.urdf"))
    return robots + [path for path in pybullet if path not in objects], objects


def short(path):
    """The last parts of a path, which name a test."""
    return "/".join(path.parts[-3:])
