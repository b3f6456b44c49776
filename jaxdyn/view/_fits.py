"""Plots of models that were fitted to measured motions, and of motions to measure."""

import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from jaxdyn.view._plots import new_figure

File = str | os.PathLike[str]
Names = list[str] | tuple[str, ...]
_MEASURED, _FITTED, _ERROR, _HELD = "#9aa5b5", "#3b6fb6", "#c8453d", "#f4ead9"
_PANELS = 16  # more joints than these are not shown
_NAMES = 80  # more parameters than these are not named
_EXACT = 1e-6  # of a parameter: less counts as no deviation


def plot_fit(
    path: File,
    names: Names,
    ts: np.ndarray,
    measured: np.ndarray,
    fitted: np.ndarray,
    *,
    held: int = 0,
    unit: str = "",
) -> Path:
    """Saves what was measured with what the model says, and the difference beside it.

    Args:
        names: of the columns of `measured` and `fitted`, [times, columns].
        held: how many of the last rows were held out; they are shaded.
        unit: of the columns.
    """
    shown = min(len(names), _PANELS)
    figure = new_figure(13.0, 0.9 + 1.5 * shown)
    axes = figure.subplots(shown, 2, sharex=True, squeeze=False, width_ratios=(3, 2))
    x, residuals = np.arange(len(ts)) if _jumps(ts) else ts, measured - fitted
    for k in range(shown):
        left, right = axes[k]
        left.plot(x, measured[:, k], color=_MEASURED, lw=2.2, label="measured")
        left.plot(x, fitted[:, k], color=_FITTED, lw=0.9, label="model")
        right.plot(x, residuals[:, k], color=_ERROR, lw=0.7)
        left.set_ylabel(names[k], fontsize="small")
        rms = np.sqrt(np.mean(residuals[:, k] ** 2))
        right.set_title(f"rms {rms:.3g} {unit}", fontsize="small", loc="right", pad=2)
        for ax in (left, right):
            ax.grid(alpha=0.3)
            ax.margins(x=0.01)
            if held:
                ax.axvspan(x[-held], x[-1], color=_HELD, zorder=0, label="held out")
    axes[0, 0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    axes[0, 1].set_title("measured less model", fontsize="medium", loc="left", pad=2)
    for ax in axes[-1]:
        ax.set_xlabel("row" if _jumps(ts) else "time (s)")
    if shown < len(names):
        figure.supxlabel(f"{len(names) - shown} more columns are not shown")
    return _saved(figure, path)


def plot_intervals(
    path: File,
    names: Names,
    nominal: np.ndarray,
    values: np.ndarray,
    std: np.ndarray,
    interval: np.ndarray,
) -> Path:
    """Saves how far parameters are from their nominal values, and their numbers.

    Distances are in standard deviations, on an axis that is logarithmic beyond ten.
    Numbers and ends of intervals are written beside them.

    Args:
        interval: lower and upper ends, [parameters, 2].
    """
    order = np.arange(len(names))[:_NAMES]
    figure = new_figure(9.0, 1.2 + 0.2 * len(order))
    ax = figure.subplots()
    ends = in_deviations(interval.T, nominal, values, std)[:, order]
    middle = in_deviations(values, nominal, values, std)[order]
    inside = np.abs([*ends[np.isfinite(ends)], *middle])
    widest = 1.2 * inside.max(initial=5)
    ends = np.clip(ends, -2 * widest, 2 * widest)
    ax.hlines(order, *ends, color=_FITTED, lw=2.5, alpha=0.55)
    ax.plot(middle, order, "o", color=_FITTED, ms=4, label="fitted, interval")
    ax.axvline(0, color="#23272e", lw=1, label="nominal")
    ax.set_xscale("symlog", linthresh=10, linscale=2)
    ax.set_xlim(-widest, widest)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_yticks(order, [names[k] for k in order], fontsize="x-small")
    right = ax.secondary_yaxis("right")
    triples = zip(values[order], *interval[order].T, strict=True)
    texts = [f"{x:.3g} ({low:.3g}, {high:.3g})" for x, low, high in triples]
    right.set_yticks(order, texts, fontsize="x-small")
    ax.grid(alpha=0.3)
    ax.set_xlabel("change from nominal (standard deviations)")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    if len(order) < len(names):
        figure.supxlabel(f"{len(names) - len(order)} more are in the table")
    return _saved(figure, path)


def in_deviations(
    x: np.ndarray, nominal: np.ndarray, values: np.ndarray, std: np.ndarray
) -> np.ndarray:
    """How far x is from nominal, in standard deviations of at least 1e-6 of a value."""
    least = _EXACT * np.maximum(np.abs(nominal), np.abs(values))
    unit = np.maximum(std, np.where(least > 0, least, 1.0))
    return (x - nominal) / unit


def plot_correlation(path: File, names: Names, correlation: np.ndarray) -> Path:
    """Saves the correlations of the errors of parameters as a map."""
    size = 3.2 + 0.13 * min(len(names), _NAMES)
    figure = new_figure(size + 1.2, size)
    ax = figure.subplots()
    picture = ax.imshow(correlation, vmin=-1, vmax=1, cmap="RdBu_r")
    figure.colorbar(picture, ax=ax, label="correlation of errors", shrink=0.8)
    if len(names) <= _NAMES:
        places = np.arange(len(names))
        ax.set_xticks(places, names, rotation=90, fontsize="xx-small")
        ax.set_yticks(places, names, fontsize="xx-small")
    return _saved(figure, path)


def plot_history(
    path: File, losses: np.ndarray, validations: np.ndarray | None = None
) -> Path:
    """Saves how the loss fell from step to step.

    Args:
        validations: the size of held-out residuals, at equal distances of steps.
    """
    looks = np.zeros(0) if validations is None else validations
    panels = 2 if len(looks) > 1 else 1
    figure = new_figure(9.0, 0.8 + 2.6 * panels)
    axes = figure.subplots(panels, squeeze=False, sharex=True)[:, 0]
    axes[0].plot(np.arange(len(losses)), losses, color=_FITTED, marker=_dots(losses))
    axes[0].set_ylabel("loss")
    if panels > 1:
        steps = np.linspace(0, len(losses), len(looks) + 1)[1:]
        axes[1].plot(steps, looks, color=_ERROR, marker=_dots(looks))
        axes[1].set_ylabel("rms of held-out residuals")
    for ax in axes:
        ax.set_yscale("log")
        ax.grid(alpha=0.3)
    axes[-1].set_xlabel("step")
    return _saved(figure, path)


def plot_deviations(
    path: File, names: Names, deviations: dict[str, np.ndarray], *, unit: str = ""
) -> Path:
    """Saves standard deviations of parameters, of one or more motions, as points."""
    order = np.arange(len(names))[:_NAMES]
    figure = new_figure(9.0, 1.4 + 0.2 * len(order))
    ax = figure.subplots()
    colors = (_FITTED, _MEASURED, _ERROR)
    for (name, values), color in zip(deviations.items(), colors, strict=False):
        ax.plot(values[order], order, "o", color=color, ms=5, label=name)
    ax.set_xscale("log")
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_yticks(order, [names[k] for k in order], fontsize="x-small")
    ax.grid(alpha=0.3)
    ax.set_xlabel(f"standard deviation{f' ({unit})' if unit else ''}")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    return _saved(figure, path)


def _saved(figure: Figure, path: File) -> Path:
    figure.savefig(path, dpi=110)
    return Path(path)


def _jumps(ts: np.ndarray) -> bool:
    """Whether times do not go on evenly, as where several logs follow each other."""
    steps = np.diff(ts)
    return bool(steps.size and (steps.min() <= 0 or steps.max() > 1.5 * steps.min()))


def _dots(values: np.ndarray) -> str:
    return "o" if len(values) < 30 else ""
