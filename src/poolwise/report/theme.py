"""One look for all figures, in colors that color-blind readers can tell apart.

On a page, colors are variables of its style sheet, so that a chart follows the reader's light or dark theme. Figures for print
use the light colors.
"""

from __future__ import annotations

from collections.abc import Mapping

# Okabe and Ito's palette, without black and yellow, in an order whose neighbors differ in lightness too. Light / dark.
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
LIGHT: Mapping[str, str] = {
    "ink": "#1b1f24",
    "paper": "#ffffff",
    "soft": "#57606a",
    "grid": "#d8dee4",
    "card": "#f6f8fa",
    "accent": "#0072b2",
    **{f"series-{k}": light for k, (light, _) in enumerate(SERIES)},
}
"""Variable of the style sheet -> color in the light theme, and in print."""
DARK: Mapping[str, str] = {
    "ink": "#e6edf3",
    "paper": "#0f1419",
    "soft": "#9aa7b4",
    "grid": "#30363d",
    "card": "#171d24",
    "accent": "#56a9e0",
    **{f"series-{k}": dark for k, (_, dark) in enumerate(SERIES)},
}


def style_sheet() -> str:
    """Return CSS that defines the colors of the page and its figures, light and dark."""
    light, dark = (" ".join(f"--{name}: {color};" for name, color in theme.items()) for theme in (LIGHT, DARK))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
