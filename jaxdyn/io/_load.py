"""A robot from any file that one of the readers knows."""

import inspect
import json
import re
from typing import Any

from jaxdyn.io._dict import from_dict
from jaxdyn.io._files import content
from jaxdyn.io._xml import path_of
from jaxdyn.io.mjcf import load_mjcf
from jaxdyn.io.urdf import load_urdf
from jaxdyn.model import Model

_FORMATS = "<robot> (URDF), <mujoco> (MJCF) or { (a robot of jaxdyn in JSON)"
_BEFORE = re.compile(r"[\s\ufeff]+|<\?.*?\?>|<!--.*?-->|<![A-Z].*?>", re.DOTALL)
_START = re.compile(r"\{|<[A-Za-z_][^\s/>]*|.{0,20}")
_READERS = {"<robot": load_urdf, "<mujoco": load_mjcf, "{": from_dict}


def load(source: Any, **options: Any) -> Model:
    """The model of a robot in URDF, MJCF or JSON, as its content tells.

    ```python
    arm = jd.load("arm.urdf", floating_base=True)
    print(arm.report)
    ```

    Args:
        source: a path, the text itself, or an object with the path as `URDF_PATH` or
            `MJCF_PATH`, such as a module of the package robot_descriptions; of two
            paths the first counts. JSON is what `json.dumps(jd.to_dict(model))` writes.
        options: those of the reader: `load_urdf`, `load_mjcf` or `from_dict`.

    Raises:
        ValueError: the content is none of these, the reader has no such option, or the
            reader raises it.
    """
    places = [getattr(source, x, None) for x in ("URDF_PATH", "MJCF_PATH")]
    source = next(filter(None, places), source)
    path = path_of(source, "<{")
    where = "the text" if path is None else str(path)
    text = _decoded(content(path, where)) if path else source.lstrip("\ufeff")
    start = _start(text)
    if start not in _READERS:
        found = repr(start) if start else "nothing"
        raise ValueError(f"{where}: it starts with {found}, expected {_FORMATS}.")
    reader = _READERS[start]
    known = [*inspect.signature(reader).parameters][1:]
    unknown = ", ".join(repr(name) for name in options if name not in known)
    if unknown:
        raise ValueError(
            f"{where}: {reader.__name__} has no option {unknown}, expected some of: "
            f"{', '.join(known)}."
        )
    return reader(_parsed(text, where) if start == "{" else source, **options)


def _start(text: str) -> str:
    """The first tag, brace or characters after declarations and comments."""
    at = 0
    while before := _BEFORE.match(text, at):
        at = before.end()
    found = _START.match(text, at)
    return found[0] if found else ""


def _decoded(data: bytes) -> str:
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return data.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{where}, line {error.lineno}: {error.msg}: expected a robot in JSON."
        ) from None
    except (ValueError, RecursionError) as error:  # nested too deep
        raise ValueError(f"{where}: {error}: expected a robot in JSON.") from None
