"""How many digits each formulation keeps, in single and in double precision.

The two-link arm of [Mata] section 5.1, the PUMA robots, and phi/psi chains with up to
1000 joints ([Ghosal]); errors against values computed with 50 digits. Writes a table
and two plots, and a verdict on each published claim.
"""

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxdyn as jd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).parents[1]
DTYPES = ("float32", "float64")
Errors = dict[tuple[str, str, str], float]  # (system, method, dtype) -> error


def main() -> None:
    """Run the study that configs/single_precision.toml describes."""
    jax.config.update("jax_enable_x64", True)
    config = tomllib.loads((ROOT / "configs/single_precision.toml").read_text("utf-8"))
    folder = ROOT / config["results"]
    folder.mkdir(parents=True, exist_ok=True)
    swing = two_link(config)
    forward, inverse = errors(config, "forward"), errors(config, "inverse")
    text = "\n".join(
        [
            "# Digits in single and double precision\n",
            "Largest deviation from the 50-digit value, relative to the largest entry.",
            "*rounded inputs*: double precision on a model and a state that were",
            "rounded to single precision, the part that no method can avoid.",
            "*no result*: the rounded inertia matrix is not positive definite.\n",
            "## Forward dynamics\n",
            table(forward),
            "\n## Inverse dynamics\n",
            table(inverse),
            "\n## Two-link arm: acceleration of joint 1, single precision, rad/s²\n",
            swing_table(swing, config["published"]),
            "\n## Verdicts\n",
            *verdicts(swing, forward, config["published"]),
        ]
    )
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    plot_swing(swing, folder / "two_link.png")
    plot_chains(forward, folder / "chains.png")
    print(text)
    print(f"\nwritten: {folder.relative_to(ROOT)}/table.md, two_link.png, chains.png")


def errors(config: dict[str, Any], quantity: str) -> Errors:
    """The error of every method of a quantity on every system."""
    function, inputs, result = {
        "forward": (jd.forward_dynamics, ("q", "qd", "tau"), "qdd_fd"),
        "inverse": (jd.inverse_dynamics, ("q", "qd", "qdd"), "tau_id"),
    }[quantity]
    methods, found = config[quantity]["methods"], {}
    for name, model, states in systems(config):
        for dtype in DTYPES:
            for method in methods:
                run = _compiled(function, method)
                found[name, method, dtype] = worst(
                    run, model.astype(dtype), states, inputs, result
                )
        run, rounded = _compiled(function, methods[0]), _round(model)
        found[name, "rounded inputs", "float32"] = worst(
            run, rounded, states, inputs, result, through=np.float32
        )
    return found


def systems(config: dict[str, Any]) -> Iterator[tuple[str, jd.Model, list[Any]]]:
    """Name, model and reference states of the arms and chains."""
    for arm in config["arms"]:
        data = _load(arm["reference"])
        yield arm["name"], _model(data), data["states"]
    for case in _load(config["chains"]["reference"])["cases"]:
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


def two_link(config: dict[str, Any]) -> dict[str, np.ndarray]:
    """Accelerations of joint 1 in single precision, by method, and the exact ones."""
    data = _load(config["two_link"]["reference"])["cases"][
        config["two_link"]["variant"]
    ]
    model = _model(data).astype("float32")
    q = jnp.stack([jnp.zeros(len(data["q2"])), jnp.asarray(data["q2"])], axis=1)
    rest = jnp.zeros(2, "float32")
    found = {"q2": np.array(data["q2"]), "exact": np.array(data["qdd"])[:, 0]}
    for method in config["forward"]["methods"]:
        run = jax.vmap(_compiled(jd.forward_dynamics, method), (None, 0, None, None))
        found[method] = np.asarray(run(model, q.astype("float32"), rest, rest))[:, 0]
    return found


def table(found: Errors) -> str:
    """A row for each system and precision, a column for each method."""
    methods = list(dict.fromkeys(method for _, method, _ in found))
    rows = [f"| system | precision | {' | '.join(methods)} |"]
    rows.append("|---|---|" + "---|" * len(methods))
    for system in dict.fromkeys(system for system, _, _ in found):
        for dtype in DTYPES:
            cells = (found.get((system, method, dtype)) for method in methods)
            rows.append(f"| {system} | {dtype} | {' | '.join(map(_cell, cells))} |")
    return "\n".join(rows)


def _cell(error: float | None) -> str:
    if error is None:
        return ""
    return "no result" if np.isnan(error) else f"{error:.1e}"


def swing_table(swing: dict[str, np.ndarray], published: dict[str, list[float]]) -> str:
    """Largest and mean error of each method beside those of [Mata] Table 5."""
    rows = ["| method | largest | mean | published | published mean |"]
    rows.append("|---|---|---|---|---|")
    for method, (largest, mean) in _swing_errors(swing).items():
        printed = published.get(method)
        cells = f"{printed[0]} | {printed[1]}" if printed else " | "
        rows.append(f"| {method} | {largest:.2g} | {mean:.2g} | {cells} |")
    return "\n".join(rows)


def verdicts(
    swing: dict[str, np.ndarray], forward: Errors, published: dict[str, list[float]]
) -> list[str]:
    """What becomes of each published claim, with our numbers deciding."""
    found, chain = _swing_errors(swing), "chain, n = 1000"
    recursive = max(found["articulated"][0], found["denoc"][0])
    formed = min(found[m][0] for m in ("composite", "gibbs_appell", "noc"))
    printed, mean = published["composite"][1], found["composite"][1]
    worse = found["gibbs_appell"][1] / found["articulated"][1]
    arm = "PUMA of slender rods"
    alike = forward[arm, "composite", "float64"] / forward[arm, "denoc", "float64"]
    lost = forward[chain, "composite", "float64"] / forward[chain, "denoc", "float64"]
    single = forward[chain, "denoc", "float32"]
    rounded = forward[chain, "rounded inputs", "float32"]
    return [
        _verdict(
            "[Mata] Table 5: articulated bodies keep more digits than composite ones",
            "reproduced" if recursive < found["composite"][0] else "not reproduced",
            f"largest error {recursive:.1e} rad/s² of the recursive methods, at least "
            f"{formed:.1g} of those that form a matrix (printed: "
            f"{published['articulated'][0]:.2f} and {published['composite'][0]:.2f}). "
            "Such figures depend on the order of operations; here an articulated "
            "inertia is symmetric, and divided by its pivot.",
        ),
        _verdict(
            f"[Mata] Table 5: composite bodies, mean error {printed} rad/s²",
            "reproduced"
            if abs(mean / printed - 1) < 0.1
            else "reproduced in a different form"
            if abs(mean / printed - 1) < 0.5
            else "not reproducible",
            f"{mean:.3f} rad/s²; the paper solves by Gauss-Jordan elimination, we by a "
            "Cholesky factor.",
        ),
        _verdict(
            "[Mata] section 6: errors of Gibbs-Appell are a little larger than those "
            "of articulated bodies",
            "reproduced" if worse < 10 else "not reproducible",
            f"{worse:.0f} times larger in the mean, as with every method that forms "
            "the matrix.",
        ),
        _verdict(
            "[Mohan] section 5: the recursive method is numerically more stable",
            "reproduced in a different form" if lost > 10 else "not reproducible",
            f"on the PUMA it makes little difference (error of the matrix method "
            f"{alike:.1f} times that of the recursive one), on the chain with 1000 "
            f"joints it does ({lost:.0e} times).",
        ),
        _verdict(
            "[Ghosal]: O(n) methods make chains of 100 to 1000 joints tractable",
            "reproduced" if single < 10 * rounded else "not reproducible",
            f"also in single precision: error {single:.0e} at n = 1000, of which "
            f"{rounded:.0e} come from rounded inputs.",
        ),
    ]


def _verdict(claim: str, word: str, why: str) -> str:
    return f"- {claim}: **{word}**: {why}"


def plot_swing(swing: dict[str, np.ndarray], path: Path) -> None:
    """The accelerations and their errors over the turn of joint 2, [Mata] Fig. 2."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
    degrees = np.rad2deg(swing["q2"])
    for method in list(swing)[2:]:
        top.plot(degrees, swing[method], lw=0.8, label=method)
        error = np.abs(swing[method] - swing["exact"])
        bottom.semilogy(degrees, np.maximum(error, 1e-6), lw=0.8, label=method)
    top.plot(degrees, swing["exact"], "k--", lw=1, label="exact")
    top.set_ylabel("joint 1, rad/s²")
    bottom.set_ylabel("error, rad/s²")
    bottom.set_xlabel("angle of joint 2, degrees")
    top.legend(ncols=3, fontsize="small")
    figure.suptitle("Two-link arm in single precision")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def plot_chains(forward: Errors, path: Path) -> None:
    """The error of forward dynamics against the number of joints."""
    figure, axes = plt.subplots(figsize=(7, 5))
    chains = [s for s in dict.fromkeys(s for s, _, _ in forward) if "chain" in s]
    sizes = [int(name.split("=")[1]) for name in chains]
    for dtype, line in zip(DTYPES, ("-", "--"), strict=True):
        methods = dict.fromkeys(m for _, m, d in forward if d == dtype)
        for k, method in enumerate(methods):
            values = [forward[name, method, dtype] for name in chains]
            label = f"{method}, {dtype}"
            axes.loglog(sizes, values, f"{line}o", color=f"C{k}", ms=3, label=label)
    axes.set_xlabel("joints")
    axes.set_ylabel("relative error of the accelerations")
    axes.legend(fontsize="x-small", ncols=2)
    axes.set_title("phi/psi chains")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def _swing_errors(swing: dict[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    apart = {m: np.abs(swing[m] - swing["exact"]) for m in list(swing)[2:]}
    return {m: (float(e.max()), float(e.mean())) for m, e in apart.items()}


def _compiled(function: Callable, method: str) -> Callable:
    return jax.jit(lambda *inputs: function(*inputs, method=method))


def _round(model: jd.Model) -> jd.Model:
    return model.astype("float32").astype("float64")


def _model(data: dict[str, Any]) -> jd.Model:
    return jd.from_dict(data["model"], check_inertia=False)


def _load(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
