"""MuJoCo's own compiler; its errors, warnings and missing files in our words."""

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from jaxdyn.io._files import content
from jaxdyn.io._xml import path_of
from jaxdyn.io.mjcf._mujoco import mujoco
from jaxdyn.io.mjcf._principal import make_possible
from jaxdyn.model import Note

_TAG = re.compile(r"<!--.*?-->|<([A-Za-z_][^\s/>]*)", re.DOTALL)
_NOT_FOUND = re.compile(r"(?:opening|not found)[^']*'([^']*)'")
_LINE = re.compile(r"\bline(?: number=)? ?([1-9]\d*)", re.IGNORECASE)
_UNNAMED = "MuJoCo Model"  # MuJoCo's name of a model that has none
_LOCK = threading.Lock()  # MuJoCo has one handler of warnings
_TETRAHEDRON = (
    [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1],
    [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3],
)


def compiled(
    source: str | os.PathLike[str], inertia: str = "as given"
) -> tuple[Any, str, list[Note]]:
    """The `mujoco.MjModel` of a file or text, its name, and what was repaired.

    Inertias that no body has are replaced if `inertia` is "nearest"; MuJoCo refuses
    them else.

    Raises:
        ValueError: the source cannot be read or compiled; it says where and why.
    """
    path = path_of(source)
    where = "MJCF text" if path is None else str(path)
    if path is None:
        text = str(source).replace("\ufeff", "", 1)
    else:
        text = content(path, where).decode(errors="replace")
    root = next(filter(None, _TAG.findall(text)), None)
    if root != "mujoco":
        raise ValueError(
            f"{where}: the root element is <{root}>, expected <mujoco>: give a source "
            "in MJCF."
        )
    if path is not None and path.suffix.lower() == ".xml":
        parse = partial(mujoco().MjSpec.from_file, str(path))
    else:
        parse = partial(_from_text, text, "" if path is None else str(path.parent))
    missing: dict[str, list[str]] = {}
    doubts: list[Note] = []
    if inertia == "nearest":
        parse = partial(_possible, parse, doubts)
    with _quiet() as heard:
        try:
            mj_model, name = _repaired(parse, missing)
        except _errors() as error:
            reason = ", ".join(str(error).split("\n")).strip(", ")
            line = _LINE.search(reason)
            at = f"{where}, line {line[1]}" if line else where
            way = "" if "A + B" not in reason else ", or load it with inertia='nearest'"
            raise ValueError(f"{at}: {reason}: correct the file{way}.") from None
    if any(missing.values()):
        pairs = (f"{file!r} (body {', '.join(x)})" for file, x in missing.items() if x)
        raise ValueError(
            f"{where}: files are missing that bodies take their inertia from: "
            f"{', '.join(pairs)}: put them there, or give the bodies an <inertial>."
        )
    notes = [Note("warning", "compiler", " ".join(text.split())) for text in heard]
    notes += doubts
    if missing:
        first = [file.rsplit("/", 1)[-1] for file in list(missing)[:3]]
        place = f"{len(missing)} missing: {', '.join(first)}"
        notes.append(Note("file", place, "left out: no inertia comes from them"))
    unnamed = "robot" if path is None else path.stem
    return mj_model, unnamed if name in ("", _UNNAMED) else name, notes


def _errors() -> tuple[type[Exception], ...]:
    """What MuJoCo raises for a file that it cannot compile."""
    own = mujoco().FatalError, mujoco().UnexpectedError
    return ValueError, TypeError, RuntimeError, *own


def _from_text(text: str, folder: str) -> Any:
    """The spec of a text whose assets are in a folder; MuJoCo opens *.xml alone."""
    spec = mujoco().MjSpec.from_string(text)
    spec.modelfiledir = folder
    return spec


def _possible(parse: Callable[[], Any], notes: list[Note]) -> Any:
    """The spec with possible inertias, and notes on those that were not."""
    spec = parse()
    notes[:] = make_possible(spec)
    return spec


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collect MuJoCo's warnings, which are else printed and written to a log file."""
    heard: list[str] = []
    with _LOCK, warnings.catch_warnings(record=True) as caught:
        before = mujoco().get_mju_user_warning()
        warnings.simplefilter("always")
        mujoco().set_mju_user_warning(heard.append)
        try:
            yield heard
        finally:
            mujoco().set_mju_user_warning(before)
    heard += [str(warning.message) for warning in caught]


def _repaired(
    parse: Callable[[], Any], missing: dict[str, list[str]]
) -> tuple[Any, str]:
    """The compiled model and its name, with placeholders for missing files.

    Each missing file is added to `missing`, with the names of the bodies that take
    their inertia from it.
    """
    while True:
        spec = parse()  # anew: a spec that failed to compile cannot be asked
        for file in missing:
            assets = _assets(spec, file)
            missing[file] = [x for asset in assets for x in _replace(spec, asset)]
        try:
            return spec.compile(), spec.modelname
        except ValueError as error:
            found = _NOT_FOUND.search(str(error))
            if found is None or found[1] in missing or not _assets(parse(), found[1]):
                raise
            missing[found[1]] = []


def _assets(spec: Any, file: str) -> list[Any]:
    """The assets that are read from a file, which MuJoCo names by its whole path."""
    kinds = spec.meshes, spec.hfields, spec.skins, spec.textures
    tails = [
        (asset, name.replace("\\", "/"))
        for kind in kinds
        for asset in kind
        for name in (asset.file, *getattr(asset, "cubefiles", ()))
        if name
    ]
    whole = [asset for asset, tail in tails if f"/{file}".endswith(f"/{tail}")]
    last = file.rsplit("/", 1)[-1]
    return whole or [x for x, tail in tails if tail.rsplit("/", 1)[-1] == last]


def _replace(spec: Any, asset: Any) -> list[str]:
    """Make an asset need no file; the bodies whose inertia depends on it."""
    bodies: list[str] = []
    if asset in list(spec.skins):
        spec.delete(asset)
    elif asset in list(spec.textures):
        asset.file, asset.width, asset.height = "", 1, 6
        for k in range(len(asset.cubefiles)):
            asset.cubefiles[k] = ""
        asset.builtin = mujoco().mjtBuiltin.mjBUILTIN_FLAT
    elif asset in list(spec.hfields):
        asset.file, asset.nrow, asset.ncol, asset.userdata = "", 2, 2, [0.0] * 4
    else:
        asset.file = ""
        asset.uservert, asset.userface = _TETRAHEDRON
        for body, moves in _tree(spec.worldbody):
            for geom in body.geoms:
                if geom.meshname == asset.name:
                    geom.rgba = [0.0] * 4  # nothing to see
                    if moves and _weighs(spec, body, geom):
                        bodies.append(body.name or f"body_{body.id}")
                    else:
                        geom.mass = 0.0
    return bodies


def _tree(world: Any) -> Iterator[tuple[Any, bool]]:
    """All bodies, and whether joints move them."""
    pending = [(world, False)]
    while pending:
        body, moves = pending.pop()
        yield body, moves
        pending += [(child, moves or len(child.joints) > 0) for child in body.bodies]


def _weighs(spec: Any, body: Any, geom: Any) -> bool:
    """Whether a geom gives its body mass."""
    rule = int(
        spec.compiler.inertiafromgeom
    )  # 0 never, 1 always, 2 where none is given
    first, last = spec.compiler.inertiagrouprange
    counts = rule == 1 or (rule == 2 and not body.explicitinertial)
    massless = geom.mass == 0 or (geom.mass != geom.mass and geom.density == 0)
    return counts and not massless and bool(first <= geom.group <= last)
