"""Joints that no inertia resists have no acceleration."""

from typing import Any

import jax
from jax.core import Tracer

from jaxdyn.model import Model, singular_joints


def check_resisted(model: Model) -> None:
    """Raise a `ValueError` that names the joints that no inertia resists.

    It looks only where a reader has found such joints, which may have an armature by
    now, and not at tracers.
    """
    if not model.topology.has_unresisted:
        return
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(model)):
        return
    joints = singular_joints(model)
    if joints:
        raise ValueError(
            f"model {model.name!r}: no inertia resists joint "
            f"{', '.join(map(repr, joints))}, and accelerations are undefined: give "
            "the bodies that it moves mass or inertia, or the joint an armature."
        )


def settled_resisted(model: Model, *others: Any) -> dict[str, Any]:
    """The check, as `compiled` wants it."""
    check_resisted(model)
    return {}
