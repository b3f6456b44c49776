"""One colour for each body, the same in pictures, plots and pages."""

import numpy as np

_DISTINCT = (
    *("#3b6fb6", "#e07b39", "#3a9d5d", "#c8453d", "#8a63b3"),
    *("#c9a227", "#2a9db0", "#d1679b", "#6d7f3a", "#7a5a48"),
)
_LEVELS = 64  # plotly tells 128 apart at most


def body_colors(n: int) -> tuple[str, ...]:
    """Colours of `n` bodies: distinct for a few, from blue to red for many."""
    if n <= len(_DISTINCT):
        return _DISTINCT[:n]
    # matplotlib is slow to load, and few bodies do not need it
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    levels = min(n, _LEVELS)
    gradient = colormaps["turbo"](np.linspace(0.05, 0.95, levels))
    shades = [to_hex(0.85 * color[:3]) for color in gradient]  # yellow on white
    return tuple(shades[i * levels // n] for i in range(n))
