"""Do the recursions of [Ghosal] serve a tree, and when do its formulas hold?

Lecture 30: root, two arms, branches and leaves, 11 bodies. All formulations against
independent software, equations 46 to 50 as printed at growing speeds, gravity as an
acceleration of the base, and a motion that keeps its energy.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from experiments.parts.tree_figures import plot_motion, plot_speeds, plot_tree
from experiments.parts.tree_recursion import (
    as_printed,
    gyroscopic_part,
    mass_accelerations,
)
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table
from jaxdyn.view import draw


@dataclass(frozen=True)
class Motion:
    """A free motion and the tolerance of the solver."""

    duration: float
    samples: int
    tolerance: float


@dataclass(frozen=True)
class Config:
    """The settings of configs/tree.toml."""

    reference: Path
    forward: list[str]
    inverse: list[str]
    speeds: list[float]
    motion: Motion

    def __post_init__(self) -> None:
        x = self.speeds
        if len(x) < 3 or x[0] != 0 or sorted(set(x)) != x:
            raise ValueError(f"speeds is {x}, expected 0 and two or more, growing.")


@dataclass(frozen=True)
class Moved:
    """The free motion, beside the reference, and how well it keeps the energy."""

    run: jd.Trajectory
    error: float  # from the reference, rad
    stored: float  # between two tolerances of the reference, rad
    drift: float  # of the energy, J


def run(config: Config, folder: Path) -> Report:
    """All parts of the study, with pictures in the folder."""
    data = json.loads(config.reference.read_text(encoding="utf-8"))
    model, states = jd.robots.lecture_tree(), data["states"]
    with ThreadPoolExecutor(1) as beside:  # compiling is most of the time of a run
        motion = beside.submit(free_motion, model, data["free_motion"], config.motion)
        errors = method_errors(model, states, config)
        printed = printed_errors(model, states, config.speeds)
        moved = motion.result()
    plot_tree(model, folder / "tree.png")
    draw(model, moved.run.q[0], folder / "pose.png")
    plot_speeds(config.speeds, printed, folder / "speeds.png")
    plot_motion(model, moved.run, folder / "motion.png")
    return Report(
        name="tree",
        title="A tree: arms, branches and leaves",
        text=_TEXT,
        tables=[
            modules_table(model),
            errors_table(errors, len(states)),
            speeds_table(config.speeds, printed),
        ],
        figures=[
            Figure("tree.png", "The tree and its modules, numbered as in the lecture."),
            Figure("pose.png", "The tree at the start of the motion."),
            Figure("speeds.png", "Error of (46) to (50) as printed, against speed."),
            Figure("motion.png", "The free motion and its energy."),
        ],
        verdicts=verdicts(config, model, states, errors, printed, moved),
    )


_TEXT = """\
The lecture draws a tree with a fixed root 0, one arm that begins 1, 3, 6, another that
begins 2, 4, 5, and leaves up to 11. It gives no numbers. Here the parents of bodies 1
to 11 are 0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 8; joints are revolute about general axes, and
geometry and masses are random ones that come with the package. Reference values are
those of independent software (Pinocchio, 50-digit arithmetic, SciPy's DOP853)."""


def method_errors(
    model: jd.Model, states: list[Any], config: Config
) -> dict[tuple[str, str], float]:
    """The largest relative error of each formulation over the states."""
    quantities = {
        "forward": (jd.forward_dynamics, config.forward, "tau", "qdd_fd"),
        "inverse": (jd.inverse_dynamics, config.inverse, "qdd", "tau_id"),
    }
    found = {}
    for name, (function, methods, given, result) in quantities.items():
        inputs = [_rows(states, key) for key in ("q", "qd", given)]
        exact = _rows(states, result)
        for method in methods:
            one = partial(function, model, method=method)
            values = [one(*x) for x in zip(*inputs, strict=True)]
            found[name, method] = _relative(values, exact)
    return found


def printed_errors(
    model: jd.Model, states: list[Any], speeds: list[float]
) -> dict[str, list[float]]:
    """Errors of the printed formulas at speeds that are multiples of the reference's.

    With minus the gravity vector as acceleration of the base ("up"), with the vector
    itself ("down"), and without any; the largest over the states.
    """
    up = -np.asarray(model.gravity)
    bases = {"up": up, "down": -up, "none": np.zeros(3)}
    q, qd, tau = (_rows(states, key) for key in ("q", "qd", "tau"))
    moving = partial(jd.forward_dynamics, model)
    exact = [[moving(*x) for x in zip(q, v * qd, tau, strict=True)] for v in speeds]
    found = {}
    for name, base in bases.items():
        rest = [as_printed(model, *x, base) for x in zip(q, tau, strict=True)]
        found[name] = [
            max(_relative(*pair) for pair in zip(rest, rows, strict=True))
            for rows in exact
        ]
    return found


def free_motion(model: jd.Model, stored: dict[str, Any], given: Motion) -> Moved:
    """The motion without joint forces, from the start of the reference motion."""
    ts = np.linspace(0.0, given.duration, given.samples)
    times = np.array(stored["t"])
    every = np.unique(np.round(np.concatenate([ts, times]), 12))
    q0, qd0 = (jnp.asarray(np.array(stored[key][0])) for key in ("q", "qd"))
    controller = diffrax.PIDController(rtol=given.tolerance, atol=given.tolerance)
    solver, times_asked = diffrax.Dopri8(), jnp.asarray(every)
    run = jd.simulate(
        model, q0, qd0, times_asked, solver=solver, stepsize_controller=controller
    )
    at = np.searchsorted(every, np.round(times, 12))
    return Moved(
        run=run,
        error=float(np.abs(np.asarray(run.q)[at] - np.array(stored["q"])).max()),
        stored=stored["max_diff_between_tolerances"],
        drift=float(jnp.abs(run.energy - run.energy[0]).max()),
    )


def modules_table(model: jd.Model) -> Table:
    """The modules, bodies numbered from 1 as in the lecture."""
    modules, rows = model.modules, []
    for i, (names, parent) in enumerate(
        zip(modules.bodies, modules.parents, strict=True)
    ):
        numbers = ", ".join(str(model.body(name) + 1) for name in names)
        rows.append((f"M{i + 1}", "root" if parent < 0 else f"M{parent + 1}", numbers))
    return Table("Kinematic modules of the tree", ("module", "on", "bodies"), rows)


def errors_table(errors: dict[tuple[str, str], float], count: int) -> Table:
    """The error of each formulation."""
    rows = [(*key, f"{error:.0e}") for key, error in errors.items()]
    head = ("dynamics", "method", "largest relative error")
    return Table(f"Against independent software, {count} states", head, rows)


def speeds_table(speeds: list[float], printed: dict[str, list[float]]) -> Table:
    """The error of the printed formulas at each speed, for each base."""
    words = {"up": "-g, upward", "down": "+g, downward", "none": "0, as in (48)"}
    head = ("speed", *(f"base {words[name]}" for name in printed))
    columns = zip(*printed.values(), strict=True)
    rows = [
        (f"{speed:g}", *(f"{x:.1e}" for x in row))
        for speed, row in zip(speeds, columns, strict=True)
    ]
    return Table("Relative error of (46) to (50) as printed, on the tree", head, rows)


def verdicts(
    config: Config,
    model: jd.Model,
    states: list[Any],
    errors: dict[tuple[str, str], float],
    printed: dict[str, list[float]],
    moved: Moved,
) -> list[Verdict]:
    """What becomes of each claim, the numbers deciding."""
    worst = {k: max(e for (x, _), e in errors.items() if x == k) for k, _ in errors}
    most = float(moved.run.kinetic_energy.max())
    is_kept = moved.error < moved.stored and moved.drift < 1e-9 * most
    is_exact = max(worst.values()) < 1e-12
    return [
        Verdict(
            "[Ghosal] slide 71",
            "the articulated-body algorithm can be used for a tree",
            "reproduced" if is_exact and is_kept else "not reproducible",
            f"accelerations to {errors['forward', 'articulated']:.0e}, by any "
            f"formulation to {worst['forward']:.0e}, torques to {worst['inverse']:.0e} "
            f"of independent software; a motion of {moved.run.ts[-1]:g} s keeps the "
            f"energy to {moved.drift:.0e} J, of which up to {most:.0f} J are kinetic, "
            f"and agrees to {moved.error:.0e} rad in its first second.",
        ),
        _formulas_verdict(config.speeds, printed),
        _gyroscopic_verdict(model, states),
        _base_verdict(model, states, printed),
        _reactions_verdict(model, states[0]),
    ]


def _formulas_verdict(speeds: list[float], printed: dict[str, list[float]]) -> Verdict:
    rest, slow, *_, full = printed["up"]
    power = np.log(full / slow) / np.log(speeds[-1] / speeds[1])
    return Verdict(
        "[Ghosal] eqs. 46 to 50",
        "the recursion gives the accelerations of all joints",
        "reproduced in a different form" if rest < 1e-12 else "not reproducible",
        f"as printed at rest only: relative error {rest:.0e} there, {full:.2g} at the "
        f"speeds of the reference, growing with their power {power:.2f}. The method "
        '"articulated" has the velocity terms and holds at any speed.',
    )


def _gyroscopic_verdict(model: jd.Model, states: list[Any]) -> Verdict:
    q, qd = _rows(states[:1], "q")[0], _rows(states[:1], "qd")[0]
    turned = gyroscopic_part(model, q, qd)
    return Verdict(
        "[Ghosal] slide 67",
        "no ω x I ω term, since all is with respect to the centre of mass",
        "not reproducible" if turned > 1e-9 else "reproduced",
        f"about the centre of mass ω x I ω is up to {turned:.2g} N m in the first "
        "state: it vanishes at rest or about a principal axis. The lecture's own "
        "eq. 37 has it.",
    )


def _base_verdict(
    model: jd.Model, states: list[Any], printed: dict[str, list[float]]
) -> Verdict:
    """Gravity as acceleration of the base, in inverse dynamics and in (48)."""
    weightless = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))
    state = (jnp.asarray(np.array(states[0][key])) for key in ("q", "qd", "qdd"))
    base = jd.BaseMotion(dv=-model.gravity)
    tau = jd.inverse_dynamics(weightless, *state, base=base)
    error = _relative(tau, states[0]["tau_id"])
    is_same = max(error, printed["up"][0]) < 1e-12
    return Verdict(
        "[Ghosal] eq. 45",
        "gravity is included by an acceleration of the base, upward with 1 g",
        "reproduced" if is_same else "not reproducible",
        f"torques to {error:.0e}, accelerations at rest to {printed['up'][0]:.0e}. The "
        "printed V0' = g means the upward vector: with the gravity vector itself the "
        f"accelerations are wrong by {printed['down'][0]:.1f} of the largest, with "
        f"A0 = 0 as in (48) by {printed['none'][0]:.1f}.",
    )


def _reactions_verdict(model: jd.Model, state: dict[str, Any]) -> Verdict:
    """What the root bears: the weight and the inertia of all bodies."""
    q, qd, qdd = (jnp.asarray(np.array(state[key])) for key in ("q", "qd", "qdd"))
    wrenches = jd.joint_reactions(model, q, qd, qdd)
    on_root = sum(wrenches[i, :3] for i, p in enumerate(model.parents) if p < 0)
    felt = mass_accelerations(model, q, qd, qdd) - np.asarray(model.gravity)
    borne = np.asarray(model.mass) @ felt
    error = _relative(on_root, borne)
    return Verdict(
        "[Ghosal] slide 62",
        "f and n give all components of the reactions at the joints, useful for design",
        "reproduced" if error < 1e-12 else "not reproducible",
        "the reactions at both arms add up to the weight and the mass times "
        f"acceleration of all bodies, to {error:.0e}.",
    )


def _rows(states: list[Any], key: str) -> Any:
    return jnp.asarray(np.array([state[key] for state in states]))


def _relative(value: Any, exact: Any) -> float:
    value, exact = np.asarray(value), np.asarray(exact)
    return float(np.abs(value - exact).max() / np.abs(exact).max())
