"""Does the articulated inertia solve the two sliders of [Ghosal], step by step?

Lecture 30, the planar 2P example: the equations with two multipliers as printed, the
recursion (46) to (50) with every number, the closed form, and the library beside them.
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.two_sliders_steps import (
    Case,
    Solution,
    by_library,
    closed_form,
    difference,
    felt_inertia,
    recursion,
    with_masses,
    with_multipliers,
)
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table

INVERSE = ("newton_euler", "gibbs_appell", "denoc")
FORWARD = ("denoc", "articulated", "composite", "gibbs_appell", "noc")
Pair = tuple[float, float]


@dataclass(frozen=True)
class Motion:
    """A motion under constant forces."""

    q0: Pair
    qd0: Pair
    duration: float


@dataclass(frozen=True)
class Config:
    """The settings of configs/two_sliders.toml."""

    reference: Path
    masses: Pair
    forces: tuple[Pair, Pair]
    tau: Pair
    random_cases: int
    seed: int
    motion: Motion


def run(config: Config, folder: Path) -> Report:
    """All steps of one case, then many cases, then a motion."""
    case = Case(*map(np.array, (config.masses, config.forces, config.tau)))
    model = with_masses(case.m)
    methods = by_methods(model, case)
    random = random_errors(config.random_cases, config.seed)
    stored = stored_error(config.reference)
    motion_error = plot_motion(model, case, config.motion, folder / "motion.png")
    return Report(
        name="two_sliders",
        title="Two sliders and their articulated inertia",
        text=_TEXT,
        tables=[steps_table(model, case), methods_table(methods)],
        figures=[
            Figure("motion.png", "Where both bodies go under the forces of the table.")
        ],
        verdicts=verdicts(model, case, methods, random, stored, motion_error),
    )


_TEXT = """\
Body 1 slides along x, body 2 slides on body 1 along y; both are pushed by forces, and
there is no gravity. The lecture writes the equations of both bodies with a multiplier
for each constraint (λ1 for y1'' = 0, λ2 for x2'' = x1''). Body 2, the last one, has one
multiplier, body 1 has both. Articulated inertias give body 1 an equation like that of
body 2, so that accelerations follow one after the other. With the signs of the lecture
a multiplier is minus the force that the joint exerts on its body.

Body forces are not in the lecture's formula (47), which has P = 0 for the last body:
here they start the bias, P = -f."""


def steps_table(model: jd.Model, case: Case) -> Table:
    """Every step of the recursion beside the closed form and the library."""
    m1, m2 = case.m
    exact, ours, x = closed_form(case), by_library(model, case), recursion(case)
    factor = jd.factor(model, jnp.zeros(2))
    assert isinstance(factor, jd.Factor)
    D = np.asarray(factor.D)
    (fx1, fy1), (fx2, fy2) = case.f
    rows = [
        ("Jᴬ of body 2", "diag(m2, m2)", [m2, m2], np.diag(x["J2"]), None),
        ("bias P of body 2", "-(fx2, fy2)", [-fx2, -fy2], x["P2"], None),
        ("pivot S2ᵀ Jᴬ S2", "m2", m2, x["pivot2"], D[1]),
        ("what body 1 feels of it", "diag(m2, 0)", [m2, 0], np.diag(x["handed"]), None),
        (
            "Jᴬ of body 1, (47)",
            "diag(m1 + m2, m1)",
            [m1 + m2, m1],
            np.diag(x["J1"]),
            np.diag(felt_inertia(case.m)),
        ),
        (
            "bias P of body 1, (47)",
            "-(fx1 + fx2, fy1 - τ2)",
            [-fx1 - fx2, -fy1 + case.tau[1]],
            x["P1"],
            None,
        ),
        ("pivot S1ᵀ Jᴬ S1", "m1 + m2", m1 + m2, x["pivot1"], D[0]),
        (
            "x1'', (50)",
            "(fx1 + fx2 + τ1)/(m1 + m2)",
            exact.qdd[0],
            x["x1dd"],
            ours.qdd[0],
        ),
        ("y2'', (50)", "(fy2 + τ2)/m2", exact.qdd[1], x["y2dd"], ours.qdd[1]),
        ("λ1", "fy1 - τ2", exact.multipliers[0], x["lambda1"], ours.multipliers[0]),
        (
            "λ2",
            "fx2 - m2 x1''",
            exact.multipliers[1],
            x["lambda2"],
            ours.multipliers[1],
        ),
    ]
    caption = f"m1 = {m1:g}, m2 = {m2:g} kg, f1 = ({fx1:g}, {fy1:g}), f2 = ({fx2:g}, "
    return Table(
        f"{caption}{fy2:g}) N: the recursion in its order",
        ("step", "formula", "closed form", "recursion (46)-(50)", "jaxdyn"),
        [(name, formula, *map(_shown, values)) for name, formula, *values in rows],
    )


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return ", ".join(f"{x + 0.0:.6g}" for x in np.atleast_1d(np.asarray(value, float)))


def by_methods(model: jd.Model, case: Case) -> list[tuple[str, str, Any, float]]:
    """Quantity, method, value and error of every formulation on the same case."""
    rest, f_ext = jnp.zeros(2), jnp.pad(jnp.asarray(case.f), ((0, 0), (0, 4)))
    exact, tau, found = closed_form(case).qdd, case.tau, []
    for method in FORWARD:
        one = partial(jd.forward_dynamics, f_ext=f_ext, method=method)
        qdd = one(model, rest, rest, jnp.asarray(tau))
        found.append(("forward: x1'', y2''", method, qdd, np.abs(qdd - exact).max()))
    for method in INVERSE:
        one = partial(jd.inverse_dynamics, f_ext=f_ext, method=method)
        forces = one(model, rest, rest, jnp.asarray(exact))
        found.append(("inverse: τ1, τ2", method, forces, np.abs(forces - tau).max()))
    return found


def methods_table(methods: list[tuple[str, str, Any, float]]) -> Table:
    """Every formulation on the same case."""
    rows = [(*names, _shown(value), f"{error:.0e}") for *names, value, error in methods]
    return Table("All formulations", ("quantity", "method", "value", "error"), rows)


def random_errors(count: int, seed: int) -> dict[str, float]:
    """The largest errors over random masses and forces, relative to the largest force.

    Of the library, of the recursion and of the equations with multipliers.
    """
    rng, errors = np.random.default_rng(seed), {}
    for _ in range(count):
        f = rng.normal(size=(2, 2))
        case = Case(rng.uniform(0.1, 10.0, 2), f, rng.normal(size=2))
        exact, x = closed_form(case), recursion(case)
        others = {
            "library": by_library(with_masses(case.m), case),
            "recursion": Solution(
                np.array([x["x1dd"], x["y2dd"]]), np.array([x["lambda1"], x["lambda2"]])
            ),
            "multipliers": with_multipliers(case),
        }
        for name, other in others.items():
            apart = difference(other, exact) / np.abs(f).max()
            errors[name] = max(errors.get(name, 0.0), apart)
    return errors


def stored_error(reference: Path) -> float:
    """The largest difference from the stored accelerations and multipliers."""
    data = json.loads(reference.read_text(encoding="utf-8"))
    masses = np.array([body["mass"] for body in data["model"]["bodies"]])
    errors = []
    for state in data["states"]:
        f = np.array(state["fext_local"])[:, :2]
        key = "lambda1_vertical_constraint_force_on_body1_taken_negative"
        multipliers = np.array([state[key], state["lambda2"]])
        stored = Solution(np.array(state["qdd_fd_fext"]), multipliers)
        case = Case(masses, f, np.array(state["tau"], float))
        errors.append(difference(by_library(with_masses(masses), case), stored))
    return max(errors)


def plot_motion(model: jd.Model, case: Case, given: Motion, path: Path) -> float:
    """A simulation and a picture of it; its distance from the parabolas of theory."""
    q0, qd0 = jnp.asarray(given.q0), jnp.asarray(given.qd0)
    ts = jnp.linspace(0.0, given.duration, 41)
    f_ext = jnp.pad(jnp.asarray(case.f), ((0, 0), (0, 4)))
    run = jd.simulate(model, q0, qd0, ts, torque=jnp.asarray(case.tau), f_ext=f_ext)
    q, t = np.asarray(run.q), np.asarray(ts)[:, None]
    theory = np.asarray(q0) + np.asarray(qd0) * t + closed_form(case).qdd * t**2 / 2
    figure = matplotlib.figure.Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.axhline(0.0, color="0.6", lw=1)
    for k in range(0, len(ts), 10):
        left.plot([q[k, 0]] * 2, [0.0, q[k, 1]], color="0.7", lw=1)
    left.plot(q[::10, 0], 0 * q[::10, 0], "s", ms=9, label="body 1")
    left.plot(q[:, 0], q[:, 1], "C1-", lw=0.8)
    left.plot(q[::10, 0], q[::10, 1], "C1o", ms=7, label="body 2")
    left.set_xlabel("x (m)")
    left.set_ylabel("y (m)")
    for k, name in enumerate(("x1", "y2")):
        right.plot(ts, q[:, k], label=f"{name}, simulated")
        right.plot(ts[::4], theory[::4, k], "k.", label="closed form" if k else None)
    right.set_xlabel("time (s)")
    right.set_ylabel("displacement (m)")
    for axes in (left, right):
        axes.legend(fontsize="small")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    return float(np.abs(q - theory).max())


def verdicts(
    model: jd.Model,
    case: Case,
    methods: list[tuple[str, str, Any, float]],
    random: dict[str, float],
    stored: float,
    motion_error: float,
) -> list[Verdict]:
    """What becomes of each claim, the numbers deciding."""
    exact, ours = closed_form(case), by_library(model, case)
    felt = felt_inertia(case.m)
    apart = np.abs(felt - np.diag([case.m.sum(), case.m[0]])).max()
    largest = max(error for *_, error in methods)
    is_same = max(random["library"], stored, largest, motion_error) < 1e-12
    return [
        Verdict(
            "[Ghosal] slide 66",
            "the articulated inertia of body 1 is diag(m1 + m2, m1)",
            "reproduced" if apart < 1e-12 * felt.max() else "not reproducible",
            f"diag({felt[0, 0]:g}, {felt[1, 1]:g}) kg felt by a hand on body 1, to "
            f"{apart:.0e} kg; the composite inertia would be {case.m.sum():g} kg in y.",
        ),
        Verdict(
            "[Ghosal] slide 66",
            "x1'' = (fx1 + fx2)/(m1 + m2), y2'' = fy2/m2, without λ2",
            "reproduced" if is_same else "not reproducible",
            f"x1'' = {ours.qdd[0]:.6g}, y2'' = {ours.qdd[1]:.6g} m/s² by "
            f"{len(FORWARD)} formulations, to {largest:.0e}; {random['library']:.0e} "
            f"over random masses and forces, {stored:.0e} from the stored values, "
            f"{motion_error:.0e} m in a simulation.",
        ),
        Verdict(
            "[Ghosal] slide 65",
            "two multipliers for two constraints, body 1 has both",
            "reproduced"
            if max(random["multipliers"], random["library"]) < 1e-12
            else "not reproducible",
            f"λ1 = fy1 = {exact.multipliers[0]:.6g} N, λ2 = fx2 - m2 x1'' = "
            f"{exact.multipliers[1]:.6g} N from the six printed equations at once; by "
            "their signs λ is minus the force of the joint on its body: minus the "
            f"library's joint reactions, to {random['library']:.0e}.",
        ),
        Verdict(
            "[Ghosal] eqs. 46 to 50",
            "the recursion solves the example without forming a system of equations",
            "reproduced in a different form"
            if random["recursion"] < 1e-12
            else "not reproducible",
            f"to {random['recursion']:.0e} over random cases, once the forces on the "
            "bodies are put into the bias (P = -f, not 0, for the last body): the "
            "printed (47) knows joint forces only. Sliders do not turn, so the "
            "velocity terms missing in (46) to (50) vanish here; see the tree.",
        ),
    ]
