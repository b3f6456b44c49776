"""Do mechanisms with closed loops move as [Ghosal] and [Shah] say?

Four-bar, five-bar, slider-crank, 3-RRR and Stewart-Gough platform fall from the starts
of the reference data: no joint forces, but for the platform, whose legs push with the
constant forces that carry it at the start. Classical Runge-Kutta steps of fixed length,
with three kinds of care for the loops: none, Baumgarte's method (the opening and its
rate are fed back into the accelerations), and projection of positions and rates after
each step. The papers have no numbers; motions are compared with independent software
(SciPy's DOP853 with tolerances of 1e-12), over its duration.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.parts.loop_figures import Motions, plot_drift, plot_forces, plot_poses
from experiments.parts.loop_motions import (
    CARES,
    Balance,
    Mechanism,
    Rows,
    Steps,
    balances,
    from_reference,
    mechanisms,
    motions,
)
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table


@dataclass(frozen=True)
class Config:
    """The settings of configs/closed_loops.toml."""

    planar: Path
    spatial: Path
    balance_rows: int
    steps: Steps


def run(config: Config, folder: Path) -> Report:
    """All motions, with figures in the folder."""
    given = mechanisms(config.planar, config.spatial)
    found = motions(given, config.steps)
    left = balances(given, [x["projection"] for x in found], config.balance_rows)
    plot_poses(given, found, folder / "motion.png")
    plot_forces(given, found, folder / "forces.png")
    plot_drift(given, found, folder / "drift.png")
    steps = config.steps
    duration = f"{steps.duration:g} s in steps of {steps.step:g} s"
    return Report(
        "closed_loops",
        "Closed loops: motion, loop forces, energy and drift",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [
            motion_table(given, found),
            drift_table(given, found, duration),
            balance_table(given, left),
        ],
        [
            Figure("motion.png", "The mechanisms, later instants darker."),
            Figure("forces.png", "Forces in the cut joints."),
            Figure("drift.png", f"Drift over {duration}."),
        ],
        verdicts(given, found, left),
    )


def motion_table(given: list[Mechanism], found: Motions) -> Table:
    """Size, ends, forces and distance from the reference."""
    rows = []
    for x, motion in zip(given, found, strict=True):
        y = motion["projection"]
        end = ", ".join(f"{q:.6f}" for q in y.q[-1][:4])
        more = ", ..." if x.model.nq > 4 else ""
        rows.append(
            (
                x.name,
                x.model.nv,
                x.model.nc,
                end + more,
                f"{np.abs(y.forces[0]).max():.3f}",
                f"{np.abs(y.forces).max():.2f}",
                f"{np.ptp(y.energy):.3g}",
                f"{from_reference(x, y):.0e}",
            )
        )
    head = (
        "mechanism",
        "joints",
        "rows",
        "q at the end",
        "largest loop force at the start, N",
        "and ever, N",
        "range of the energy, J",
        "from independent software, rad or m",
    )
    return Table("Motion with projection", head, rows)


def drift_table(given: list[Mechanism], found: Motions, duration: str) -> Table:
    """How far loops open, and energy drifts, under each kind of care."""
    rows = []
    for x, motion in zip(given, found, strict=True):
        for care in CARES:
            y = motion[care]
            opening, last = y.residual.max(), y.residual[-1]
            off = np.abs(y.drift).max()
            rows.append((x.name, care, f"{opening:.0e}", f"{last:.0e}", f"{off:.0e}"))
    head = (
        "mechanism",
        "care",
        "widest opening, m",
        "at the end, m",
        "energy error, J",
    )
    return Table(f"Drift over {duration}", head, rows)


def balance_table(given: list[Mechanism], left: list[Balance]) -> Table:
    """What is left over of the equations."""
    rows = [
        (x.name, f"{y.motion:.0e}", f"{y.closure:.0e}", f"{y.cut:.0e}")
        for x, y in zip(given, left, strict=True)
    ]
    head = (
        "mechanism",
        "M q̈ + h − τ − Ψᵀλ",
        "Ψ q̈ + Ψ̇ q̇",
        "q̈ of the cut tree under λ, less q̈",
    )
    return Table("The equations along the motion, relative residuals", head, rows)


def verdicts(
    given: list[Mechanism], found: Motions, left: list[Balance]
) -> list[Verdict]:
    """What becomes of each claim, the numbers deciding."""
    projected = [x["projection"] for x in found]
    error = max(from_reference(x, y) for x, y in zip(given, projected, strict=True))
    equations = max(max(x.motion, x.closure) for x in left)
    cut = max(x.cut for x in left)
    return [
        Verdict(
            "[Ghosal] lecture 30, equations of motion with loops",
            "M q̈ − Ψᵀλ = τ − C q̇ − G − F and Ψ q̈ = −Ψ̇ q̇: n + m equations for q̈ and λ",
            "reproduced" if max(equations, error) < 1e-6 else "not reproducible",
            f"both hold to {equations:.0e} along the motions of five mechanisms, which "
            f"are within {error:.0e} (rad or m) of independent software.",
        ),
        Verdict(
            "[Ghosal] lecture 30, improved algorithm",
            "for known λ a parallel manipulator is equivalent to a serial one with "
            "extra forcing terms",
            "reproduced" if cut < 1e-10 else "not reproducible",
            f"the open tree under the loop forces has the same q̈ to {cut:.0e}, by an "
            "O(n) recursion.",
        ),
        Verdict(
            "[Shah] section 2.2",
            "closed loops are cut at joints, whose multipliers act as external forces "
            "on the open systems",
            "reproduced" if cut < 1e-10 else "not reproducible",
            f"as external wrenches on both bodies of each cut joint: to {cut:.0e}. "
            "Determinate and indeterminate subsystems belong to inverse dynamics.",
        ),
        _drift(projected, found),
    ]


def _drift(projected: list[Rows], found: Motions) -> Verdict:
    opening = {c: [x[c].residual.max() for x in found] for c in CARES}
    energy = max(np.abs(x.drift).max() for x in projected)
    free, held = max(opening["none"]), max(opening["projection"])
    return Verdict(
        "[Ghosal] lecture 30, equations of motion with loops",
        "the constraints enter as Ψ q̈ = −Ψ̇ q̇ only",
        "reproduced in a different form" if held < 1e-10 else "not reproducible",
        "so integrated, nothing holds the loops but the accuracy of the steps: they "
        f"open by up to {free:.0e} m. With Baumgarte's method it is "
        f"{max(opening['Baumgarte']):.0e} m, with projection {held:.0e} m, and energy "
        f"minus work stays within {energy:.0e} J.",
    )
