"""Reference data computed by independent software; `data/README.md` says by which."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

DATA = Path(__file__).parent / "data"


def _as_users_do() -> dict[str, Any]:
    """Options of compilation as users have them, where conftest.py asks for speed."""
    level = {"xla_backend_optimization_level": 3}
    options = level | {"xla_cpu_use_fusion_emitters": True}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except RuntimeError:  # newer releases have no such option
        return level
    return options


AS_USERS_DO = _as_users_do()


@cache
def load(name: str) -> Any:
    """The content of a reference file."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def cases(*names: str) -> list[Any]:
    """All cases of some files: a file is one case, or has a list of them."""
    return [case for name in names for case in load(name).get("cases", [load(name)])]


def relative_error(value: Any, reference: Any) -> float:
    """The largest deviation relative to the largest reference entry.

    A reference below rounding error (a velocity that is zero) counts as one.
    """
    value, reference = np.asarray(value, float), np.asarray(reference, float)
    assert value.shape == reference.shape
    scale = np.abs(reference).max()
    return float(np.abs(value - reference).max() / (scale if scale > 1e-13 else 1.0))
