"""Do 95 % intervals of identified parameters of a PUMA contain the truth?

Inertial parameters and friction of the PUMA 560 are estimated again and again, from
torques with noise of 1 % of the largest torque of each joint and from positions with
the noise of encoders. Positions are filtered without delay and differentiated; torques
are left as they were measured; rows are weighted by the noise of their joint, and the
covariance allows residuals that are correlated in time and between joints. Beside it
stand estimates without these precautions. All base parameters count, each in all
repetitions: of intervals that mean what they say 95 % contain the truth.

The motion is a Fourier series improved for these parameters, beside a random one of
equal length and limits. The last part projects estimates to models that can exist,
starting from wrong ones.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

import jaxdyn as jd
import jaxdyn.identify as identify
from experiments.reports import Report
from jaxdyn.identify import BaseParameters, Excitation, LinearFit
from jaxdyn.io import Figure, Log, Table

# what is done to torques, how rows are weighted, what the covariance allows
WAYS: dict[str, tuple[bool, str, str]] = {
    "torques as measured, weighted, robust": (False, "weighted", "robust"),
    "the same, residuals taken as independent": (False, "weighted", "classical"),
    "torques filtered, ordinary least squares": (True, "ordinary", "classical"),
}
HONEST = next(iter(WAYS))


@dataclass(frozen=True)
class Motion:
    """The motion and its limits, as `excite` takes them."""

    duration: float
    harmonics: int
    samples: int
    steps: int
    starts: int
    lower: list[float]
    upper: list[float]
    velocity: list[float]
    effort: list[float]


@dataclass(frozen=True)
class Config:
    """The settings of configs/puma_fit.toml."""

    seed: int
    repetitions: int
    projected: int
    rate: float
    cutoff: float
    torque_noise: float
    encoder_noise: float
    nominal_error: float
    damping: list[float]
    friction: list[float]
    motion: Motion


@dataclass(frozen=True)
class Study:
    """What all repetitions gave in one way, [repetitions, parameters]."""

    beta: np.ndarray
    std: np.ndarray
    is_inside: np.ndarray


def run(config: Config, folder: Path) -> Report:
    """All repetitions, with figures in the folder."""
    model, rng = puma(config), np.random.default_rng(config.seed)
    motions = excitations(config, model)
    base = identify.base_parameters(model)
    exact = sampled(config, model, motions["improved"].motion)
    studies, fits = repeated(config, model, base, exact, rng)
    true = base.of(model)
    other = sampled(config, model, motions["random, each joint to its limits"].motion)
    projections = projected(config, model, base, fits, other, rng)
    plot_coverage(studies, folder / "coverage.png")
    plot_estimates(base, studies[HONEST], true, folder / "estimates.png")
    return Report(
        "puma_fit",
        "Intervals of identified parameters of a PUMA",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [
            coverage_table(studies, true),
            estimate_table(base, studies[HONEST], true),
            motion_table(motions),
            projection_table(projections),
        ],
        [
            Figure("coverage.png", "How often the intervals contain the truth."),
            Figure("estimates.png", "Errors of all repetitions, and the interval."),
        ],
    )


def puma(config: Config) -> jd.Model:
    """The arm with friction in its joints."""
    effects = jnp.asarray(config.damping), jnp.asarray(config.friction)
    arm = jd.robots.puma_560()
    return eqx.tree_at(lambda m: (m.damping, m.friction), arm, effects)


def excitations(config: Config, model: jd.Model) -> dict[str, Excitation]:
    """The improved motion and random ones of equal length and limits."""
    given: dict[str, Any] = dict(vars(config.motion))
    search = {name: given.pop(name) for name in ("steps", "starts")}
    key = jax.random.key(config.seed)
    plain = identify.random_excitation(model, key=key, **given)
    large = identify.random_excitation(model, key=key, each_joint=True, **given)
    return {
        "random": plain,
        "random, each joint to its limits": large,
        "improved": identify.excite(model, key=key, **given, **search),
    }


def sampled(config: Config, model: jd.Model, motion: Any) -> Log:
    """The motion and its torques without noise."""
    count = round(config.motion.duration * config.rate)
    ts = jnp.linspace(0.0, config.motion.duration, count + 1)
    at = jax.vmap(motion)(ts)
    forces = jax.vmap(lambda *x: jd.inverse_dynamics(model, *x))
    tau = forces(at.q, at.qd, at.qdd)
    return Log(*(np.asarray(x) for x in (ts, at.q, at.qd, at.qdd, tau)))


def measured(config: Config, exact: Log, rng: np.random.Generator) -> Log:
    """Positions and torques with noise."""
    q, tau = np.asarray(exact.q), np.asarray(exact.tau)
    noise = config.torque_noise * np.abs(tau).max(axis=0)
    return Log(
        exact.ts,
        q + config.encoder_noise * rng.normal(size=q.shape),
        tau=tau + noise * rng.normal(size=tau.shape),
    )


def repeated(
    config: Config,
    model: jd.Model,
    base: BaseParameters,
    exact: Log,
    rng: np.random.Generator,
) -> tuple[dict[str, Study], list[LinearFit]]:
    """Estimates in all ways from the same measurements; fits of the honest way."""
    fits: dict[str, list[LinearFit]] = {way: [] for way in WAYS}
    for _ in range(config.repetitions):
        raw = measured(config, exact, rng)
        logs = {
            forces: identify.filtered(raw, model, cutoff=config.cutoff, forces=forces)
            for forces in (True, False)
        }
        for way, (forces, method, covariance) in WAYS.items():
            options: Any = dict(method=method, covariance=covariance)
            fit = identify.least_squares(
                model, logs[forces], base=base, validation=0.0, **options
            )
            fits[way].append(fit)
    true = base.of(model)
    return {way: study(x, true) for way, x in fits.items()}, fits[HONEST]


def study(fits: list[LinearFit], true: np.ndarray) -> Study:
    """Estimates of all repetitions, and where the truth is in the interval."""
    ends = np.stack([fit.interval(0.95) for fit in fits])
    return Study(
        np.stack([fit.beta for fit in fits]),
        np.stack([fit.std for fit in fits]),
        (ends[..., 0] <= true) & (true <= ends[..., 1]),
    )


def projected(
    config: Config,
    model: jd.Model,
    base: BaseParameters,
    fits: list[LinearFit],
    other: Log,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Models that can exist, and errors of their torques in another motion."""
    columns = base.columns[base.independent]
    regressors = jax.jit(jax.vmap(lambda *x: jd.regressor(model, *x)))
    Y = np.asarray(regressors(other.q, other.qd, other.qdd))[..., columns]
    size = np.sqrt(np.mean(np.asarray(other.tau) ** 2, axis=0))

    def error(beta: np.ndarray) -> float:
        """The largest relative error of torques over the joints."""
        miss = Y @ (beta - base.of(model))
        return float((np.sqrt(np.mean(miss**2, axis=0)) / size).max())

    rows = []
    pi = np.asarray(jd.inertial_parameters(model))
    for fit in fits[: config.projected]:
        wrong = rng.uniform(-1, 1, (model.n, 1)) * config.nominal_error
        nominal = jd.with_inertial_parameters(model, jnp.asarray(pi * (1 + wrong)))
        found = identify.consistent(dataclasses.replace(fit, model=nominal))
        J = jax.vmap(jd.pseudo_inertia)(jd.inertial_parameters(found.model))
        smallest = np.linalg.eigvalsh(np.asarray(J)).min()
        errors = error(base.of(nominal)), error(fit.beta), error(found.beta)
        rows.append([*errors, found.misfit, smallest])
    names = ("nominal", "estimated", "projected", "misfit", "smallest")
    return dict(zip(names, np.array(rows).T, strict=True))


def coverage_table(studies: dict[str, Study], true: np.ndarray) -> Table:
    """Shares of intervals that contain the truth."""
    rows = []
    for way, x in studies.items():
        share = x.is_inside.mean(axis=0)
        spread = x.beta.std(axis=0)
        bias = np.abs(x.beta.mean(axis=0) - true) / spread
        ratio = x.std.mean(axis=0) / spread
        rows.append(
            [
                way,
                f"{100 * share.mean():.1f} %",
                f"{100 * share.min():.1f} to {100 * share.max():.1f} %",
                f"{ratio.min():.2f} to {ratio.max():.2f}",
                f"{bias.max():.2f}",
            ]
        )
    count, parameters = next(iter(studies.values())).beta.shape
    caption = f"Intervals of {parameters} base parameters in {count} repetitions"
    head = [
        "way",
        "contain the truth",
        "parameter by parameter",
        "stated / true standard deviation",
        "largest bias / standard deviation",
    ]
    return Table(caption, head, rows)


def estimate_table(base: BaseParameters, x: Study, true: np.ndarray) -> Table:
    """Each combination, its value and how well it is known."""
    spread = x.beta.std(axis=0)
    rows = [
        [words, f"{t:.5f}", f"{s:.5f}", f"{100 * share:.1f} %"]
        for words, t, s, share in zip(
            base.combinations, true, spread, x.is_inside.mean(axis=0), strict=True
        )
    ]
    head = ["combination (SI units)", "true", "standard deviation", "in the interval"]
    return Table(f"Base parameters, {HONEST}", head, rows)


def motion_table(motions: dict[str, Excitation]) -> Table:
    """What motions tell."""
    best = motions["improved"].scaled_std.max()
    rows = [
        [
            name,
            f"{x.scaled_std.max():.3g}",
            f"{x.scaled_std.max() / best:.1f}",
            x.names[int(np.argmax(x.scaled_std))],
            f"{x.condition:.3g}",
        ]
        for name, x in motions.items()
    ]
    head = [
        "motion",
        "worst standard deviation",
        "of the improved",
        "whose",
        "condition",
    ]
    caption = (
        "Motions of equal length and limits; standard deviations in units of changes "
        "that matter as much as the noise"
    )
    return Table(caption, head, rows)


def projection_table(x: dict[str, np.ndarray]) -> Table:
    """Physical models from estimates."""
    rows = [
        [
            f"{100 * x['nominal'].max():.1f} %",
            f"{100 * x['estimated'].max():.2f} %",
            f"{100 * x['projected'].max():.2f} %",
            f"{x['misfit'].max():.1f}",
            f"{x['smallest'].min():.0e}",
        ]
    ]
    head = [
        "torques of the nominal model",
        "of the estimate",
        "of the physical model",
        "largest misfit, squared standard deviations",
        "smallest eigenvalue of a pseudo-inertia",
    ]
    caption = (
        f"Physical models from {len(x['misfit'])} estimates: largest relative rms "
        "error of the torques of a joint in another motion"
    )
    return Table(caption, head, rows)


def plot_coverage(studies: dict[str, Study], file: Path) -> None:
    """Shares of all parameters, sorted."""
    figure = matplotlib.figure.Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    count = len(next(iter(studies.values())).beta)
    chance = 196 * np.sqrt(0.95 * 0.05 / count)
    axes.axhspan(95 - chance, 95 + chance, color="0.85", label="95 %, with its chance")
    for way, x in studies.items():
        share = np.sort(100 * x.is_inside.mean(axis=0))
        axes.plot(np.arange(1, len(share) + 1), share, "o-", ms=3, lw=1, label=way)
    axes.set(xlabel="base parameters, sorted", ylabel="intervals with the truth (%)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(file, dpi=130)


def plot_estimates(base: BaseParameters, x: Study, true: Any, file: Path) -> None:
    """Errors in stated standard deviations."""
    figure = matplotlib.figure.Figure(figsize=(9, 7), layout="constrained")
    axes, z = figure.subplots(), (x.beta - true) / x.std
    names = [base.names[k] for k in base.independent]
    for row in z:
        axes.plot(row, np.arange(len(row)), ".", color="C0", ms=2, alpha=0.3)
    for end in (-1.96, 1.96):
        axes.axvline(end, color="k", lw=1, ls="--")
    axes.set_yticks(np.arange(len(names)), names, fontsize=6)
    axes.set(xlabel="error (stated standard deviations)", ylim=(-1, len(names)))
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
