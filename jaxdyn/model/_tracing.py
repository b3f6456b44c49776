"""What is known of a program while Python runs."""

from typing import Any

from jax.core import Tracer, eval_context

try:
    from jax.extend.core import get_opaque_trace_state  # type: ignore
except ImportError:  # before JAX 0.10
    from jax.core import get_opaque_trace_state  # type: ignore

with eval_context():
    _EAGER = get_opaque_trace_state()


def is_eager() -> bool:
    """Whether operations run at once: no `jit`, `vmap` or derivative is traced."""
    return get_opaque_trace_state() == _EAGER


def is_staged(x: Any) -> bool:
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
