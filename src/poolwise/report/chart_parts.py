"""Common parts of charts: axes, series, descriptions of marks, and interactive selections."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from poolwise.presentation.figure import Axis, Boxes, Curves, Figure
from poolwise.report.theme import SERIES

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
    known = [float(v) for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low, high = (min(known), max(known)) if known else (1.0, 10.0)
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


def even_ticks(low: float, high: float, intervals: int = 5) -> list[float]:
    """Return ticks that enclose low < high in at most `intervals` equal steps of 1, 2, 2.5 or 5 times a power of ten."""
    magnitude = 10.0 ** math.floor(math.log10((high - low) / intervals))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0):
        step = factor * magnitude
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= intervals:
            break
    return [k * factor * magnitude if magnitude >= 1 else k * factor / (1 / magnitude) for k in range(first, last + 1)]


def channel(name: str, axis: Axis, ticks: Sequence[float]) -> Spec:
    """Return the encoding of the field `name` ("x" or "y") on an axis from the first to the last tick."""
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
            "values": list(axis.ticks),
            "labelExpr": lookup({_key(at): text for at, text in axis.ticks.items()}),
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


def _key(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def lookup(texts: Mapping[str, str]) -> str:
    """Return the Vega expression that maps a tick to its text."""
    return f"({json.dumps(dict(texts))})[datum.value] || ''"


def series_style(names: Sequence[str], legend: bool) -> Spec:
    """Return color, dash and shape of each series, so that series are distinguishable without color."""
    longest = min(_LONGEST, max(map(len, names), default=0))
    columns = {"expr": f"max(1, floor((width + 60) / {8 * longest + 30}))"}  # as many columns as fit the chart
    figure: Spec | None = (
        {"title": None, "orient": "top", "symbolSize": 90, "columns": columns, "labelLimit": 8 * _LONGEST, "symbolOpacity": 1}
        if legend
        else None
    )
    ranges = {
        "color": [f"var(--series-{k % len(SERIES)})" for k in range(len(names))],
        "strokeDash": [_DASHES[k % len(_DASHES)] for k in range(len(names))],
        "shape": [_SHAPES[k % len(_SHAPES)] for k in range(len(names))],
    }
    return {
        channel: {"field": "series", "type": "nominal", "scale": {"domain": list(names), "range": found}, "legend": figure}
        for channel, found in ranges.items()
    }


def described() -> Spec:
    """Return encodings that show a mark's description as its tooltip and to screen readers."""
    return {"tooltip": {"field": "description", "type": "nominal"}, "description": {"field": "description", "type": "nominal"}}


def faded() -> Spec:
    """Return an encoding that fades the series that are switched off in the legend."""
    return {"opacity": {"condition": {"param": "shown", "value": 1}, "value": 0.08}}


def selections(figure: Figure) -> list[Spec]:
    """Return the interactive selections: series in the legend and, for long time lines, the zoomed range."""
    found: list[Spec] = [
        {"name": "shown", "select": {"type": "point", "fields": ["series"], "toggle": "true"}, "bind": "legend"}
    ]
    if (isinstance(figure, Boxes) and len(figure.boxes) > 40) or (isinstance(figure, Curves) and len(figure.x) > 40):
        found.append({"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"})
    return found


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
