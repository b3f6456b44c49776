"""The border of the traced code: shapes are checked, types made equal."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxdyn.model._model import Model
from jaxdyn.model.elements import POSITION_LEAVES, RATE_LEAVES

Nq: TypeAlias = Float[Array, " nq"]  # positions
Nv: TypeAlias = Float[Array, " nv"]  # velocities, accelerations or forces of joints
FExt: TypeAlias = Float[Array, "n 6"] | None  # external wrenches on all bodies

_POSITIONS = ("q", "q0", "q1", "qpos")
_RATES = ("qd", "qd0", "qdd", "d", "qvel", "tau")


def arguments(model: Model, **arrays: PyTree) -> tuple[PyTree, ...]:
    """The model and the arrays in their common floating-point type.

    Arrays called q have nq entries, velocities and the like nv, `f_ext` has six for
    each body, `taus` nv for each step, `loop_forces` one for each row of the loops,
    `ctrl` and `act` one for each control and activation of the actuators, and `point`
    and the fields of `base` have three.
    What is None stays None.

    Raises:
        ValueError: an array is a list, or it or a leaf of the model has the wrong
            shape.
    """
    check_leaves(model)
    for name, value in arrays.items():
        _check_arrays(name, value)
    values = {name: jax.tree.map(jnp.asarray, x) for name, x in arrays.items()}
    for name, value in values.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(value):
            _check(model, name, jax.tree_util.keystr(path), leaf)
    types = (x.dtype for x in jax.tree.leaves((model, values)))
    # NumPy's promotion: a mix is meant here, also where JAX is told to be strict
    dtype = np.result_type(*(t for t in types if jnp.issubdtype(t, jnp.floating)))

    def cast(x):
        return x if x.dtype == dtype else x.astype(dtype)

    return jax.tree.map(cast, (model, *values.values()))


def _check_arrays(name: str, value: PyTree) -> None:
    """Raise a `ValueError` for lists, which JAX takes for as many arrays."""
    is_list = lambda x: isinstance(x, list | tuple)  # noqa: E731
    for path, leaf in jax.tree_util.tree_leaves_with_path(value, is_leaf=is_list):
        if is_list(leaf):
            raise ValueError(
                f"{name}{jax.tree_util.keystr(path)} is a {type(leaf).__name__}, "
                "expected an array: pass jnp.array of it."
            )


def check_leaves(model: Model) -> None:
    """Raise a `ValueError` for a leaf whose shape does not fit the topology."""
    n, nq, nv, frames = model.n, model.nq, model.nv, len(model.frame_bodies)
    shapes = {
        **dict.fromkeys(("R", "inertia"), (n, 3, 3)),
        **dict.fromkeys(("p", "axis", "axis2", "com"), (n, 3)),
        **dict.fromkeys(("pitch", "mass"), (n,)),
        **dict.fromkeys(("armature", "damping", "friction", "stiffness"), (nv,)),
        **dict.fromkeys(("friction_speed", "effort", "velocity"), (nv,)),
        **dict.fromkeys(("rest", "lower", "upper"), (nq,)),
        **{"gravity": (3,), "frame_R": (frames, 3, 3), "frame_p": (frames, 3)},
    }
    rows = [(name, getattr(model, name), shape) for name, shape in shapes.items()]
    ends = {"R_a": (3, 3), "R_b": (3, 3), "p_a": (3,), "p_b": (3,)}
    for k, loop in enumerate(model.loops):
        rows += [(f"loops[{k}].{e}", getattr(loop, e), ends[e]) for e in ends]
    if model.couplings:
        x = model.couplings
        m, d = len(x.joints), x.is_geared.count(False)
        shapes = dict(linear=(m, x.width), inner=(m, x.width), polynomial=(m, 5))
        shapes |= dict.fromkeys((*RATE_LEAVES, *POSITION_LEAVES), (d,))
        rows += [(f"couplings.{key}", getattr(x, key), shapes[key]) for key in shapes]
    for name, leaf, shape in rows:
        found = jnp.shape(leaf)
        if found != shape:
            raise ValueError(
                f"leaf {name} of model {model.name!r} has shape {found}, expected "
                f"{shape}: use jax.vmap for a batch of models."
            )


def _check(model: Model, name: str, field: str, value: Array) -> None:
    if name in _POSITIONS:
        shape, meaning = (model.nq,), f" (nq = {model.nq})"
    elif name in _RATES:
        shape, meaning = (model.nv,), f" (nv = {model.nv})"
    elif name == "taus":
        steps = value.shape[0] if value.ndim else 1
        shape, meaning = (steps, model.nv), f" (steps, nv = {model.nv})"
    elif name == "loop_forces":
        shape, meaning = (model.nc,), f" (nc = {model.nc})"
    elif name in ("ctrl", "act"):
        shape, meaning = (getattr(model.actuators, f"n_{name}"),), ""
    else:
        shape, meaning = {"f_ext": (model.n, 6), "point": (3,), "base": (3,)}[name], ""
    if value.shape != shape:
        raise ValueError(
            f"{name}{field} has shape {value.shape}, expected {shape} for model "
            f"{model.name!r}{meaning}: functions take one state; use jax.vmap for many."
        )
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise ValueError(f"{name}{field} is complex, expected real numbers.")
