"""The recursions that `operation_counts.py` counts, and the robots it takes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

import jaxdyn as jd
from experiments.parts import link_frames
from jaxdyn import dynamics
from jaxdyn.analysis import count_operations, operation_polynomials
from jaxdyn.io import rotation_about
from jaxdyn.spatial import Vec3, cross

INVERSE, INERTIA, BIAS = "inverse dynamics", "inertia matrix", "bias vector"
SOLVE, FORWARD = "forward dynamics, bias given", "forward dynamics with bias"
FACTOR, SYSTEM = "Cholesky decomposition", "linear system solution"
OUTWARD, INWARD = "outward recursions", "inward recursions"
QUANTITIES = (INVERSE, SOLVE, FORWARD, INERTIA, BIAS, FACTOR, SYSTEM, OUTWARD, INWARD)


def random_robot(n: int, kind: str) -> jd.Model:
    """A serial robot without any special value."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(n):
        a, alpha, d, mass = rng.uniform(0.2, 1.2, 4)
        link = jd.Inertial.box(mass, rng.uniform(0.1, 0.6, 3))
        turn = rotation_about(np.array([0.6, 0.0, 0.8]), rng.uniform(0.5, 2))
        link = link.moved(turn, rng.uniform(-0.2, 0.2, 3))
        inertial = jd.SlenderRods(mass) if kind == "slender rods" else link
        rows.append(jd.DHLink(a=a, alpha=alpha, d=d, inertial=inertial))
    return jd.from_dh(rows)


def family(kind: str, arrays: int) -> Callable[[int], tuple]:
    """Robots in world axes or in link frames, and states; or matrices."""

    def member(n: int) -> tuple:
        if kind == "any matrix":
            return None, np.eye(n), *np.ones((arrays, n))
        robot: Any = random_robot(n, kind)
        if kind != "world axes":
            robot = link_frames.link_frames(robot)
        if kind in ("regrouped", "slender rods"):
            robot = link_frames.regrouped(robot)
        return robot, *np.ones((arrays, n))

    return member


def solve(links: Any, q: Any, tau: Any, bias: Any) -> Any:
    """Accelerations by U D Uᵀ, for given bias."""
    return link_frames.link_solve(links, q, tau - bias)


def bias_forces(links: Any, q: Any, qd: Any) -> Any:
    """Joint forces without acceleration."""
    return link_frames.link_gibbs_appell(links, q, qd, jnp.zeros_like(qd))


def dense(links: Any, q: Any, tau: Any, bias: Any) -> Any:
    """Accelerations by composite links and a Cholesky factor, for given bias."""
    M = link_frames.link_inertia_composite(links, q)
    return cho_solve(cho_factor(M, lower=True), tau - bias)


def dense_total(links: Any, q: Any, qd: Any, tau: Any) -> Any:
    """Accelerations by composite links and a Cholesky factor."""
    return dense(links, q, tau, bias_forces(links, q, qd))


def appell_total(links: Any, q: Any, qd: Any, tau: Any) -> Any:
    """Accelerations as in [Mata] Table 3."""
    M = link_frames.link_inertia_gibbs_appell(links, q)
    return cho_solve(cho_factor(M, lower=True), tau - bias_forces(links, q, qd))


def loads(*args: Any) -> Any:
    """What the inward recursion of Newton-Euler needs."""
    _, w, _, dw, ddc = link_frames.link_kinematics(*args)
    return w, dw, ddc


def factor(_: None, M: Any) -> Any:
    """The lower Cholesky factor."""
    return cho_factor(M, lower=True)[0]


def system(_: None, L: Any, b: Any) -> Any:
    """The solution with a Cholesky factor."""
    return cho_solve((L, True), b)


OURS = [  # quantity, method, function, number of arrays, kind of robot
    (INVERSE, "Gibbs-Appell", link_frames.link_gibbs_appell, 3, "regrouped"),
    (INVERSE, "Gibbs-Appell", link_frames.link_gibbs_appell, 3, "as given"),
    (INVERSE, "Newton-Euler", link_frames.link_newton_euler, 3, "as given"),
    (INVERSE, "library", dynamics.inverse_dynamics, 3, "world axes"),
    (SOLVE, "U D U^T", solve, 3, "regrouped"),
    (SOLVE, "U D U^T", solve, 3, "slender rods"),
    (SOLVE, "composite links + Cholesky", dense, 3, "regrouped"),
    (FORWARD, "U D U^T and bias", link_frames.link_forward_dynamics, 3, "regrouped"),
    (FORWARD, "composite links + Cholesky and bias", dense_total, 3, "regrouped"),
    (FORWARD, "Gibbs-Appell + Cholesky and bias", appell_total, 3, "as given"),
    (FORWARD, "library", dynamics.forward_dynamics, 3, "world axes"),
    (INERTIA, "composite links", link_frames.link_inertia_composite, 1, "regrouped"),
    (INERTIA, "Gibbs-Appell", link_frames.link_inertia_gibbs_appell, 1, "as given"),
    (INERTIA, "library", dynamics.mass_matrix, 1, "world axes"),
    (BIAS, "Gibbs-Appell", bias_forces, 2, "as given"),
    (OUTWARD, "Newton-Euler", link_frames.link_kinematics, 3, "as given"),
    (FACTOR, "Cholesky", factor, 0, "any matrix"),
    (SYSTEM, "two triangular systems", system, 1, "any matrix"),
]


def own_counts(robot: str) -> list[str]:
    """The counts of one robot with its own zeros, the better of both sets of links."""
    given = link_frames.link_frames(getattr(jd.robots, robot)())
    both, n = (given, link_frames.regrouped(given)), len(given.a)

    def best(f: Callable, arrays: int) -> str:
        counts = [count_operations(f, links, *np.ones((arrays, n))) for links in both]
        return str(min(counts, key=lambda count: (count.M, count.A)))

    inverse, matrix = link_frames.link_gibbs_appell, link_frames.link_inertia_composite
    return [robot, best(inverse, 3), best(solve, 3), best(matrix, 1)]


def prismatic(data: Any, q: Any, b: Any, motion: Any) -> tuple[Vec3, ...]:
    """c, w, dc, dw, ddc of a sliding link, [Angeles] Algorithm 7.4.1, corrected."""
    links, rho, delta = data
    link = jax.tree.map(lambda x: x[1], links.at(q))
    c, w, dc, dw, ddc = map(Vec3.of, motion)
    u = link.out(delta) + Vec3(0, 0, b[0]) + rho
    c, w = link.out(c) + u, link.out(w)
    v = cross(w, u)
    dc = link.out(dc) + v + Vec3(0, 0, b[1])
    dw = link.out(dw)
    slid = Vec3(v.x, v.y, v.z + (b[1] + b[1]))
    ddc = link.out(ddc) + cross(dw, u) + cross(w, slid) + Vec3(0, 0, b[2])
    return c, w, dc, dw, ddc


def joint_counts(sizes: list[int]) -> dict[tuple[str, str], tuple[int, int]]:
    """M and A of each row of Algorithm 7.4.1 for one joint, given the rows before."""
    offsets = np.random.default_rng(0).normal(size=(2, 3))
    rho, delta = map(Vec3.of, jnp.asarray(offsets))
    data = family("as given", 0)(3)[0], rho, delta
    arrays = np.ones(3), np.ones(3), np.ones((5, 3))

    def sliding(k: int) -> tuple[int, int]:
        count = count_operations(lambda *x: prismatic(*x)[:k], data, *arrays)
        return count.M, count.A

    def turning(k: int) -> tuple[int, int]:
        first = lambda *x: link_frames.link_kinematics(*x)[:k]  # noqa: E731
        found = operation_polynomials(first, family("as given", 3), sizes)
        return int(found.M(2) - found.M(1)), int(found.A(2) - found.A(1))

    rows = {("revolute", "Q_i"): (0, 0), ("prismatic", "Q_i"): (0, 0)}
    items = ("c_i", "omega_i", "cdot_i", "omegadot_i", "cddot_i")
    for kind, counted in (("revolute", turning), ("prismatic", sliding)):
        totals = [(0, 0), *(counted(k) for k in range(1, 6))]
        for item, old, new in zip(items, totals, totals[1:], strict=False):
            rows[kind, item] = new[0] - old[0], new[1] - old[1]
    return rows
