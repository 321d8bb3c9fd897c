"""Common parts of charts: colors, axes, series, labels, descriptions of marks, and interactive selections."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from poolwise.presentation.figure import Axis, Boxes, Curves, Figure

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


Spec = dict[str, Any]
_DASHES = ([1, 0], [6, 3], [8, 3, 2, 3], [2, 2], [5, 1], [3, 1, 1, 1], [1, 1], [7, 2])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
_TITLE = 32
"""Maximum number of characters per line of a vertical axis title."""
_LONGEST = 40
"""Maximum number of characters of a name in a legend."""
TEXT = 13
"""Font size, pixels."""
_FONT = "system-ui, sans-serif"


def tick_positions(values: Sequence[float], axis: Axis) -> list[float]:
    """Return tick positions; the first and the last are the ends of the axis."""
    drawable = [float(v) for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low, high = (min(drawable), max(drawable)) if drawable else (1.0, 10.0)
    low = axis.limits[0] if axis.limits[0] is not None else low
    high = axis.limits[1] if axis.limits[1] is not None else high
    if axis.ticks is not None:
        margin = 0.03 * (high - low)
        return [low, high] if axis.log else [low - margin, high + margin]
    if axis.log:
        if high / low > 5:
            parts = (1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)
            decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)  # one more, for rounding errors
            ticks = [part * 10.0**decade for decade in decades for part in parts]
            inside = [t for t in ticks if low <= t <= high]
            return sorted({max(t for t in ticks if t <= low), *inside, min(t for t in ticks if t >= high)})
    elif low > 0 and low < 0.5 * high and axis.limits[0] is None:
        low = 0.0
    even = even_ticks(low, high if high > low else low + 1)
    return even if not axis.log or even[0] > 0 else [low, *(tick for tick in even if tick > low)]


def even_ticks(low: float, high: float) -> list[float]:
    """Return ticks that enclose low < high in at most five equal steps of 1, 2, 2.5 or 5 times a power of ten."""
    magnitude = 10.0 ** math.floor(math.log10((high - low) / 5))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0):
        step = factor * magnitude
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= 5:
            break
    return [k * factor * magnitude if magnitude >= 1 else k * factor / (1 / magnitude) for k in range(first, last + 1)]


def channel(name: str, axis: Axis, values: Sequence[float]) -> Spec:
    """Return the encoding of the field `name` ("x" or "y") on an axis that covers the values."""
    ticks = tick_positions(values, axis)
    domain = [ticks[0], ticks[-1]]
    scale = {"type": "log" if axis.log else "linear", "domain": domain, "nice": False, "zero": False}
    drawn: Spec = {
        "title": _lines(axis.label) if name == "y" else axis.label,
        "labelOverlap": "greedy",
        "grid": name == "y",
        "format": ",.4~r",
    }
    if axis.ticks is not None:
        drawn |= {
            "labelLimit": 8 * _LONGEST,
            "values": [_tick(at) for at in axis.ticks],
            "labelExpr": lookup({_key(_tick(at)): text for at, text in axis.ticks.items()}),
        }
    elif name == "y" or axis.log:
        drawn["values"] = list(ticks)
    else:
        drawn["tickCount"] = 6  # not fixed positions, because a reader may zoom
    return {"field": name, "type": "quantitative", "scale": scale, "axis": drawn}


def _lines(label: str) -> str | list[str]:
    """Wrap a long title of a vertical axis."""
    lines = wrap(label, _TITLE)
    return lines if len(lines) > 1 else label


def _tick(value: float) -> float:
    """Round to nine digits: vl-convert reads longer numbers inexactly, and their labels would not be found."""
    return float(f"{value:.9g}")


def _key(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def lookup(texts: Mapping[str, str]) -> str:
    """Return the Vega expression that maps a tick to its text."""
    return f"({json.dumps(dict(texts))})[datum.value] || ''"


def series_style(names: Sequence[str], legend: bool, points: bool = False) -> tuple[Spec, Spec]:
    """Return the encodings of each series' lines and of its points, so that series are distinguishable without color.

    Lines differ in color and dash, points in color and shape. With `points`, the legend shows the points alone.
    """
    longest = min(_LONGEST, max(map(len, names), default=0))
    columns = {"expr": f"max(1, floor((width + 60) / {8 * longest + 30}))"}  # as many columns as fit the chart
    entries = {"title": None, "orient": "top", "symbolSize": 90, "columns": columns, "labelLimit": 8 * _LONGEST}
    figure: Spec | None = {**entries, "symbolOpacity": 1} if legend else None

    def channel(values: Sequence[Any], shown: bool = True) -> Spec:
        domain = [*names, *([] if shown else [""])]  # Vega-Lite merges legends of equal domains, even hidden ones
        scale = {"domain": domain, "range": [values[k % len(values)] for k in range(len(domain))]}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": figure if shown else None}

    color = channel([f"var(--series-{k})" for k in range(len(SERIES))])
    dashes, shapes = ([*these, *these[1:], these[0]] for these in (_DASHES, _SHAPES))  # where colors repeat, these differ
    return {"color": color, "strokeDash": channel(dashes, not points)}, {"color": color, "shape": channel(shapes)}


def described() -> Spec:
    """Return encodings that show a mark's description as its tooltip and to screen readers."""
    return {"tooltip": {"field": "description", "type": "nominal"}, "description": {"field": "description", "type": "nominal"}}


def faded() -> Spec:
    """Return an encoding that fades the series that are switched off in the legend."""
    return {"opacity": {"condition": {"param": "shown", "value": 1}, "value": 0.08}}


def selections(figure: Figure) -> list[Spec]:
    """Return the interactive selections: series in the legend and, for long time lines, the zoomed range."""
    parameters: list[Spec] = [
        {"name": "shown", "select": {"type": "point", "fields": ["series"], "toggle": "true"}, "bind": "legend"}
    ]
    if (isinstance(figure, Boxes) and len(figure.boxes) > 40) or (isinstance(figure, Curves) and len(figure.x) > 40):
        parameters.append({"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"})
    return parameters


def rule_at(channel: str, value: float, dash: list[int]) -> Spec:
    """Draw a rule across the chart at a value of the channel "x" or "y"."""
    mark = {"type": "rule", "color": "var(--ink)", "strokeDash": dash, "opacity": 0.7, "aria": False}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {channel: {"datum": value}}}


def target_line(target: tuple[float, str] | None) -> list[Spec]:
    """Return the layers of a labelled horizontal line at a y value; empty without a target."""
    if target is None:
        return []
    value, label = target
    return [rule_at("y", value, [6, 4]), _text({"y": {"datum": value}, "x": {"value": 4}}, label, dy=-6)]


def _text(encoding: Spec, text: str, dy: int = 0) -> Spec:
    mark = {"type": "text", "align": "left", "dy": dy, "color": "var(--ink)", "text": text, "aria": False}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def chart_config(text: int) -> Spec:
    """Return fonts and colors of all charts; `text` is the font size in pixels."""
    ink = {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "labelFontSize": text,
        "titleFontSize": text,
        "titleFontWeight": 500,
    }
    return {
        "font": _FONT,
        "mark": {"color": "var(--series-0)"},
        "axis": {**ink, "aria": False, "gridColor": "var(--grid)", "domainColor": "var(--ink)", "tickColor": "var(--ink)"},
        "title": {"color": "var(--ink)", "fontSize": text, "fontWeight": 500},
        "legend": {**ink, "symbolStrokeWidth": 2},
        "view": {"stroke": None},
        "text": {"fontSize": text},
    }


def spread_labels(values: Sequence[float], domain: tuple[float, float], height: float, gap: float, log: bool) -> list[float]:
    """Move n axis positions apart so that they are at least `gap` apart when drawn, in their original order.

    `domain` holds the ends of the axis, and `height` is its length in the unit of the gap. If n gaps exceed the height, the
    labels share it equally. Each position stays within the axis, and as close to the desired position as the other positions
    allow.
    """
    low, high = (math.log(end) if log else end for end in domain)
    if not values or high <= low:
        return list(values)
    gap = min(gap, height / max(1, len(values) - 1))
    order = sorted(range(len(values)), key=lambda k: (values[k], k))
    place = [((math.log(values[k]) if log else values[k]) - low) / (high - low) * height for k in order]
    # Blocks of touching labels, as (mean desired position of the first label, labels), merged until none overlaps.
    blocks: list[tuple[float, int]] = []
    for desired in place:
        block = (desired, 1)
        while blocks and blocks[-1][0] + blocks[-1][1] * gap > block[0]:
            first, count = blocks.pop()
            total = count + block[1]
            block = ((first * count + (block[0] - count * gap) * block[1]) / total, total)
        top = height - (block[1] - 1) * gap
        blocks.append((min(max(block[0], 0.0), top), block[1]))
    spread = [first + k * gap for first, count in blocks for k in range(count)]
    for k in range(len(spread) - 2, -1, -1):
        spread[k] = min(spread[k], spread[k + 1] - gap)
    for k in range(1, len(spread)):
        spread[k] = max(spread[k], spread[k - 1] + gap)
    moved = [0.0] * len(values)
    for k, at in zip(order, spread, strict=True):
        scaled = low + min(max(at, 0.0), height) / height * (high - low)
        moved[k] = math.exp(scaled) if log else scaled
    return moved
