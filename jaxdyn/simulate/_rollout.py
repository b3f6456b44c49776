"""Simulation with a fixed step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics import check_resisted
from jaxdyn.model import FExt, Model, Nq, Nv, arguments, is_index
from jaxdyn.program import alone, compiled
from jaxdyn.simulate._drift import check_closed, closed
from jaxdyn.simulate._equations import check_method, control_size
from jaxdyn.simulate._integrators import INTEGRATORS, Drive
from jaxdyn.simulate._signals import Frozen, frozen

Length = Float[Array, "..."] | float  # of a step
States = tuple[Float[Array, "times nq"], Float[Array, "times nv"]]
OPTIONS = ("integrator", "method", "loop_method", "actuated")


def _settled(model: Model, *values: Any) -> dict[str, Any]:
    """The options of a step checked."""
    integrator, method, loop_method, actuated = values[-4:]
    if integrator not in INTEGRATORS:
        raise ValueError(
            f"integrator is {integrator!r}, expected one of: {', '.join(INTEGRATORS)}."
        )
    if model.loops and integrator == "implicit_midpoint":
        raise ValueError(
            f"integrator is {integrator!r} for model {model.name!r} with loops, "
            "expected 'implicit', 'semi_implicit_euler' or 'rk4'."
        )
    control_size(model, actuated)
    check_method(method, loop_method, model)
    check_resisted(model)
    return {"actuated": bool(actuated)}


@compiled(*OPTIONS, settle=_settled)
def step(
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Float[Array, " controls"],
    dt: Length,
    *,
    f_ext: FExt = None,
    base: Base = None,
    integrator: str = "implicit",
    method: str = "denoc",
    loop_method: str = "range_space",
    actuated: bool = False,
) -> tuple[Nq, Nv]:
    """The state after one step of length `dt`, during which the inputs do not change.

    Quaternions stay of unit length. Loops of the model, closed before, are closed
    afterwards: steps end with `project_configuration` and `project_velocity`.

    Args:
        tau: the joint forces.
        f_ext, base, method: as in `forward_dynamics`; loop_method: the method of
            `constrained_dynamics`, for a model with loops.
        integrator: "implicit" and "semi_implicit_euler" are of first order: qd, then q
            with the new qd. "implicit" takes springs, damping, friction, force elements
            and servos at the end of the step, so that it is stable however stiff these
            are; without any of them both are the same. "rk4" is the classical one of
            fourth order. "implicit_midpoint" is of second order and symmetric in time,
            so that the energy of a free motion wavers and does not drift; for models
            without loops. Its equations are solved by Newton's method; where that fails
            the state is NaN from there on.
        actuated: whether `tau` are controls of the model's actuators, see `actuate`.

    Raises:
        ValueError: wrong shapes, an integrator that is not known or not for loops.
    """
    named = {"ctrl" if actuated else "tau": tau}
    given = arguments(model, q=q, qd=qd, **named, f_ext=f_ext, base=base)
    model, q, qd, tau, f_ext, base = given
    if jnp.shape(dt):
        raise ValueError(f"dt has shape {jnp.shape(dt)}, expected one number.")
    drive = Drive(tau, f_ext, base, method, loop_method, actuated)
    h = jnp.asarray(dt).astype(q.dtype)
    q, qd = INTEGRATORS[integrator](drive, model, q, qd, h)
    return closed(model, q, qd) if model.loops else (q, qd)


def rollout(
    model: Model,
    q0: Nq,
    qd0: Nv,
    control: Any,
    dt: Length,
    *,
    steps: int | None = None,
    memory: Any = None,
    f_ext: Any = None,
    base: Any = None,
    integrator: str = "implicit",
    method: str = "denoc",
    loop_method: str = "range_space",
    actuated: bool = False,
    every: int = 1,
    t0: Length = 0.0,
) -> Any:
    r"""The states at the times 0, dt, 2 dt, ... of a loop of `step`.

    It is one kernel for all steps where the operations of the control allow it, and
    differentiable by the states, the model, dt, and all arrays that `control`, `f_ext`
    and `base` hold. The gradient keeps the states and the controls, and computes each
    step again: memory grows by 3 nv + nq numbers a step, for a loss of rates too by
    5 nv + nq. With `every` it keeps only the states that are returned, and for a while
    those between two of them: where every is about the root of the number of steps,
    memory grows as that root, for one more rollout of time.

    Values are not checked: where a state or a force is not finite, the states are not
    finite from there on.

    Args:
        control: joint forces: one row for each step, or a function (t, q, qd) such as
            an `eqx.Module` with parameters, called at the beginning of each step and
            held during it. As controls of the actuators if `actuated`.
        dt: the length of a step, the same for all.
        steps: their number, for a function.
        memory: what the control remembers before the first step, a pytree of arrays:
            the control then is a function (t, q, qd, memory) that returns its value
            and the next memory.
        f_ext, base: as in `forward_dynamics`, always the same or functions (t, q, qd),
            held during a step.
        integrator, method, loop_method, actuated: as in `step`.
        every: return the first state and then that of each so many steps; divides
            the number of steps.
        t0: the time of the first state.

    Returns:
        q and qd, a row for each time; with `memory` the last memory too.

    Raises:
        ValueError: wrong shapes, an integrator that is not known or not for loops, a
            first state that opens a loop, steps that `every` does not divide.
    """
    _settled(model, integrator, method, loop_method, actuated)
    check_closed(*arguments(model, q0=q0, qd0=qd0))
    rows, count = _rows(model, control, steps, actuated)
    if not is_index(every) or every < 1 or count % every:
        raise ValueError(
            f"every is {every!r} for {count} steps, expected a whole number of steps "
            "that divides them."
        )
    if memory is not None and rows is not None:
        raise ValueError(
            "memory is given, but control is an array, expected a function (t, q, qd, "
            "memory)."
        )
    laws = Laws(*map(_law, (None if rows is not None else control, f_ext, base)))
    options = integrator, method, loop_method, bool(actuated)
    inputs = model, q0, qd0, memory, rows, laws, dt, t0
    if every == 1:
        found = _run(*inputs, 0, count, options)
    else:
        found = _pieces(*inputs, count, int(every), options)
    return found if memory is not None else found[:2]


class Laws(eqx.Module):
    """What drives a rollout: functions (t, q, qd), or the same at all times.

    The control is None where it is an array, and else as a function.
    """

    control: Frozen | None
    f_ext: Any
    base: Any


@compiled("steps", "options", flat=False)  # its gradient keeps the states alone
def _run(
    model: Model,
    q0: Nq,
    qd0: Nv,
    memory: Any,
    rows: Float[Array, "steps controls"] | None,
    laws: Laws,
    dt: Length,
    t0: Length,
    first: ArrayLike,
    steps: int,
    options: tuple[str, str, str, bool],
) -> tuple[Any, Any, Any]:
    """All states, the first included, and the last memory."""
    model, q0, qd0 = arguments(model, q0=q0, qd0=qd0)
    named: Any = dict(zip(OPTIONS, options, strict=True))
    h, start = (jnp.asarray(x).astype(q0.dtype) for x in (dt, t0))
    if h.shape:
        raise ValueError(f"dt has shape {h.shape}, expected one number.")

    def advance(state: Any, row: Any) -> Any:
        (q, qd, memory), (k, tau) = state, row
        t = start + h * k
        if laws.control is not None:
            tau, memory = _controls(laws.control, model, t, q, qd, memory, options[-1])
        f_ext, base = (
            x(t, q, qd) if isinstance(x, Frozen) else x for x in (laws.f_ext, laws.base)
        )
        q, qd = step(model, q, qd, tau, h, f_ext=f_ext, base=base, **named)
        return (q, qd, memory), (q, qd)

    places = jnp.asarray(first).astype(q0.dtype) + jnp.arange(steps, dtype=q0.dtype)
    rows = None if rows is None else rows.astype(q0.dtype)
    (*_, memory), (q, qd) = lax.scan(advance, (q0, qd0, memory), (places, rows))
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd]), memory


@alone("steps", "every", "options")
def _pieces(
    model: Model,
    q0: Nq,
    qd0: Nv,
    memory: Any,
    rows: Float[Array, "steps controls"] | None,
    laws: Laws,
    dt: Length,
    t0: Length,
    steps: int,
    every: int,
    options: tuple[str, str, str, bool],
) -> tuple[Any, Any, Any]:
    """Of each piece of so many steps the last state, all that a gradient keeps."""
    model, q0, qd0 = arguments(model, q0=q0, qd0=qd0)

    @jax.checkpoint
    def piece(state: Any, row: Any) -> Any:
        (q, qd, memory), (k, taus) = state, row
        inputs = model, q, qd, memory, taus, laws, dt, t0
        q, qd, memory = _run(*inputs, every * k, every, options)
        return (q[-1], qd[-1], memory), (q[-1], qd[-1])

    places = jnp.arange(steps // every, dtype=q0.dtype)
    if rows is not None:
        rows = rows.reshape(steps // every, every, rows.shape[1])
    (*_, memory), (q, qd) = lax.scan(piece, (q0, qd0, memory), (places, rows))
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd]), memory


def _law(given: Any) -> Any:
    return frozen(given) if callable(given) else given


def _rows(model: Model, control: Any, steps: int | None, actuated: bool) -> Any:
    """The rows of a control that is an array, or None, and the number of steps."""
    if callable(control):
        if not is_index(steps) or steps < 1:
            raise ValueError(
                f"steps is {steps!r}, expected how many steps the control, a function, "
                "is to be called for."
            )
        return None, int(steps)
    width = control_size(model, actuated)
    if not eqx.is_array_like(control):
        raise ValueError(
            f"control is a {type(control).__name__}, expected an array of shape "
            f"{('steps', width)} or a function (t, q, qd)."
        )
    rows = jnp.asarray(control)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"control has shape {rows.shape}, expected {('steps', width)} for model "
            f"{model.name!r}, or a function (t, q, qd)."
        )
    if steps is not None and steps != len(rows):
        raise ValueError(
            f"steps is {steps}, expected {len(rows)}, the rows of control."
        )
    return rows, len(rows)


def _controls(
    control: Frozen, model: Model, t: Any, q: Nq, qd: Nv, memory: Any, actuated: bool
) -> tuple[Any, Any]:
    """The value of a control in a state, and its next memory."""
    name, next_memory = control.name, None
    # a derivative keeps the state, and computes the control anew
    value = jax.checkpoint(lambda *args: control(*args), prevent_cse=False)
    if memory is None:
        tau = value(t, q, qd)
    else:
        both = value(t, q, qd, memory)
        if not isinstance(both, tuple) or len(both) != 2:
            raise ValueError(
                f"control {name} returned a {type(both).__name__}, expected a pair of "
                "its value and the next memory, since memory is given."
            )
        tau, next_memory = both
        before, after = (
            jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), x)
            for x in jax.tree.map(jnp.asarray, (memory, next_memory))
        )
        if before != after:
            raise ValueError(
                f"control {name} returned the memory {after}, expected that of the "
                f"first step, {before}."
            )
    shape = (control_size(model, actuated),)
    if jnp.shape(tau) != shape:
        raise ValueError(
            f"control {name} returned shape {jnp.shape(tau)}, expected {shape}: it is "
            "called as (t, q, qd) for one state."
        )
    return jnp.asarray(tau).astype(q.dtype), next_memory
