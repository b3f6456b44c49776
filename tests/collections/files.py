"""The robot files of installed packages."""

import importlib.util
import re
from pathlib import Path


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
