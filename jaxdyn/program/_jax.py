"""All that jaxdyn uses of JAX beyond its documented interface.

What a release of JAX may rename or change is here and nowhere else.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax import lax
from jax.core import ShapedArray as ShapedArray
from jax.core import Tracer, eval_context
from jax.experimental.xla_metadata import set_xla_metadata as set_xla_metadata
from jax.extend.core import ClosedJaxpr as ClosedJaxpr  # type: ignore
from jax.extend.core import Jaxpr as Jaxpr  # type: ignore
from jax.extend.core import JaxprEqn as JaxprEqn
from jax.extend.core import Literal as Literal
from jax.extend.core import Primitive
from jax.extend.core import jaxpr_as_fun as jaxpr_as_fun
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jax.interpreters.ad import UndefinedPrimal as UndefinedPrimal
from jax.interpreters.ad import Zero as Zero
from jax.sharding import PartitionSpec
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

try:
    from jax.extend.core import get_opaque_trace_state  # type: ignore
except ImportError:  # before JAX 0.10
    from jax.core import get_opaque_trace_state  # type: ignore

# into the program of the caller as it is traced; True may mean later, from JAX 0.11 on
INLINE: bool = jax.Inline.JAX_EARLY if hasattr(jax, "Inline") else True  # type: ignore

Value: TypeAlias = Array | np.ndarray  # the latter for constants of a program
Tangent: TypeAlias = Value | Zero  # or a cotangent
Argument: TypeAlias = ArrayLike | UndefinedPrimal  # the latter where a map is linear
Axes: TypeAlias = Sequence[int | None]  # of batches, None for values without one

with eval_context():
    _EAGER = get_opaque_trace_state()

# of array types: the axes of `jax.shard_map` along which values differ
_NONE = ShapedArray((), np.dtype("float32"))
_AXES = "vma" if hasattr(_NONE, "vma") else "manual_axis_type"  # from JAX 0.12 on


# --- what is known while Python runs


def is_eager() -> bool:
    """Whether operations run at once: no `jit`, `vmap` or derivative is traced."""
    return get_opaque_trace_state() == _EAGER


def is_staged(x: PyTree) -> bool:
    """Whether `x` stands for numbers that are known only when a program runs."""
    # tracers of derivatives and of batches hold numbers; their classes are private
    while isinstance(x, Tracer):
        if hasattr(x, "primal"):
            x = x.primal
        elif hasattr(x, "batch_dim"):
            x = x.val
        else:
            return True
    return False


def is_moving(x: PyTree) -> bool:
    """Whether a derivative around the call follows what `x` depends on."""
    while hasattr(x, "batch_dim"):
        x = x.val
    return isinstance(x, Tracer) and hasattr(x, "primal")


def batch_size(x: PyTree) -> int:
    """How many states the `jax.vmap`s around the call give the argument."""
    size = 1
    while hasattr(x, "batch_dim"):
        if isinstance(x.batch_dim, int):
            size *= x.val.shape[x.batch_dim]
        x = x.val
    return size


# --- programs


def needed(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[int]]:
    """The program without dead code, and the arguments that it needs."""
    pruned, used = pe.dce_jaxpr(program.jaxpr, [True] * len(program.out_avals))
    kept = [k for k, is_used in enumerate(used) if is_used]
    return ClosedJaxpr(pruned, program.consts), kept


def with_constants(
    program: ClosedJaxpr, values: Sequence[np.ndarray | None]
) -> ClosedJaxpr:
    """The program with the arguments that have a value as constants."""
    inner = program.jaxpr
    bound = [k for k, value in enumerate(values) if value is not None]
    moved = inner.replace(
        invars=[inner.invars[k] for k, value in enumerate(values) if value is None],
        constvars=[*(inner.invars[k] for k in bound), *inner.constvars],
        debug_info=inner.debug_info.with_unknown_names(),
    )
    return ClosedJaxpr(moved, [*(values[k] for k in bound), *program.consts])


def traced_name(program: ClosedJaxpr) -> str:
    """The name of the function that was traced."""
    return program.jaxpr.debug_info.func_name


def loop_counts(params: dict) -> tuple[int, int]:
    """How many constants and how many carried values a `scan` has."""
    if "num_consts" in params:  # before JAX 0.12
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = params["ft_in"].unpack()
    return len(constants), len(carried)


# --- primitives


def primitive(
    name: str,
    function: Callable,
    types: Callable,
    *,
    batch: Callable,
    transpose: Callable,
    jvp: Callable | None = None,
    several: bool = True,
) -> Primitive:
    """A primitive of our own.

    Args:
        function: the same in operations of JAX; also how it is lowered.
        types: the types of the results.
        batch, transpose, jvp: its rules; without `jvp` it is linear.
        several: whether it returns a list.
    """
    p = Primitive(name)
    p.multiple_results = several
    p.def_impl(function)
    p.def_abstract_eval(types)
    batching.primitive_batchers[p] = batch
    if jvp is None:
        ad.deflinear2(p, transpose)
    else:
        ad.primitive_jvps[p] = jvp
        ad.primitive_transposes[p] = transpose
    mlir.register_lowering(p, mlir.lower_fun(function, multiple_results=several))
    return p


def zero_tangent(x: Value) -> Zero:
    """The tangent of a result that does not move."""
    return Zero(jax.typeof(x).to_tangent_aval())


def zero_like(x: Argument) -> Zero:
    """The zero cotangent of an argument of a transposed map."""
    return Zero(type_of(x))


def full(x: Tangent) -> Value:
    """A tangent or cotangent as an array, also where it is known to be zero."""
    return ad.instantiate_zeros(x)


def type_of(x: Argument) -> ShapedArray:
    """The type of an argument of a transposed map."""
    return x.aval if isinstance(x, UndefinedPrimal) else jax.typeof(x)


def operation_for(size: int | None) -> Callable:
    """operation(p, args, axes, params) for many states, by JAX's rules for `jax.vmap`.

    It returns the results and their axes: those along which an array has a row for each
    state, None where it is the same for all.
    """
    seen = []

    def rule(axis_data, args, axes):
        seen.append(axis_data)  # what JAX tells its rules about the states
        return args[0], axes[0]

    probe = Primitive("probe")
    batching.fancy_primitive_batchers[probe] = rule
    if size is not None:
        jax.vmap(probe.bind)(np.zeros(size))
    del batching.fancy_primitive_batchers[probe]

    def operation(p, args, axes, params):
        if all(axis is None for axis in axes):
            out = p.bind(*args, **params)
            found = [None] * len(out) if p.multiple_results else None
        else:
            batched = batching.fancy_primitive_batchers[p]
            out, found = batched(seen[0], args, axes, **params)
        return (out, found) if p.multiple_results else ([out], [found])

    return operation


# --- lowering


def lower_on_cpu(p: Primitive, function: Callable, several: bool = True) -> None:
    """Lower a primitive to another function on the CPU."""
    lowering = mlir.lower_fun(function, multiple_results=several)
    mlir.register_lowering(p, lowering, platform="cpu")


def lower_kernel(p: Primitive, plain: Callable, other: Callable, tuned: dict) -> None:
    """Lower by platform: to `plain` on CPUs, to `other` elsewhere, or to its own.

    All are functions as `as_written`. Where a program is for one device of a platform
    in `tuned`, arguments that are constants of the caller's program become constants
    of the `jaxpr` of that function.

    Args:
        tuned: by platform the function of its own and `warn`, which gets the exception
            where that fails; the program is then as on others. The function for "cuda"
            gets the `capability` of the device as well.
    """
    lower_plain = _without_axes(mlir.lower_fun(plain, multiple_results=True))
    lower_other = _without_axes(mlir.lower_fun(other, multiple_results=True))
    lower_tuned = {
        platform: _without_axes(mlir.lower_fun(function, multiple_results=True))
        for platform, (function, _) in tuned.items()
    }

    def lower(ctx, *args, jaxpr, size, batched):
        platform = _only_platform(ctx)
        try:
            if platform in tuned:
                pairs = zip(args, batched, strict=True)
                values = [None if b else _constant(x) for x, b in pairs]
                free = [k for k, value in enumerate(values) if value is None]
                own = {} if platform == "cpu" else dict(capability=_capability(ctx))
                return lower_tuned[platform](
                    ctx.replace(avals_in=[ctx.avals_in[k] for k in free]),
                    *(args[k] for k in free),
                    jaxpr=with_constants(jaxpr, values),
                    size=size,
                    batched=tuple(batched[k] for k in free),
                    **own,
                )
        except Exception as error:  # whatever a release of JAX has changed
            tuned[platform][1](error)
        is_host = "cpu" in ctx.module_context.platforms
        as_others = lower_plain if is_host else lower_other
        return as_others(ctx, *args, jaxpr=jaxpr, size=size, batched=batched)

    mlir.register_lowering(p, lower, cacheable=False)  # type: ignore


def _only_platform(ctx: mlir.LoweringRuleContext) -> str:
    """The platform of a program for one device and this jaxlib; empty for others."""
    module = ctx.module_context
    devices = getattr(module.axis_context, "num_devices", None) or 1
    is_single = devices == 1 and len(module.platforms) == 1
    is_exported = module.lowering_parameters.for_export
    return module.platforms[0] if is_single and not is_exported else ""


def _capability(ctx: mlir.LoweringRuleContext) -> int:
    """The least compute capability among the devices of a program, 80 for 8.0.

    Where they are not known it is that of the GPUs of this process, and 75 without any.
    """
    axes = ctx.module_context.axis_context
    devices = getattr(axes, "device_assignment", None)
    if devices is None:
        devices = np.ravel(getattr(getattr(axes, "mesh", None), "devices", ()))
    for some in (devices, jax.local_devices()):
        found = [str(getattr(d, "compute_capability", "")) for d in some]
        numbers = [int(c.replace(".", "")) for c in found if c]
        if numbers:
            return min(numbers)
    return 75


def _constant(x: ir.Value) -> np.ndarray | None:  # type: ignore
    """The array, if the program holds its numbers."""
    operation = getattr(x.owner, "operation", None)  # a block has none
    if operation is None or operation.name != "stablehlo.constant":
        return None
    value = operation.attributes["value"]
    # a model has no others
    is_float = isinstance(value, ir.DenseFPElementsAttr)  # type: ignore
    return np.array(value) if is_float else None


# --- `jax.shard_map`


def alike(args: Sequence[Array]) -> list[Array]:
    """The arguments, all marked to differ along the axes along which any does."""
    own = [_axes(jax.typeof(x)) for x in args]
    every = frozenset().union(*own)
    missing = [tuple(sorted(every - axes)) for axes in own]
    pairs = zip(args, missing, strict=True)
    return [lax.pcast(x, axes, to="varying") if axes else x for x, axes in pairs]


def differing_as(
    types: Sequence[ShapedArray], args: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """Types of results that differ along the same axes as arguments of given types."""
    if not args or not _axes(args[0]):
        return types
    axes, sharding = getattr(args[0], _AXES), args[0].sharding

    def moved(a):
        spec = PartitionSpec(*[None] * a.ndim)
        return a.update(sharding=sharding.update(spec=spec), **{_AXES: axes})

    return [moved(a) for a in types]


def _axes(a: ShapedArray) -> frozenset:
    found = getattr(a, _AXES)
    return found if isinstance(found, frozenset) else frozenset(found.varying)


def _without_axes(lowering: Callable) -> Callable:
    """A lowering that traces a function of arrays that differ along no axes."""
    none = {_AXES: getattr(_NONE, _AXES)}

    def lower(ctx, *args, **params):
        own = dict(
            avals_in=[a.update(**none) for a in ctx.avals_in],
            avals_out=[a.update(**none) for a in ctx.avals_out],
        )
        return lowering(ctx.replace(**own), *args, **params)

    return lower
