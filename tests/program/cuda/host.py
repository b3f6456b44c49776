"""Kernels for GPUs, compiled for the host: values without a card."""

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import mkdtemp

import jax
import numpy as np
import pytest

from jaxdyn.program._jax import Literal, with_constants
from jaxdyn.program._states import CALLS
from jaxdyn.program.cuda._kernel import BLOCK, NAME, print_kernel

needs_gcc = pytest.mark.skipif(which("gcc") is None, reason="gcc is not installed")
MACROS = """\
#include <math.h>
#include <stdbool.h>
#define KERNEL static void
#define FUNCTION static inline
#define SEPARATE static
#define FAST_TABLE static const
#define TABLE static const
#define THREAD own_thread
#define THREADS all_threads
#define COUNT(n) n = states
static long long own_thread, all_threads, states;
"""
OUTSIDE = 0  # bytes of arrays that are not in a thread's own memory
FLAGS = "-O0 -w -ffp-contract=off -std=gnu11".split()


@cache
def folder():
    return Path(mkdtemp())


def program(text, count):
    """C text of a function that runs all threads on `count` arrays."""
    names = ", ".join(f"p[{k}]" for k in range(count))
    each = "for (own_thread = 0; own_thread < threads; ++own_thread)"
    head = "void run(void **p, long long threads, long long count)"
    body = f"all_threads = threads, states = count; {each} {NAME}({names});"
    return f"{MACROS}{text}\n{head} {{ {body} }}\n"


def gcc(text, name, *flags):
    """A C text compiled."""
    source, target = folder() / f"{name}.c", folder() / name
    source.write_text(text)
    subprocess.run(["gcc", *FLAGS, *flags, "-o", target, source, "-lm"], check=True)
    return target


@cache
def library(text):
    return ctypes.CDLL(str(gcc(text, f"k{library.cache_info().misses}.so", *SHARED)))


SHARED = ("-shared", "-fPIC")


def run(source, size, args, results):
    """The results of a kernel, whose types are given, on the host.

    All threads of all blocks run, also those without a state; where threads have room
    outside of their own memory there is one block, which runs all states.
    """
    count = 1 if size is None else size
    threads = BLOCK if source.room else -(-count // BLOCK) * BLOCK
    out = [np.full(a.shape, 7, a.dtype) for a in results]
    room = [np.full(threads * source.room, 7, np.uint8)] if source.room else []
    arrays = [np.ascontiguousarray(x) for x in args] + out + room
    if run.sanitized:
        return sanitized(source.text, threads, count, arrays, len(args))[: len(out)]
    pointers = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    call = library(program(source.text, len(arrays))).run
    call.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong]
    call(pointers, threads, count)
    return out


run.sanitized = False
MAIN = """
int main() {{
  static const size_t bytes[] = {{{bytes}}};
  void *p[{count}];
  for (int k = 0; k < {count}; ++k) {{
    p[k] = malloc(bytes[k]);
    if (fread(p[k], 1, bytes[k], stdin) != bytes[k]) return 3;
  }}
  run(p, {threads}, {states});
  for (int k = {first}; k < {count}; ++k) fwrite(p[k], 1, bytes[k], stdout);
}}
"""


def sanitized(text, threads, states, arrays, first):
    """The same under the address and undefined-behaviour sanitizers."""
    numbers = dict(count=len(arrays), first=first, threads=threads, states=states)
    main = MAIN.format(bytes=", ".join(str(x.nbytes) for x in arrays), **numbers)
    whole = program(text, len(arrays)) + main
    made = gcc("#include <stdio.h>\n#include <stdlib.h>\n" + whole, "checked", *CHECKS)
    data, options = b"".join(x.tobytes() for x in arrays), {"ASAN_OPTIONS": NO_LEAKS}
    done = subprocess.run([made], input=data, env=options, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    out, place = [], 0
    for x in arrays[first:]:
        part = done.stdout[place : place + x.nbytes]
        out.append(np.frombuffer(part, x.dtype).reshape(x.shape))
        place += x.nbytes
    return out


CHECKS = "-fsanitize=address,undefined", "-fno-sanitize-recover"
NO_LEAKS = "detect_leaks=0"


def printed(eqn, args, constants=()):
    """The source of a kernel, and its arguments without constants."""
    p = eqn.params
    args = [np.asarray(x, v.aval.dtype) for x, v in zip(args, eqn.invars, strict=True)]
    folded = [
        x if isinstance(v, Literal) or v in constants else None
        for x, v in zip(args, eqn.invars, strict=True)
    ]
    free = [k for k, x in enumerate(folded) if x is None]
    closed = with_constants(p["jaxpr"], folded)
    source = print_kernel(closed, [p["batched"][k] for k in free]).source(OUTSIDE)
    return source, [args[k] for k in free]


def evaluate(function, *args):
    """The results of a function, all of its kernels as C on the host.

    `evaluate.sources` are they.
    """
    evaluate.sources = []
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    out = _interpret(closed, jax.tree.leaves(args))
    return jax.tree.unflatten(jax.tree.structure(shape), out)


def _interpret(closed, args):
    jaxpr = closed.jaxpr
    constants = set(jaxpr.constvars)
    pairs = zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True)
    known = dict(pairs)

    def value(x):
        return x.val if isinstance(x, Literal) else known[x]

    for eqn in jaxpr.eqns:
        own = [value(x) for x in eqn.invars]
        if eqn.primitive.name == "jaxdyn_kernel":
            source, own = printed(eqn, own, constants)
            evaluate.sources.append(source)
            out = run(source, eqn.params["size"], own, [x.aval for x in eqn.outvars])
        elif eqn.primitive.name in CALLS:
            inner = eqn.params["jaxpr" if "jaxpr" in eqn.params else "call_jaxpr"]
            out = _interpret(inner, own)
        else:
            out = eqn.primitive.bind(*own, **eqn.params)
            out = out if eqn.primitive.multiple_results else [out]
        known |= zip(eqn.outvars, out, strict=True)
    return [value(x) for x in jaxpr.outvars]
