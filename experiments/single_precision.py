"""How many digits does each formulation keep, in single and in double precision?

The two-link arm of [Mata] section 5.1, the PUMA robots, and phi/psi chains with up to
1000 joints ([Ghosal]). Errors are the largest deviation from values computed with 50
digits, relative to the largest entry.

*rounded inputs*: double precision on a model and a state that were rounded to single
precision, the part that no method can avoid. *no result*: the rounded inertia matrix is
not positive definite.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.timed_programs import QUICK
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table

DTYPES = ("float32", "float64")
ROUNDED = "rounded inputs"
QUANTITIES = {
    "forward": (jd.forward_dynamics, ("q", "qd", "tau"), "qdd_fd"),
    "inverse": (jd.inverse_dynamics, ("q", "qd", "qdd"), "tau_id"),
}
Errors = dict[tuple[str, str, str], float]  # (system, method, dtype) -> error
Swing = dict[str, np.ndarray]  # angles, exact accelerations, those of each method


@dataclass(frozen=True)
class TwoLink:
    """The arm of [Mata] section 5.1: which of its variants, and Table 5."""

    reference: Path
    variant: int
    published: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Config:
    """Methods, and the references with their models; arms by the names to print."""

    forward: list[str]
    inverse: list[str]
    two_link: TwoLink
    arms: dict[str, Path]
    chains: Path


def run(config: Config, folder: Path) -> Report:
    """Measures all errors and judges what is printed."""
    swing = two_link(config.two_link, config.forward)
    forward = errors(config, "forward", config.forward)
    inverse = errors(config, "inverse", config.inverse)
    plot_swing(swing, folder / "two_link.png")
    plot_chains(forward, folder / "chains.png")
    return Report(
        "single_precision",
        "Digits in single and double precision",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [
            table("Forward dynamics, relative error", forward),
            table("Inverse dynamics, relative error", inverse),
            swing_table(swing, config.two_link.published),
        ],
        [
            Figure("two_link.png", "Two-link arm in single precision, [Mata] Fig. 2"),
            Figure("chains.png", "Relative error of forward dynamics, phi/psi chains"),
        ],
        verdicts(swing, forward, config.two_link.published),
    )


def errors(config: Config, quantity: str, methods: list[str]) -> Errors:
    """The error of every method of a quantity on every system."""
    function, *keys = QUANTITIES[quantity]
    found = {}
    for name, model, states in systems(config):
        for method, dtype in product(methods, DTYPES):
            run = _compiled(function, method)
            found[name, method, dtype] = worst(run, model.astype(dtype), states, *keys)
        run, rounded = _compiled(function, methods[0]), model.astype("float32")
        found[name, ROUNDED, "float32"] = worst(
            run, rounded.astype("float64"), states, *keys, through=np.float32
        )
    return found


def systems(config: Config) -> Iterator[tuple[str, jd.Model, list[Any]]]:
    """Name, model and reference states of the arms and chains."""
    for name, path in config.arms.items():
        data = _load(path)
        yield name, _model(data), data["states"]
    for case in _load(config.chains)["cases"]:
        model = _model(case)
        yield f"chain, n = {model.nv}", model, case["states"]


def worst(
    run: Callable,
    model: jd.Model,
    states: list[Any],
    inputs: tuple[str, ...],
    result: str,
    through: Any = np.float64,
) -> float:
    """The largest relative error over the states, NaN where there is no result.

    `through` rounds the numbers of the states.
    """
    largest = 0.0
    for state in states:
        arrays = (np.array(state[key], through) for key in inputs)
        found = run(model, *(jnp.asarray(x, model.dtype) for x in arrays))
        exact = np.array(state[result])
        error = np.abs(np.asarray(found, float) - exact).max() / np.abs(exact).max()
        largest = float(np.maximum(largest, error))  # keeps a NaN
    return largest


def two_link(config: TwoLink, methods: list[str]) -> Swing:
    """Accelerations of joint 1 in single precision, by method, and the exact ones."""
    data = _load(config.reference)["cases"][config.variant]
    model = _model(data).astype("float32")
    q = np.stack([np.zeros(len(data["q2"])), data["q2"]], axis=1)
    rest = jnp.zeros(2, "float32")
    found = {"q2": np.array(data["q2"]), "exact": np.array(data["qdd"])[:, 0]}
    for method in methods:
        run = jax.vmap(_compiled(jd.forward_dynamics, method), (None, 0, None, None))
        found[method] = np.asarray(run(model, jnp.asarray(q, "float32"), rest, rest))[
            :, 0
        ]
    return found


def table(caption: str, found: Errors) -> Table:
    """A row for each system and precision, a column for each method."""
    methods = list(dict.fromkeys(method for _, method, _ in found))
    rows = []
    for system in dict.fromkeys(system for system, _, _ in found):
        for dtype in DTYPES:
            errors = (found.get((system, method, dtype)) for method in methods)
            rows.append([system, dtype, *map(_digits, errors)])
    return Table(caption, ["system", "precision", *methods], rows)


def _digits(error: float | None) -> float | str | None:
    """Two digits are enough of an error; the table has words for none and NaN."""
    return error if error is None or np.isnan(error) else f"{error:.1e}"


def swing_table(swing: Swing, published: dict[str, tuple[float, float]]) -> Table:
    """Largest and mean error of each method beside those of [Mata] Table 5."""
    rows = [
        [method, *(f"{x:.2g}" for x in found), *published.get(method, (None, None))]
        for method, found in swing_errors(swing).items()
    ]
    return Table(
        "Two-link arm: error of the acceleration of joint 1, single precision, rad/s²",
        ["method", "largest", "mean", "printed largest", "printed mean"],
        rows,
    )


def verdicts(
    swing: Swing, forward: Errors, published: dict[str, tuple[float, float]]
) -> list[Verdict]:
    """What becomes of each published claim, with our numbers deciding."""
    return [*_two_link_verdicts(swing_errors(swing), published), *_digits_lost(forward)]


def _two_link_verdicts(
    found: dict[str, tuple[float, float]], published: dict[str, tuple[float, float]]
) -> list[Verdict]:
    recursive = max(found["articulated"][0], found["denoc"][0])
    formed = min(found[m][0] for m in ("composite", "gibbs_appell", "noc"))
    printed, mean = published["composite"][1], found["composite"][1]
    worse = found["gibbs_appell"][1] / found["articulated"][1]
    off = abs(mean / printed - 1)
    near = "reproduced in a different form" if off < 0.5 else "not reproducible"
    return [
        Verdict(
            "[Mata] Table 5",
            "articulated bodies keep more digits than composite ones",
            "reproduced" if recursive < formed else "not reproducible",
            f"largest error {recursive:.1e} rad/s² of the recursive methods, at least "
            f"{formed:.1g} of those that form a matrix (printed: "
            f"{published['articulated'][0]:.2f} and {published['composite'][0]:.2f}). "
            "Such figures depend on the order of operations; here an articulated "
            "inertia is symmetric, and divided by its pivot.",
        ),
        Verdict(
            "[Mata] Table 5",
            f"composite bodies, mean error {printed} rad/s²",
            "reproduced" if off < 0.1 else near,
            f"{mean:.3f} rad/s²; the paper solves by Gauss-Jordan elimination, we by a "
            "Cholesky factor.",
        ),
        Verdict(
            "[Mata] section 6",
            "errors of Gibbs-Appell are a little larger than those of articulated "
            "bodies",
            "reproduced" if 1 <= worse < 10 else "not reproducible",
            f"{worse:.2g} times as large in the mean, as with every method that forms "
            "the matrix.",
        ),
    ]


def _digits_lost(forward: Errors) -> list[Verdict]:
    arm, chain = "PUMA of slender rods", "chain, n = 1000"
    alike = forward[arm, "composite", "float64"] / forward[arm, "denoc", "float64"]
    lost = forward[chain, "composite", "float64"] / forward[chain, "denoc", "float64"]
    single, rounded = (forward[chain, m, "float32"] for m in ("denoc", ROUNDED))
    return [
        Verdict(
            "[Mohan] section 5",
            "the recursive method is numerically more stable",
            "reproduced in a different form" if lost > 10 else "not reproducible",
            f"on the PUMA it makes little difference (error of the matrix method "
            f"{alike:.1f} times that of the recursive one), on the chain with 1000 "
            f"joints it does ({lost:.0e} times).",
        ),
        Verdict(
            "[Ghosal]",
            "O(n) methods make chains of 100 to 1000 joints tractable",
            "reproduced" if single < 10 * rounded else "not reproducible",
            f"also in single precision: error {single:.0e} at n = 1000, where rounding "
            f"the inputs alone makes {rounded:.0e}.",
        ),
    ]


def swing_errors(swing: Swing) -> dict[str, tuple[float, float]]:
    """The largest and the mean error of each method."""
    apart = {m: np.abs(swing[m] - swing["exact"]) for m in list(swing)[2:]}
    return {m: (float(e.max()), float(e.mean())) for m, e in apart.items()}


def plot_swing(swing: Swing, path: Path) -> None:
    """The accelerations and their errors over the turn of joint 2, [Mata] Fig. 2."""
    figure = matplotlib.figure.Figure(figsize=(7, 6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    degrees = np.rad2deg(swing["q2"])
    for method in list(swing)[2:]:
        top.plot(degrees, swing[method], lw=0.8, label=method)
        error = np.abs(swing[method] - swing["exact"])
        bottom.semilogy(degrees, np.maximum(error, 1e-6), lw=0.8, label=method)
    top.plot(degrees, swing["exact"], "k--", lw=1, label="exact")
    top.set(title="Joint 1 of the two-link arm in float32", ylabel="rad/s²")
    bottom.set(ylabel="error, rad/s²", xlabel="angle of joint 2, degrees")
    top.legend(ncols=3, fontsize="small")
    figure.savefig(path, dpi=150)


def plot_chains(forward: Errors, path: Path) -> None:
    """The error of forward dynamics against the number of joints."""
    figure = matplotlib.figure.Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    chains = [s for s in dict.fromkeys(s for s, _, _ in forward) if "chain" in s]
    sizes = [int(name.split("=")[1]) for name in chains]
    for dtype, line in zip(DTYPES, ("--", "-"), strict=True):
        methods = dict.fromkeys(m for _, m, d in forward if d == dtype)
        for k, method in enumerate(methods):
            values = [forward[name, method, dtype] for name in chains]
            label = f"{method}, {dtype}"
            axes.loglog(sizes, values, f"{line}o", color=f"C{k}", ms=3, label=label)
    axes.set(xlabel="joints n", ylabel="relative error of the accelerations")
    axes.set(title="phi/psi chains; lines end where there is no result")
    axes.legend(fontsize="x-small", ncols=2, handlelength=4)
    figure.savefig(path, dpi=150)


@cache
def _compiled(function: Callable, method: str) -> Callable:
    return jax.jit(partial(function, method=method), compiler_options=QUICK)


def _model(data: dict[str, Any]) -> jd.Model:
    return jd.from_dict(data["model"])


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
