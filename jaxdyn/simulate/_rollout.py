"""Simulation with a fixed step."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.dtypes import float0
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics import check_resisted
from jaxdyn.model import FExt, Model, Nq, Nv, arguments, is_index
from jaxdyn.program import alone, compiled, filled, is_eager, is_moving, lifted
from jaxdyn.simulate._drift import check_closed, closed
from jaxdyn.simulate._equations import check_method, control_size
from jaxdyn.simulate._integrators import INTEGRATORS, Drive
from jaxdyn.simulate._signals import Frozen, frozen

Length = Float[Array, "..."] | float  # of a step
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
    and `base` hold. The gradient keeps the states and the controls, and computes what
    it needs of each step again: memory grows by 4 nv + 2 nq numbers a step, for a loss
    of rates too by 6 nv + 2 nq. With `every` it keeps only the states that are
    returned, and for a while those between two of them: where every is about the root
    of the number of steps, memory grows as that root, for one more rollout of time.

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
    own, q, qd = arguments(model, q0=q0, qd0=qd0)
    check_closed(own, q, qd)
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
    state = jax.ShapeDtypeStruct((), q.dtype), q, qd
    extra = () if memory is None else (memory,)
    laws = Laws(
        None if rows is not None else _law(control, *state, *extra),
        *(_law(x, *state) if callable(x) else x for x in (f_ext, base)),
    )
    options = integrator, method, loop_method, bool(actuated)
    inputs = Inputs(model, q0, qd0, memory, rows, laws, dt, t0, 0)
    moving = _is_moving(inputs)
    if every == 1:
        found = _chosen(moving)(count, options, False, inputs)
    else:
        found = _pieces(inputs, count, int(every), options, moving)
    return found if memory is not None else found[:2]


class Laws(eqx.Module):
    """What drives a rollout: functions (t, q, qd), or the same at all times.

    The control is None where it is an array, and else as a function.
    """

    control: Frozen | None
    f_ext: Any
    base: Any


def _law(law: Callable, *args: Any) -> Frozen:
    """A function whose arrays are leaves, also those that it closes over."""
    return frozen(law if is_eager() else lifted(law, *args))


class Inputs(NamedTuple):
    """All that a rollout depends on; `first` is the number of the first step."""

    model: Model
    q0: Nq
    qd0: Nv
    memory: Any
    rows: Float[Array, "steps controls"] | None
    laws: Laws
    dt: Length
    t0: Length
    first: ArrayLike


Options = tuple[str, str, str, bool]
State = tuple[Any, Any, Any]  # q, qd and the memory
# rows of q and qd for all times; then the last memory, or rows of that and of controls
Found = tuple[Any, ...]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _states(steps: int, options: Options, keeps: bool, inputs: Inputs) -> Found:
    """All states, the first included, and all memories if `keeps`, or the last."""
    return _run(inputs, steps, options, keeps)


@partial(_states.defjvp, symbolic_zeros=True)
def _states_and_slopes(
    steps: int, options: Options, keeps: bool, primals: Any, tangents: Any
) -> tuple[Found, Found]:
    """The slopes follow from the states, which are not computed again."""
    (inputs,), (moved,) = primals, tangents
    states = _chosen(_is_moving(inputs))(steps, options, True, inputs)
    dots = jax.tree.map(_or_none, moved, is_leaf=lambda x: isinstance(x, SymbolicZero))
    slopes = _slopes(inputs, dots, states, steps, options)
    if not keeps:
        last = partial(jax.tree.map, lambda x: x[-1])
        states, slopes = ((q, qd, last(m)) for q, qd, m, _ in (states, slopes))
    whole = jax.tree.map(
        lambda x, d: np.zeros(x.shape, float0) if d is None else d, states, slopes
    )
    return states, whole


def _is_moving(inputs: Inputs) -> bool:
    return any(map(is_moving, jax.tree.leaves(inputs)))


def _chosen(moving: bool) -> Callable:
    """The loop, with a rule for derivatives only where there is one around the call.

    In the program of a function with a rule of its own XLA sees no constants.
    """
    return _states if moving else _states.fun


def _or_none(tangent: Any) -> Any:
    is_zero = isinstance(tangent, SymbolicZero) or tangent.dtype == float0
    return None if is_zero else tangent


@compiled("steps", "options", "keeps", flat=False)
def _run(inputs: Inputs, steps: int, options: Options, keeps: bool) -> Found:
    """The states by a loop of steps."""
    return _looped(inputs, steps, options, keeps)


@compiled("steps", "options", flat=False)
def _slopes(
    inputs: Inputs, dots: Any, states: Found, steps: int, options: Options
) -> Found:
    """The slopes of smooth states by the inputs whose `dots` are not None."""
    leaves, tree = jax.tree.flatten(inputs)
    slopes = tree.flatten_up_to(dots)
    places = [k for k, d in enumerate(slopes) if d is not None]

    def of_moving(*moving: Any) -> Found:
        moved = jax.tree.unflatten(tree, filled(leaves, places, moving))
        found = _looped(moved, steps, options, True, states)
        return jax.tree.map(lambda x: x if _is_smooth(x) else None, found)

    primals, along = (tuple(x[k] for k in places) for x in (leaves, slopes))
    return jax.jvp(of_moving, primals, along)[1]


def _looped(
    inputs: Inputs, steps: int, options: Options, keeps: bool, known: Any = None
) -> Found:
    """All states, and all memories or the last, by a loop of steps.

    Where the states are `known`, steps begin at these and do not wait for one another.
    """
    model, q0, qd0, memory, rows, laws, dt, t0, first = inputs
    model, q0, qd0 = arguments(model, q0=q0, qd0=qd0)
    if jnp.shape(dt):
        raise ValueError(f"dt has shape {jnp.shape(dt)}, expected one number.")
    places = jnp.asarray(first).astype(q0.dtype) + jnp.arange(steps, dtype=q0.dtype)
    rows = None if rows is None else rows.astype(q0.dtype)
    fixed = model, laws, dt, t0
    start = q0, qd0, jax.tree.map(jnp.asarray, memory)
    before = None
    if known is not None:
        before = jax.tree.map(lambda x: x[:-1], known[:3]), known[3]

    def advance(state: State, given: Any) -> Any:
        row, at = given
        tau = None
        if at is not None:
            state, tau = jax.tree.map(_at, state, at[0]), at[1]
        (q, qd, memory), tau = _advance(options, fixed, state, row, tau)
        after = q, qd, memory if keeps else None
        return (q, qd, memory), (after, tau if keeps else None)

    end, (after, taus) = lax.scan(advance, start, ((places, rows), before))
    q, qd, memory = jax.tree.map(
        lambda x, rest: jnp.concatenate([x[None], rest]),
        start if keeps else (*start[:2], None),
        after,
    )
    return (q, qd, memory, taus) if keeps else (q, qd, end[2])


@jax.custom_jvp
def _at(x: Any, value: Any) -> Any:
    """The value, with the slope of x."""
    return value


@_at.defjvp
def _at_slope(primals: Any, tangents: Any) -> Any:
    return primals[1], tangents[0]


def _is_smooth(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _advance(
    options: Options, fixed: Any, state: State, row: Any, known: Any
) -> tuple[State, Any]:
    """One step of a rollout, and the value of a law for its control, if that has one.

    Where the value is `known` it is not computed, but its slopes are.
    """
    (model, laws, dt, t0), (q, qd, memory), (k, tau) = fixed, state, row
    h, start = (jnp.asarray(x).astype(q.dtype) for x in (dt, t0))
    t = start + h * k
    value = None
    if laws.control is not None:
        tau, memory = _controls(laws.control, model, t, q, qd, memory, options[-1])
        tau = value = tau if known is None else _at(tau, known)
    f_ext, base = (
        x(t, q, qd) if isinstance(x, Frozen) else x for x in (laws.f_ext, laws.base)
    )
    named: Any = dict(zip(OPTIONS, options, strict=True))
    q, qd = step(model, q, qd, tau, h, f_ext=f_ext, base=base, **named)
    return (q, qd, memory), value


@alone("steps", "every", "options", "moving")
def _pieces(
    inputs: Inputs, steps: int, every: int, options: Options, moving: bool
) -> Found:
    """Of each piece of so many steps the last state, all that a gradient keeps."""
    model, q0, qd0 = arguments(inputs.model, q0=inputs.q0, qd0=inputs.qd0)
    start = q0, qd0, inputs.memory

    @jax.checkpoint
    def piece(state: State, row: Any) -> Any:
        k, taus = row
        names = dict(zip(("q0", "qd0", "memory"), state, strict=True))
        own = inputs._replace(model=model, rows=taus, first=every * k, **names)
        q, qd, memory = _chosen(moving)(every, options, False, own)
        return (q[-1], qd[-1], memory), (q[-1], qd[-1])

    places = jnp.arange(steps // every, dtype=q0.dtype)
    rows = inputs.rows
    if rows is not None:
        rows = rows.reshape(steps // every, every, rows.shape[1])
    (*_, memory), (q, qd) = lax.scan(piece, start, (places, rows))
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd]), memory


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
