"""Do the modules, torques and free fall of the gripper come out as [Shah] says?

Figs. 5 and 6 for both readings of where the second finger sits, the factor U D Uᵀ of
the inertia matrix by modules (eqs. 16 to 21), and the energy of the fall.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from experiments.parts.gripper_figures import plot_falls, plot_poses, plot_torques
from experiments.parts.gripper_motions import (
    JOINTS,
    METHODS,
    READINGS,
    Fall,
    Falls,
    Forces,
    Motion,
    by_modules,
    fall,
    readings,
    torques,
)
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table

TIMED = True


@dataclass(frozen=True)
class Config:
    """The settings of configs/gripper.toml."""

    reference: Path
    motion: Motion
    fall: Fall


def run(config: Config, folder: Path) -> Report:
    """All parts of the study, with figures in the folder."""
    cases = json.loads(config.reference.read_text(encoding="utf-8"))["cases"]
    models = readings()
    forces = [
        torques(model, config.motion, case["inverse_dynamics"])
        for model, case in zip(models, cases, strict=True)
    ]
    falls = [
        fall(model, config.fall, case["free_fall"])
        for model, case in zip(models, cases, strict=True)
    ]
    q = forces[0].motion.q[len(forces[0].ts) // 2]
    M = np.asarray(jd.mass_matrix(models[0], q))
    U, D = by_modules(models[0], q)
    plot_torques(forces, folder / "torques.png")
    plot_falls(falls, folder / "fall.png")
    plot_poses(forces, falls, folder / "poses.png")
    return Report(
        name="gripper",
        title="The gripper: modules, torques and free fall",
        text=_TEXT,
        tables=[
            modules_table(models[0]),
            factor_table(U, D, M),
            torque_table(forces),
            fall_table(falls, config.fall),
        ],
        figures=[
            Figure(
                "poses.png", "The motion of Table 2 and the fall, at some instants."
            ),
            Figure("torques.png", "Joint torques of the motion, [Shah] Fig. 5."),
            Figure("fall.png", "Joint angles of the fall, [Shah] Fig. 6, and energy."),
        ],
        verdicts=verdicts(config, models[0], forces, falls, (U, D, M)),
    )


_TEXT = """\
Four slender rods in a vertical plane: link 1¹ carries a finger of two links (1², 2²)
and one of a single link (1³). The paper gives lengths, masses and motions. It does not
say where the second finger is attached, how the mass is spread, or where gravity
points. The authors' own simulator has the finger at the middle of link 1, slender rods
and gravity along -y. Here both places are computed. The curves of Figs. 5 and 6 are not
in the text of the paper, so our numbers are compared with those of independent software
for the same system (Pinocchio, 50-digit arithmetic, SciPy's DOP853)."""


def modules_table(model: jd.Model) -> Table:
    """The modules with their parents and links."""
    found = zip(model.modules.bodies, model.modules.parents, strict=True)
    rows = [
        (f"M{i + 1}", "base" if parent < 0 else f"M{parent + 1}", ", ".join(names))
        for i, (names, parent) in enumerate(found)
    ]
    return Table(
        "Modules, as the library cuts the tree", ("module", "on", "links"), rows
    )


def factor_table(U: np.ndarray, D: np.ndarray, M: np.ndarray) -> Table:
    """U, D and M row by row, in 10⁻³ kg m² but for U."""

    def shown(row: np.ndarray, scale: float = 1.0) -> str:
        return ", ".join(f"{x / scale:.4f}" if x else "0" for x in row)

    return Table(
        "U and D of eq. 18 by modules, and M, at the middle of the motion (D, M in "
        "10⁻³ kg m²)",
        ("joint", "U", "D", "M"),
        [
            (name, shown(U[k]), shown(D[k], 1e-3), shown(M[k], 1e-3))
            for k, name in enumerate(JOINTS)
        ],
    )


def torque_table(forces: list[Forces]) -> Table:
    """Torques at a few instants in both readings."""
    rows = []
    for reading, x in zip(READINGS, forces, strict=True):
        for k in np.linspace(0, len(x.ts) - 1, 5).astype(int):
            rows.append((reading, f"{x.ts[k]:.2f}", *(f"{v:.8f}" for v in x.tau[k])))
    return Table(
        "Joint torques of the motion, N m", ("reading", "t (s)", *JOINTS), rows
    )


def fall_table(falls: list[Falls], given: Fall) -> Table:
    """How far the runs are apart, and how well they keep the energy."""
    rows = []
    for reading, x in zip(READINGS, falls, strict=True):
        apart = {"fixed": f"{x.fixed.max():.1e}", "tight": None}
        labels = {
            "fixed": f"Runge-Kutta 4, step {given.step} s",
            "tight": f"Dormand-Prince 8(7), {given.tolerance:g}",
        }
        for name, label in labels.items():
            drift = f"{x.energy[name].max():.1e}"
            rows.append((reading, label, x.steps[name], apart[name], drift))
    head = (
        "reading",
        "integrator",
        "steps",
        "from the tight run, rad",
        "energy error, J",
    )
    return Table(f"Free fall for {given.duration} s", head, rows)


def verdicts(
    config: Config,
    model: jd.Model,
    forces: list[Forces],
    falls: list[Falls],
    factor: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> list[Verdict]:
    """What becomes of each claim, the numbers deciding."""
    return [
        _modules_verdict(model),
        _factor_verdict(model, *factor),
        _ends_verdict(forces[0]),
        _gravity_verdict(model, forces[0]),
        _torque_verdict(forces),
        _fall_verdict(falls, config.fall),
        Verdict(
            "[Shah] sections 3.1 and 3.2",
            "the torques take 0.025 s (ADAMS 1.95 s), the fall 0.29 s (ADAMS 31 s)",
            "not reproducible",
            "ADAMS and the computers of the paper are not here, and the length of the "
            f"fall is not stated. Ours, compiled: {1e3 * forces[0].seconds:.2f} ms for "
            f"{len(forces[0].ts)} instants, {1e3 * falls[0].seconds:.1f} ms for "
            f"{falls[0].steps['fixed']} steps; not comparable.",
        ),
    ]


def _modules_verdict(model: jd.Model) -> Verdict:
    N_l, N_d = jd.denoc_matrices(model, jnp.zeros(model.nq))
    sizes = tuple(map(len, model.modules.bodies))
    found = sizes == (1, 2, 1) and model.modules.parents == (-1, 0, 0)
    found = found and (N_l.shape, N_d.shape) == ((24, 24), (24, 4))
    return Verdict(
        "[Shah] section 3, eq. 14",
        "three modules of 1, 2 and 1 links; N_l is 24 x 24 and N_d 24 x 4",
        "reproduced" if found else "not reproducible",
        f"modules of {', '.join(map(str, sizes))} links; N_l {N_l.shape[0]} x "
        f"{N_l.shape[1]}, N_d {N_d.shape[0]} x {N_d.shape[1]}.",
    )


def _factor_verdict(
    model: jd.Model, U: np.ndarray, D: np.ndarray, M: np.ndarray
) -> Verdict:
    error = np.abs(U @ D @ U.T - M).max() / np.abs(M).max()
    full = abs(D[1, 2]) / D[1, 1]
    return Verdict(
        "[Shah] eqs. 16 to 21",
        "block elimination by modules gives the inertia matrix as U D Uᵀ",
        "reproduced" if error < 1e-14 else "not reproducible",
        f"U D Uᵀ differs from M by {error:.0e} of its largest entry. D has a full "
        f"2 x 2 block for module 2 (off its diagonal {full:.0%} of the larger entry): "
        "divisors are numbers only after a second elimination inside the module, as in "
        "the library's factor.",
    )


def _ends_verdict(found: Forces) -> Verdict:
    ends = np.asarray([0, -1])
    rates = np.abs(found.motion.qd[ends]).max(), np.abs(found.motion.qdd[ends]).max()
    return Verdict(
        "[Shah] eq. 15",
        "rates and accelerations of the motion vanish at both ends",
        "reproduced" if max(rates) < 1e-12 else "not reproducible",
        f"at most {rates[0]:.0e} rad/s and {rates[1]:.0e} rad/s².",
    )


def _gravity_verdict(model: jd.Model, found: Forces) -> Verdict:
    """Gravity as an acceleration of the base, with both signs."""
    weightless = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))
    k = len(found.ts) // 2
    x = jax.tree.map(lambda rows: rows[k], found.motion)

    def error(sign: float) -> float:
        base = jd.BaseMotion(dv=sign * model.gravity)
        tau = jd.inverse_dynamics(weightless, x.q, x.qd, x.qdd, base=base)
        return float(jnp.abs(tau - found.tau[k]).max() / np.abs(found.tau[k]).max())

    as_printed, reversed_ = error(1.0), error(-1.0)
    return Verdict(
        "[Shah] Table 1, note",
        "gravity is included by adding gravitational acceleration to the links on the "
        "base",
        "reproduced in a different form" if reversed_ < 1e-12 else "not reproducible",
        "the gravity vector must be subtracted: the base gets -g (relative error "
        f"{reversed_:.0e}); with +g the torques are wrong by {as_printed:.1f} of the "
        "largest.",
    )


def _torque_verdict(forces: list[Forces]) -> Verdict:
    error, apart = max(x.error for x in forces), max(x.apart for x in forces)
    middle = [x.tau[len(x.ts) // 2] for x in forces]
    return Verdict(
        "[Shah] Fig. 5",
        "joint torques of the motion agree with another program (ADAMS)",
        "reproduced in a different form" if error < 1e-12 else "not reproducible",
        f"{len(METHODS)} formulations agree to {apart:.0e} N m and with independent "
        f"software to {error:.0e} N m, in both readings. The curves are not in the "
        "text, and the place of finger 3 is not stated: halfway joint 1 needs "
        f"{middle[0][0]:.6f} N m with it at the middle of link 1, and "
        f"{middle[1][0]:.6f} N m at its tip.",
    )


def _fall_verdict(falls: list[Falls], given: Fall) -> Verdict:
    error = max(x.error for x in falls)
    fixed = max(x.fixed.max() for x in falls)
    drift = max(x.energy["fixed"].max() for x in falls)
    end = ", ".join(f"{x:.8f}" for x in falls[0].q[-1])
    is_same = error < 1e-9 and fixed < 1e-5
    return Verdict(
        "[Shah] Fig. 6",
        "free fall with Runge-Kutta steps of 0.001 s agrees with another program",
        "reproduced in a different form" if is_same else "not reproducible",
        f"steps of {given.step} s (fourth order; the paper does not say which) stay "
        f"within {fixed:.0e} rad of a tight run and keep the energy to {drift:.0e} J; "
        f"that agrees with independent software to {error:.0e} rad. The "
        f"curves are not in the text. At {falls[0].ts[-1]:g} s: ({end}) rad.",
    )
