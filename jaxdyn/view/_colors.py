"""One colour for each body, the same in pictures, plots and pages."""

import numpy as np

_DISTINCT = (
    *("#3b6fb6", "#e07b39", "#3a9d5d", "#c8453d", "#8a63b3"),
    *("#c9a227", "#2a9db0", "#d1679b", "#6d7f3a", "#7a5a48"),
)


def body_colors(n: int) -> tuple[str, ...]:
    """Colours of `n` bodies: distinct for a few, from blue to red for many."""
    if n <= len(_DISTINCT):
        return _DISTINCT[:n]
    # matplotlib is slow to load, and few bodies do not need it
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    gradient = colormaps["turbo"](np.linspace(0.05, 0.95, n))
    return tuple(to_hex(0.85 * color[:3]) for color in gradient)  # yellow on white


def rgba(color: str) -> tuple[float, ...]:
    """Red, green, blue and opacity, from 0 to 1, of a colour such as "#3b6fb6"."""
    return (*(int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)), 1.0)
