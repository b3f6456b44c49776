"""Do gradients through simulations find torques of least effort?

Torques of all steps are found by L-BFGS on a cost of the motion under them, with
gradients by reverse mode through the rollout. A slider has a least effort in closed
form, to compare with. A gripper goes from hanging at rest to rest at a goal, in a short
and in a long time, by single shooting and by multiple shooting, which cuts the motion
into segments that are to meet; both may evaluate the cost about equally often. A PUMA
follows a cycloidal path; the heavier its distance from the path weighs, the closer it
stays, and the closer its torques come to those of inverse dynamics.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.timed_programs import QUICK
from experiments.reports import Report
from jaxdyn import optimize
from jaxdyn.io import Figure, Table

Found = optimize.OptimizedTorques


@dataclass(frozen=True)
class Slider:
    """A mass on a rail."""

    mass: float
    steps: int
    duration: float
    weight: float
    evaluations: int


@dataclass(frozen=True)
class Gripper:
    """A gripper that reaches a goal."""

    goal: list[float]
    steps: int
    durations: list[float]
    weight: float
    rate_weight: float
    segments: int
    defect: float
    evaluations: int
    round_evaluations: int


@dataclass(frozen=True)
class Puma:
    """An arm that follows a path."""

    start: list[float]
    goal: list[float]
    steps: int
    duration: float
    weights: list[float]
    evaluations: int


@dataclass(frozen=True)
class Config:
    """The settings of configs/least_effort.toml."""

    slider: Slider
    gripper: Gripper
    puma: Puma


def run(config: Config, folder: Path) -> Report:
    """All searches, with figures in the folder."""
    with ThreadPoolExecutor(2) as pool:  # compiling is most of the time
        multiple = pool.submit(reached, config.gripper, config.gripper.segments)
        single = pool.submit(reached, config.gripper, 1)
        slid = pool.submit(slide, config.slider)
        path, held, found = followed(config.puma)
        gripper = {"single": single.result(), "multiple": multiple.result()}
    plot_gripper(config.gripper, gripper, folder / "gripper.png")
    plot_puma(path, found, folder / "puma.png")
    return Report(
        "least_effort",
        "Torques of least effort",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [
            slider_table(config.slider, slid.result()),
            gripper_table(config.gripper, gripper),
            puma_table(path, held, found),
        ],
        [
            Figure("gripper.png", "The gripper: joints and torques, by duration."),
            Figure("puma.png", "The PUMA: distance from the path, and torques."),
        ],
    )


def slide(given: Slider) -> Found:
    """A slider from 0 to 1 at rest, with little force."""
    b = jd.ModelBuilder("slider", gravity=(0.0, 0.0, 0.0))
    box = jd.Inertial.box(given.mass, (0.1, 0.1, 0.1))
    b.add_body("mass", joint="prismatic", axis=(1, 0, 0), inertial=box)
    model, zero = b.build(), jnp.zeros(1)
    w = given.weight
    reach = optimize.reach(model, jnp.ones(1), weight=w, rate_weight=w)
    taus, dt = jnp.zeros((given.steps, 1)), given.duration / given.steps
    return optimize.optimize_torques(
        *(model, zero, zero, taus, dt, reach + optimize.effort()),
        steps=given.evaluations,
        compiler_options=QUICK,
    )


def least_effort(given: Slider) -> tuple[float, float]:
    """The least mean squared force for these steps, and in continuous time.

    Of all forces with A u = (1, 0) the smallest are A⁺ (1, 0); without steps they are
    6 m / T² (1 - 2 t / T), of mean square 12 m² / T⁴.
    """
    h, N = given.duration / given.steps, given.steps
    A = np.stack([h**2 * (N - np.arange(N)), np.full(N, h)]) / given.mass
    u = np.linalg.pinv(A) @ [1.0, 0.0]
    return float((u**2).mean()), 12 * given.mass**2 / given.duration**4


def reached(given: Gripper, segments: int) -> list[Found]:
    """The gripper from hanging to its goal, in each of the durations."""
    model = jd.robots.gripper()
    q0 = jnp.array([-jnp.pi / 2, 0.0, 0.0, 0.0])
    goal = jnp.asarray(given.goal)
    cost = optimize.reach(
        model, goal, weight=given.weight, rate_weight=given.rate_weight
    )
    taus = jnp.zeros((given.steps, 4))
    steps = given.evaluations if segments == 1 else given.round_evaluations
    return [
        optimize.optimize_torques(
            *(model, q0, jnp.zeros(4), taus, duration / given.steps),
            cost + optimize.effort(),
            segments=segments,
            defect_tolerance=given.defect,
            steps=steps,
            compiler_options=QUICK,
        )
        for duration in given.durations
    ]


def followed(given: Puma) -> tuple[Any, Any, dict[float, Found]]:
    """The path, the motion under torques of inverse dynamics, and those found."""
    model = jd.robots.puma_560()
    q0, q1 = jnp.asarray(given.start), jnp.asarray(given.goal)
    motion = jd.motion.cycloidal(model, q0, q1, given.duration)
    ts = jnp.linspace(0.0, given.duration, given.steps + 1)
    dt, rest = given.duration / given.steps, jnp.zeros(model.nv)
    hold = jnp.tile(jd.gravity_forces(model, q0), (given.steps, 1))
    found = {
        weight: optimize.optimize_torques(
            *(model, q0, rest, hold, dt),
            optimize.track(model, motion, ts, weight=weight) + optimize.effort(),
            steps=given.evaluations,
            compiler_options=QUICK,
        )
        for weight in given.weights
    }
    path = jax.vmap(motion)(ts)
    ahead = jax.vmap(lambda *x: jd.inverse_dynamics(model, *x))
    taus = ahead(path.q, path.qd, path.qdd)[:-1]
    return path, (taus, jd.rollout(model, q0, rest, taus, dt)[0]), found


def effort(taus: Any) -> float:
    """The mean squared torque."""
    return float((np.asarray(taus) ** 2).sum(axis=1).mean())


def slider_table(given: Slider, found: Found) -> Table:
    """The least mean squared force, found and in closed form."""
    steps, continuous = least_effort(given)
    rows = [
        ["found", f"{effort(found.taus):.6f}", f"{abs(float(found.q[-1, 0]) - 1):.0e}"],
        ["closed form, same steps", f"{steps:.6f}", "0"],
        ["closed form, continuous time", f"{continuous:.6f}", "0"],
    ]
    head = ["slider", "mean squared force (N²)", "distance from the goal (m)"]
    return Table(f"A slider of {given.mass} kg: {found.steps} evaluations", head, rows)


def gripper_table(given: Gripper, found: dict[str, list[Found]]) -> Table:
    """Costs, errors, effort and what was needed to find them."""
    rows = [
        [
            duration,
            name,
            f"{x.cost:.4f}",
            f"{np.abs(x.q[-1] - np.array(given.goal)).max():.1e}",
            f"{np.abs(x.qd[-1]).max():.1e}",
            f"{effort(x.taus):.4f}",
            x.steps,
            f"{x.defect:.0e}" if name == "multiple" else "–",
            f"{x.gap:.0e}" if name == "multiple" else "–",
        ]
        for k, duration in enumerate(given.durations)
        for name, x in ((name, rows[k]) for name, rows in found.items())
    ]
    head = ["duration (s)", "shooting", "cost", "angle (rad)", "rate (rad/s)"]
    head += ["effort (N²m²)", "evaluations", "defect", "gap"]
    caption = "The gripper at its goal, in one piece and in segments, from one start"
    return Table(caption, head, rows)


def puma_table(path: Any, held: Any, found: dict[float, Found]) -> Table:
    """Distances from the path and efforts, beside inverse dynamics."""
    rows = [
        [
            f"found, weight {weight:g}",
            f"{np.abs(x.q - path.q).max():.1e}",
            f"{effort(x.taus):.1f}",
            x.steps,
        ]
        for weight, x in found.items()
    ]
    taus, q = held
    ahead = [f"{np.abs(q - path.q).max():.1e}", f"{effort(taus):.1f}", "–"]
    rows.append(["inverse dynamics, open loop", *ahead])
    head = ["PUMA", "largest distance (rad)", "effort (N²m²)", "evaluations"]
    return Table("The PUMA on a cycloidal path", head, rows)


def plot_gripper(given: Gripper, found: dict[str, list[Found]], file: Path) -> None:
    """Joints and torques of both ways, a row for each duration."""
    count = len(given.durations)
    figure = matplotlib.figure.Figure(figsize=(9, 3.4 * count), layout="constrained")
    axes = figure.subplots(count, 2, squeeze=False)
    for (name, rows), style in zip(found.items(), ("-", "--"), strict=True):
        for (joints, torques), x in zip(axes, rows, strict=True):
            for k in range(4):
                label = f"joint {k + 1}" if name == "single" else None
                joints.plot(x.ts, x.q[:, k], style, color=f"C{k}", lw=1.4, label=label)
                torques.plot(x.ts[:-1], x.taus[:, k], style, color=f"C{k}", lw=1.2)
    for (joints, torques), duration in zip(axes, given.durations, strict=True):
        end = np.full(4, duration)
        joints.scatter(end, given.goal, c=[f"C{k}" for k in range(4)], zorder=3)
        joints.set(xlabel="time (s)", ylabel="angle (rad)")
        torques.set(xlabel="time (s)", ylabel="torque (Nm)")
        joints.grid(alpha=0.3)
        torques.grid(alpha=0.3)
    axes[0, 0].set_title("Joints; dots: the goal")
    axes[0, 1].set_title("Torques; dashed: multiple shooting")
    axes[0, 0].legend(fontsize=7)
    figure.savefig(file, dpi=130)


def plot_puma(path: Any, found: dict[float, Found], file: Path) -> None:
    """Distances from the path and torques, by weight."""
    figure = matplotlib.figure.Figure(figsize=(10, 3.8), layout="constrained")
    away, torques = figure.subplots(1, 2)
    for (weight, x), style in zip(found.items(), ("-", "--", ":", "-."), strict=False):
        size = np.linalg.norm(x.q - path.q, axis=1)
        away.semilogy(x.ts[1:], np.maximum(size[1:], 1e-12), style, label=f"{weight:g}")
        for k in range(3):
            torques.plot(x.ts[:-1], x.taus[:, k], style, color=f"C{k}", lw=1.2)
    away.set(xlabel="time (s)", ylabel="rad", title="Distance from the path, by weight")
    torques.set(xlabel="time (s)", ylabel="Nm", title="Torques of joints 1 to 3")
    for axes in (away, torques):
        axes.grid(alpha=0.3)
    away.legend()
    figure.savefig(file, dpi=130)
