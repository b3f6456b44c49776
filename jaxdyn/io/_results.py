"""Folders of results: complete or not there at all."""

import json
import math
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxdyn.io._config import config_dict
from jaxdyn.io._dict import read_dict, to_dict
from jaxdyn.io._drafts import draft, sweep
from jaxdyn.io._npz import read_npz
from jaxdyn.io._visuals import add_stored_visuals, visual_arrays
from jaxdyn.model import Model

_MARK = ".jaxdyn"  # a folder with this file was written here and may be replaced
_REQUIRED = ("ts", "q", "qd")
_OPTIONAL = ("qdd", "tau", "f_ext", "loop_forces", "kinetic_energy", "potential_energy")
_TYPES = ("float32", "float64")
_PACKAGES = ("jaxdyn", "jax", "jaxlib", "diffrax", "equinox", "numpy")


@contextmanager
def new_results(folder: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """A temporary folder to write to, which becomes `folder` when all went well.

    It stands beside `folder`, is renamed at the end, and is removed if anything is
    raised, also by Ctrl-C; what a killed process has left there is removed by the next
    one. With `force` earlier results in `folder` are replaced, after the new ones are
    complete.

    Raises:
        ValueError: `folder` exists, without `force`; or it is not a folder of results.
    """
    target = Path(folder).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target)
    check_results(folder, force)
    with draft(target) as (new, old):
        yield new
        (new / _MARK).touch()
        check_results(folder, force)  # it may have come up meanwhile
        if target.exists():
            target.rename(old)
        new.rename(target)


def check_results(folder: str | os.PathLike[str], force: bool = False) -> None:
    """Raises the ValueError with which `new_results` would refuse this folder."""
    target = Path(folder).resolve()
    if not target.exists():
        return
    if not force:
        raise ValueError(
            f"{folder} exists: choose another folder with -o, or replace it with "
            "--force."
        )
    if not target.is_dir() or (any(target.iterdir()) and not (target / _MARK).exists()):
        raise ValueError(
            f"{folder} was not written by jaxdyn, so --force does not replace it: "
            "choose another folder with -o, or remove it yourself."
        )


def save_trajectory(
    folder: str | os.PathLike[str], model: Model, trajectory: Any, **more: Any
) -> Path:
    """Writes `trajectory.npz`: the arrays of a trajectory, the model and its visuals.

    Args:
        trajectory: has the arrays ts, q, qd, and may have qdd, tau, f_ext,
            loop_forces, kinetic_energy, potential_energy.
        more: further arrays, such as the motion that was wanted.
    """
    arrays = {name: np.asarray(getattr(trajectory, name)) for name in _REQUIRED}
    for name in _OPTIONAL:
        if getattr(trajectory, name, None) is not None:
            arrays[name] = np.asarray(getattr(trajectory, name))
    arrays |= {name: np.asarray(value) for name, value in more.items()}
    path = Path(folder) / "trajectory.npz"
    np.savez_compressed(
        path,
        allow_pickle=False,
        model=np.array(json.dumps(to_dict(model))),
        dtype=np.array(str(model.dtype)),
        **visual_arrays(model),
        **arrays,
    )
    return path


def load_trajectory(path: str | os.PathLike[str]) -> tuple[Model, dict[str, Any]]:
    """The model and the arrays of a result, from its folder or its `trajectory.npz`.

    Raises:
        ValueError: there is no such file, it was not written by `save_trajectory`, it
            is damaged or absurdly large (see `load_log`), or an array does not fit the
            model.
    """
    file = Path(path)
    file = file / "trajectory.npz" if file.is_dir() else file
    if not file.exists():
        raise ValueError(
            f"there is no {file}: expected a folder that `jaxdyn simulate` has "
            "written, or the trajectory.npz in it."
        )
    arrays = read_npz(file, str(file))
    model = _stored_model(file, arrays)
    _check_trajectory(file, model, arrays)
    return model, arrays


def _stored_model(file: Path, arrays: dict[str, np.ndarray]) -> Model:
    """The model among the arrays, whose texts are taken out."""
    try:
        text, dtype = arrays.pop("model").item(), arrays.pop("dtype").item()
        if dtype not in _TYPES:
            raise ValueError(f"dtype is {dtype!r}, expected 'float32' or 'float64'")
        known = jax.dtypes.canonicalize_dtype(dtype)  # float32 without jax_enable_x64
        model = read_dict(json.loads(text), dtype=known)
        add_stored_visuals(model, arrays)
        return model
    except KeyError as error:
        reason = f"it has no {error}"
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error).removesuffix(".")
    raise ValueError(
        f"{file} does not hold a model: {reason}: expected what save_trajectory writes."
    )


def _check_trajectory(file: Path, model: Model, arrays: dict[str, np.ndarray]) -> None:
    """Raise a `ValueError` unless the arrays are those of a motion of the model."""
    rows = arrays["ts"].shape[:1] if "ts" in arrays else ()
    width = dict.fromkeys(("qd", "qdd", "tau"), (model.nv,))
    width |= {"q": (model.nq,), "f_ext": (model.n, 6), "loop_forces": (model.nc,)}
    for name in (*_REQUIRED, *_OPTIONAL):
        array, shape = arrays.get(name), (*rows, *width.get(name, ()))
        if array is None and name in _OPTIONAL:
            continue
        if array is None or array.shape != shape or array.dtype.name not in _TYPES:
            found = "not there" if array is None else f"{array.dtype} of {array.shape}"
            raise ValueError(
                f"{file}: the array {name!r} is {found}, expected float32 or "
                f"float64 of {shape} for robot {model.name!r}."
            )


def save_summary(
    folder: str | os.PathLike[str],
    *,
    config: Any,
    dtype: str,
    statistics: dict[str, Any],
) -> Path:
    """Writes `summary.json`: versions, machine, settings and what came out."""
    summary = {
        "versions": {name: version(name) for name in _PACKAGES}
        | {"python": platform.python_version()},
        "platform": platform.platform(),
        "device": str(jax.devices()[0]),
        "dtype": dtype,
        "config": config_dict(config),
        "statistics": statistics,
    }
    path = Path(folder) / "summary.json"
    text = json.dumps(_plain(summary), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _plain(value: Any) -> Any:
    """Arrays as lists; JSON has no word for infinity or a missing number, so text."""
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
