"""Kernels for GPUs, compiled for the host: values without a card."""

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import jax
import numpy as np

from jaxdyn.program._jax import Literal, with_constants
from jaxdyn.program.cuda._kernel import NAME, print_kernel

MACROS = """\
#include <math.h>
#include <stdbool.h>
#define KERNEL static void
#define FAST_TABLE static const
#define TABLE static const
#define STATE thread
#define __restrict__
static long long thread;
"""


@cache
def folder():
    return Path(mkdtemp())


@cache
def library(text, count, flags=("-O0",)):
    """The function of all states: arrays of the arguments and results."""
    names = ", ".join(f"p[{k}]" for k in range(count))
    call = f"for (thread = 0; thread < threads; ++thread) {NAME}({names});"
    text = f"{MACROS}{text}\nvoid run(void **p, long long threads) {{ {call} }}\n"
    place = folder() / f"k{abs(hash(text))}"
    place.with_suffix(".c").write_text(text)
    line = ["gcc", *flags, "-w", "-ffp-contract=off", "-shared", "-fPIC", "-std=gnu11"]
    line += ["-o", f"{place}.so", f"{place}.c", "-lm"]
    subprocess.run(line, check=True)
    return ctypes.CDLL(f"{place}.so").run


def run(text, size, args, results):
    """The results of a kernel, whose types are given, on the host."""
    out = [np.full(a.shape, 7, a.dtype) for a in results]
    arrays = [np.ascontiguousarray(x) for x in args] + out
    pointers = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    call = library(text, len(arrays))
    call.argtypes = [ctypes.c_void_p, ctypes.c_longlong]
    call(pointers, -(-(size or 1) // 128) * 128)
    return out


def evaluate(function, *args):
    """A program on the host, each kernel in it as C."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    out = interpret(closed, jax.tree.leaves(args))
    return jax.tree.unflatten(jax.tree.structure(shape), out)


def interpret(closed, args):
    jaxpr = closed.jaxpr
    constants = set(jaxpr.constvars)
    known = dict(
        zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True)
    )

    def value(x):
        return x.val if isinstance(x, Literal) else known[x]

    for eqn in jaxpr.eqns:
        own = [value(x) for x in eqn.invars]
        p = eqn.params
        if eqn.primitive.name == "jaxdyn_kernel":
            own = [
                np.asarray(x, v.aval.dtype)
                for x, v in zip(own, eqn.invars, strict=True)
            ]
            folded = [
                x if isinstance(v, Literal) or v in constants else None
                for x, v in zip(own, eqn.invars, strict=True)
            ]
            free = [k for k, x in enumerate(folded) if x is None]
            text = print_kernel(
                with_constants(p["jaxpr"], folded),
                p["size"],
                [p["batched"][k] for k in free],
            )
            own = [own[k] for k in free]
            out = run(text, p["size"], own, [x.aval for x in eqn.outvars])
        elif eqn.primitive.name in ("jit", "pjit"):
            out = interpret(p["jaxpr"], own)
        else:
            out = eqn.primitive.bind(*own, **p)
            out = out if eqn.primitive.multiple_results else [out]
        known |= zip(eqn.outvars, out, strict=True)
    return [value(x) for x in jaxpr.outvars]
