"""An MJCF source as one element tree: files included, ignored parts removed."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path

from jaxdyn.io._xml import path_of, read_xml
from jaxdyn.io.mjcf._schema import UNSUPPORTED


def read_source(source: str | os.PathLike[str], ignore: set[str]) -> ET.Element:
    """The root of an MJCF file or text, with the name of the model in it.

    Args:
        source: a path, or a text that starts with "<".
        ignore: tags, and attributes that are not supported, to leave out.
    """
    path = path_of(source)
    root = read_xml(source, "MJCF", ("mujoco",))
    root.attrib.setdefault("model", "robot" if path is None else path.stem)
    _expand(root, path, ignore)
    return root


def _expand(root: ET.Element, path: Path | None, ignore: set[str]) -> None:
    """Insert the included files and remove what is to be ignored, in place."""
    seen = set() if path is None else {path.resolve()}
    stack = [root]
    while stack:
        element = stack.pop()
        for key in ignore & set(UNSUPPORTED.get(element.tag, ())):
            element.attrib.pop(key, None)
        children, pending = [], list(element)
        while pending:
            child = pending.pop(0)
            if child.tag in ignore:
                continue
            if child.tag == "include":
                pending[:0] = _included(child, path, seen)
            else:
                children.append(child)
        element[:] = children
        stack.extend(children)


def _included(element: ET.Element, path: Path | None, seen: set[Path]) -> ET.Element:
    """The root of an included file, whose children take the place of `element`."""
    name = element.get("file")
    if not name:
        raise ValueError("<include> has no attribute 'file': add it, a path.")
    if path is None:
        raise ValueError(
            f"<include file={name!r}> stands in a text, which has no folder: save the "
            "text as a file and load that, or insert the included part."
        )
    file = path.parent / name
    if file.resolve() in seen:
        raise ValueError(
            f"<include file={name!r}>: the file is included twice: remove one of them."
        )
    seen.add(file.resolve())
    return read_xml(file, "MJCF", ("mujoco", "mujocoinclude"))
