"""Pictures of the depth, the times and the errors of the parallel method."""

from pathlib import Path

import matplotlib.figure
import numpy as np

from experiments.parts.chain_claims import Found
from experiments.parts.parallel_programs import GRADIENT, PLAIN, Errors
from experiments.parts.tree_shapes import SHAPES, Depths


def plot_depths(depths: Depths, path: Path) -> None:
    """Steps against n, a panel for each shape."""
    figure = matplotlib.figure.Figure(figsize=(14, 3.6), layout="constrained")
    sizes = sorted({n for _, n in depths})
    panels = figure.subplots(1, len(SHAPES), sharey=True)
    labels = {"denoc": "s-", "parallel": "o-", "parallel, chunk=1": "^-"}
    for axes, shape in zip(panels, SHAPES, strict=True):
        for k, (label, style) in enumerate(labels.items()):
            values = [depths[shape, n][k] for n in sizes]
            axes.loglog(sizes, values, style, label=label)
        axes.set(title=shape, xlabel="bodies n")
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("dependent steps")
    panels[0].legend(fontsize="small")
    figure.savefig(path, dpi=130)


def plot_times(seconds: Found, path: Path) -> None:
    """Microseconds against n, states in full lines and gradients in dashed ones."""
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    axes, methods = figure.subplots(), list(dict.fromkeys(name for name, _ in seconds))
    plain = [name for name in methods if not name.startswith(GRADIENT)]
    for name in methods:
        sizes = sorted(n for other, n in seconds if other == name)
        micro = [float(np.median(seconds[name, n])) * 1e6 for n in sizes]
        style = "o--" if name.startswith(GRADIENT) else "o-"
        color = f"C{plain.index(name.removeprefix(GRADIENT))}"
        axes.loglog(sizes, micro, style, color=color, label=name)
    axes.set(xlabel="joints n", ylabel="microseconds", title="one state, float64")
    axes.set_xscale("log", base=2)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def plot_errors(stored: Errors, hard: Errors, path: Path) -> None:
    """A row for each chain, a mark for each method, both precisions side by side."""
    figure = matplotlib.figure.Figure(figsize=(12, 4.5), layout="constrained")
    all_errors = {(f"phi/psi, n = {n}", d): x for (n, d), x in stored.items()}
    all_errors |= hard
    chains = list(dict.fromkeys(chain for chain, _ in all_errors))
    dtypes = list(dict.fromkeys(dtype for _, dtype in all_errors))
    panels = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
    for axes, dtype in zip(panels, dtypes, strict=True):
        for name, mark in zip(PLAIN, "sox+", strict=True):
            rows = [
                (values[name], chains.index(chain))
                for (chain, other), values in all_errors.items()
                if other == dtype and name in values
            ]
            axes.plot(*zip(*rows, strict=True), mark, label=name, fillstyle="none")
        axes.set(title=dtype, xlabel="relative error", xscale="log")
        axes.grid(alpha=0.3)
    panels[0].set_yticks(range(len(chains)), chains)
    panels[0].invert_yaxis()
    figure.legend(
        *panels[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4
    )
    figure.savefig(path, dpi=130)
