"""Ladders of m loops: programs of the methods, their agreement, their iterations."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from experiments.parts.timed_programs import QUICK, Program

AT_BASE = "recursive, loops at the base"  # the other tree of the same mechanism
SEQUENTIAL = "sequential_regularization"
METHODS = ("kkt", "range_space", "recursive", AT_BASE, SEQUENTIAL)
Found = dict[tuple[str, int], Any]  # by method and number of loops


class Start(NamedTuple):
    """A closed motion of a ladder: how fast its bars turn, and moments on them."""

    w: np.ndarray
    moments: np.ndarray
    iterations: int  # of sequential regularization
    condition: float  # of Psi M^-1 Psi^T
    mobility: int


def starts(sizes: list[int], tolerance: float) -> dict[int, Start]:
    """A start for each number of loops, with random rates that keep them closed."""

    def one(m: int) -> Start:
        model, rng = jd.robots.ladder(m), np.random.default_rng(m)
        q, qd, moments = jnp.zeros(model.nq), *rng.normal(size=(2, model.nv))
        tau = np.linalg.solve(turns(model).T, moments)
        program = jax.jit(partial(_start, tolerance), compiler_options=QUICK)
        qd, k, loops = program(model, q, *map(jnp.asarray, (qd, tau)))
        w = np.linalg.solve(turns(model), np.asarray(qd))
        condition = float(loops.condition_number) ** 2
        return Start(w, moments, int(k), condition, int(loops.mobility))

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(sizes[::-1], pool.map(one, sizes[::-1]), strict=True))
    return {m: found[m] for m in sizes}


def _start(tolerance: float, model: jd.Model, q: Any, qd: Any, tau: Any) -> Any:
    qd = jd.project_velocity(model, q, qd)
    k = jd.loop_iterations(model, q, qd, tau, tolerance=tolerance)
    return qd, k, jd.loop_condition(model, q)


def turns(model: jd.Model) -> np.ndarray:
    """The matrix that turns rates of the bars in the plane into rates of the joints."""
    parents = np.array(model.parents)
    matrix, child = np.eye(model.n), np.flatnonzero(parents >= 0)
    matrix[child, parents[child]] = -1.0
    return matrix


def programs(
    sizes: dict[str, list[int]], given: dict[int, Start], tolerance: float
) -> list[Program]:
    """Each method for each number of loops, at the same motion of the bars."""

    def program(size: tuple[str, int]) -> Program:
        method, m = size
        model = jd.robots.ladder(m, local=method != AT_BASE)
        T = turns(model)
        state = (
            np.zeros(model.nq),
            T @ given[m].w,
            np.linalg.solve(T.T, given[m].moments),
        )
        options: dict = {"method": "recursive" if method == AT_BASE else method}
        if method == SEQUENTIAL:
            options["tolerance"] = tolerance
        arrays = [jnp.asarray(x) for x in state]
        traced = jax.jit(partial(jd.constrained_dynamics, **options))
        return Program(method, traced.lower(model, *arrays).compile(), model, arrays)

    pairs = [(method, m) for method, given in sizes.items() for m in given]
    pairs.sort(key=lambda pair: -pair[1])  # the longest first, so that none ends alone
    with ThreadPoolExecutor(2) as pool:  # compiling is most of the time of a run
        return list(pool.map(program, pairs))


def solution(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Angular accelerations of the bars, and loop forces."""
    qdd, forces = program.call(program.model, *program.arrays)
    return np.linalg.solve(turns(program.model), np.asarray(qdd)), np.asarray(forces)


def agreement(made: list[Program]) -> Found:
    """Distance from `range_space`, of accelerations and of loop forces, relative.

    In the other tree the cut joints carry other forces: they are not compared.
    """
    found = {(p.method, len(p.model.loops)): solution(p) for p in made}
    apart = {}
    for (method, m), pair in found.items():
        exact = found["range_space", m]
        apart[method, m] = [
            float(np.abs(x - y).max() / np.abs(y).max())
            for x, y in zip(pair, exact, strict=True)
        ][: 1 if method == AT_BASE else 2]
    return {size: x for size, x in apart.items() if size[0] != "range_space"}
