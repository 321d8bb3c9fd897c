"""Common style of all figures: colors that color-blind readers can distinguish, and a marker for each series.

Figures for papers use the light colors. On a page, colors are variables of its style sheet, so that the same picture follows
the reader's light or dark theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# Okabe and Ito's palette, without black and yellow, ordered so that neighbors also differ in lightness. Light / dark.
SERIES = (
    ("#0072b2", "#56a9e0"),
    ("#d55e00", "#ff8a3d"),
    ("#009e73", "#2fcf9f"),
    ("#b0579a", "#e39ccb"),
    ("#b07c00", "#f0b73a"),
    ("#3a3a3a", "#d5d5d5"),
    ("#4b9cd3", "#9ad0f5"),
    ("#8c4b2f", "#d59b7b"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))

INK, GRID = "#1b1f24", "#d8dee4"


def series_color(k: int) -> str:
    """Return the color of series k."""
    return SERIES[k % len(SERIES)][0]


def marker(k: int) -> str:
    """Return the marker of series k."""
    return MARKERS[k % len(MARKERS)]


@contextmanager
def figure(width: float = 3.5, height: float = 2.7) -> Iterator[Figure]:
    """Open a figure in the common style; the default width is a column of a paper; inches."""
    style: dict[Any, Any] = {
        "font.size": 8,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "legend.frameon": False,
        "lines.linewidth": 1.2,
        "lines.markersize": 3.5,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
    }
    with mpl.rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def style_sheet() -> str:
    """Return CSS that defines the colors of the page and its figures, light and dark."""
    light = "".join(f"--series-{k}: {pair[0]};" for k, pair in enumerate(SERIES))
    dark = "".join(f"--series-{k}: {pair[1]};" for k, pair in enumerate(SERIES))
    plain = f"--ink: {INK}; --paper: #ffffff; --soft: #57606a; --grid: {GRID}; --card: #f6f8fa; --accent: #0072b2;"
    night = "--ink: #e6edf3; --paper: #0f1419; --soft: #9aa7b4; --grid: #30363d; --card: #171d24; --accent: #56a9e0;"
    return f":root {{ {plain} {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {night} {dark} }} }}"
