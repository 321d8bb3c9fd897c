"""Figures as Vega-Lite charts for the page: one specification is drawn as the static picture and answers the hand.

Colours are variables of the page's style sheet, so that a chart follows the reader's theme. Every mark carries what it shows
as its description: it is the tooltip, what a screen reader says, and what the keyboard steps through.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

from poolwise.exhibits.figure import Axis, Bars, Curves, Distribution, Figure, Panels, Scatter
from poolwise.exhibits.spoken import spoken_number
from poolwise.report.figures import thin
from poolwise.report.labels import apart
from poolwise.report.theme import SERIES

Spec = dict[str, Any]
WIDE, SMALL = (640, 330), (400, 230)
"""Width and height of the chart that carries the answer, and of those in rows; text has one size in both."""
_DASHES = ([1, 0], [6, 3], [8, 3, 2, 3], [2, 2], [5, 1], [3, 1, 1, 1], [1, 1], [7, 2])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
_FONT = "system-ui, sans-serif"


def chart(shown: Figure, wide: bool = False) -> Spec:
    """Vega-Lite specification of a figure, its data inside; colours are variables of the page."""
    width, height = WIDE if wide else SMALL
    size = {} if isinstance(shown, Panels) else {"width": width, "height": height}
    return {
        **size,
        "padding": 4,
        "background": None,
        "description": f"{shown.title}. {shown.caption}",
        "config": _config(),
        **_spec(shown),
    }


@singledispatch
def _spec(shown: Figure) -> Spec:
    raise TypeError(f"no chart for {type(shown).__name__}")


@_spec.register
def _curves(shown: Curves) -> Spec:
    rows = _rows(shown, shown.series, ", ")
    lows = [v for low, _ in shown.interval.values() for v in low]
    highs = [v for _, high in shown.interval.values() for v in high]
    values = [v for column in (*shown.series.values(), *shown.published.values()) for v in column]
    target = [] if shown.target is None else [shown.target[0]]
    xs, ys = _scale(shown.x, shown.x_axis), _scale([*values, *lows, *highs, *target], shown.y_axis)
    x, y = _channel("x", shown.x_axis, xs), _channel("y", shown.y_axis, ys)
    style = _style(list(shown.series), legend=len(shown.series) > 1 and not shown.direct)
    if shown.marks:
        style.pop("shape")  # shapes tell kinds of points apart
    few = len(shown.x) <= 40
    layers: list[Spec] = []
    if shown.interval:
        bands = [row for row in rows if "low" in row]
        band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": style["color"]}
        layers.append({"data": {"values": bands}, "mark": {"type": "area", "opacity": 0.16, "aria": False}, "encoding": band})
    line = {"type": "line", "strokeWidth": 2, "aria": False}
    layers.append({"mark": line, "encoding": {"x": x, "y": y, **style, **_faded()}, "params": _params(shown)})
    if few:
        layers.append(
            {
                "mark": {"type": "point", "size": 55, "filled": True},
                "encoding": {"x": x, "y": y, **style, **_said(), **_faded()},
            }
        )
    if shown.published:
        points = _rows(shown, shown.published, ", published, ")
        hollow = {"type": "point", "size": 90, "filled": False}
        over = {key: channel for key, channel in style.items() if key != "strokeDash"}
        layers.append({"data": {"values": points}, "mark": hollow, "encoding": {"x": x, "y": y, **over, **_said()}})
    if shown.marks:
        points = _rows(shown, shown.marks, ", ")
        kinds = {"type": "nominal", "field": "series", "title": None}
        shape = {**kinds, "scale": {"domain": list(shown.marks), "range": ["circle", "cross", "diamond"][: len(shown.marks)]}}
        mark = {"type": "point", "size": 120, "filled": False, "color": "var(--ink)"}
        layers.append({"data": {"values": points}, "mark": mark, "encoding": {"x": x, "y": y, "shape": shape, **_said()}})
    if shown.highlight is not None:
        layers.append(_rule("x", shown.highlight, [2, 3]))
    if shown.target is not None:
        value, words = shown.target
        layers += [_rule("y", value, [6, 4]), _text({"y": {"datum": value}, "x": {"value": 4}}, words, dy=-6)]
    if shown.direct:
        layers.append(_labels(shown, ys, x, y, style["color"]))
    return {"data": {"values": rows}, "layer": layers}


def _rows(shown: Curves, series: Mapping[str, Sequence[float]], between: str) -> list[Spec]:
    """One row a point that is known, with what it says."""
    ticks, rows = shown.x_axis.ticks or {}, []
    for label, values in series.items():
        bounds = shown.interval.get(label) if series is shown.series else None
        for k, (at, value) in enumerate(zip(shown.x, values, strict=True)):
            if not math.isfinite(value):
                continue
            row: Spec = {"x": float(at), "y": float(value), "series": label}
            said = f"{label}{between}{ticks.get(at, spoken_number(at))}: {spoken_number(value)}"
            if bounds is not None and math.isfinite(bounds[0][k]):
                row |= {"low": float(bounds[0][k]), "high": float(bounds[1][k])}
                said += f" [{spoken_number(row['low'])}, {spoken_number(row['high'])}]"
            rows.append(row | {"said": said})
    return rows


def _labels(shown: Curves, ys: Sequence[float], x: Spec, y: Spec, colour: Spec) -> Spec:
    """Name each line at its end, labels moved apart."""
    ends = {}
    for label, values in shown.series.items():
        known = [k for k, v in enumerate(values) if math.isfinite(v)]
        if known:
            ends[label] = (float(shown.x[known[-1]]), float(values[known[-1]]))
    moved = apart([end[1] for end in ends.values()], (ys[0], ys[-1]), WIDE[1], 15, shown.y_axis.log)
    rows = [{"x": end[0], "y": at, "series": label} for (label, end), at in zip(ends.items(), moved, strict=True)]
    mark = {"type": "text", "align": "left", "dx": 9, "fontWeight": 600, "aria": False}
    return {"data": {"values": rows}, "mark": mark,
            "encoding": {"x": x, "y": y, "text": {"field": "series"}, "color": colour}}  # fmt: skip


@_spec.register
def _scatter(shown: Scatter) -> Spec:
    rows = []
    for label, (xs, ys) in shown.series.items():
        bounds = shown.spread.get(label)
        for k, (at, value) in enumerate(zip(xs, ys, strict=True)):
            row: Spec = {"x": float(at), "y": float(value), "series": label, "k": k}
            row["said"] = f"{label}: {spoken_number(at)}, {spoken_number(value)}"
            if bounds is not None:
                row |= dict(zip(("left", "right", "low", "high"), (float(bound[k]) for bound in bounds), strict=True))
            rows.append(row)
    across = [row[name] for row in rows for name in ("x", "left", "right") if name in row]
    up = [row[name] for row in rows for name in ("y", "low", "high") if name in row]
    x, y = _channel("x", shown.x_axis, _scale(across, shown.x_axis)), _channel("y", shown.y_axis, _scale(up, shown.y_axis))
    style = _style(list(shown.series), legend=len(shown.series) > 1)
    layers: list[Spec] = [
        {"mark": {"type": "point", "size": 70, "filled": True}, "encoding": {"x": x, "y": y, **style, **_said(), **_faded()},
         "params": _params(shown)}
    ]  # fmt: skip
    if shown.joined:
        line = {"x": x, "y": y, "order": {"field": "k"}, **style, **_faded()}
        layers.insert(0, {"mark": {"type": "line", "strokeWidth": 1.6, "aria": False}, "encoding": line})
    if shown.spread:
        data, mark = {"values": [row for row in rows if "low" in row]}, {"type": "rule", "opacity": 0.6, "aria": False}
        level = {"x": {**x, "field": "left"}, "x2": {"field": "right"}, "y": y}
        upright = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "x": x}
        rules = ({**channels, "color": style["color"]} for channels in (level, upright))
        layers += [{"data": data, "mark": mark, "encoding": encoding} for encoding in rules]
    return {"data": {"values": rows}, "layer": layers}


@_spec.register
def _distribution(shown: Distribution) -> Spec:
    rows = []
    for label, sample in shown.series.items():
        ordered = np.sort(sample)
        keep = thin(len(ordered), shown.tail, 150)
        share = np.arange(1, len(ordered) + 1) / max(1, len(ordered))
        for value, part in zip(ordered[keep].tolist(), (1.0 - share if shown.tail else share)[keep].tolist(), strict=True):
            if part > 0 or not shown.tail:
                said = f"{label}: {spoken_number(100 * part)} % at {spoken_number(value)}"
                rows.append({"x": value, "y": 100 * part, "series": label, "said": said})
    y_axis = Axis(f"{shown.y_label} (%)", log=shown.tail)
    x = _channel("x", shown.x_axis, _scale([row["x"] for row in rows], shown.x_axis))
    y = _channel("y", y_axis, _scale([row["y"] for row in rows], y_axis))
    style = _style(list(shown.series), legend=len(shown.series) > 1)
    style.pop("shape")
    line = {"mark": {"type": "line", "strokeWidth": 2, "aria": False}, "encoding": {"x": x, "y": y, **style, **_faded()},
            "params": _params(shown)}  # fmt: skip
    grip = {"mark": {"type": "point", "opacity": 0, "size": 60},
            "encoding": {"x": x, "y": y, **_said()}}  # fmt: skip
    return {"data": {"values": rows}, "layer": [line, grip]}


@_spec.register
def _bars(shown: Bars) -> Spec:
    names = list(shown.series)
    rows: list[Spec] = [
        {"group": k, "y": float(value), "series": label, "said": f"{label}, {shown.groups[k] or k}: {spoken_number(value)}"}
        for label, values in shown.series.items() for k, value in enumerate(values) if math.isfinite(value)
    ]  # fmt: skip
    style = _style(names, legend=len(names) > 1)
    known = [row["y"] for row in rows if row["y"] > 0 or not shown.y_axis.log]
    y = _channel("y", shown.y_axis, _scale([*known, *([] if shown.y_axis.log else [0.0])], shown.y_axis))
    texts = {str(k): group for k, group in enumerate(shown.groups)}
    angle = 0 if sum(map(len, shown.groups)) < 80 else -30
    x = {"field": "group", "type": "ordinal", "axis": {"title": None, "labelAngle": angle,
         "labelExpr": _lookup(texts), "labelOverlap": False, "labelLimit": 150}}  # fmt: skip
    data = {"values": [row for row in rows if row["y"] > 0 or not shown.y_axis.log]}
    base = {"y2": {"datum": 0 if not shown.y_axis.log else y["scale"]["domain"][0]}}
    encoding = {"x": x, "xOffset": {"field": "series", "sort": names}, "y": y, **base, "color": style["color"], **_said()}
    layers: list[Spec] = [{"mark": "bar", "encoding": encoding}]
    if shown.published:
        points = [{"group": k, "y": float(v), "series": s, "said": f"{s}, {shown.groups[k]}, published: {spoken_number(v)}"}
                  for s, vs in shown.published.items() for k, v in enumerate(vs) if math.isfinite(v)]  # fmt: skip
        mark = {"type": "tick", "color": "var(--ink)", "thickness": 2}
        over = {"x": x, "xOffset": {"field": "series", "sort": names}, "y": y, **_said()}
        layers.append({"data": {"values": points}, "mark": mark, "encoding": over})
    return {"data": data, "layer": layers}


@_spec.register
def _panels(shown: Panels) -> Spec:
    parts = []
    for k, panel in enumerate(shown.panels):
        text = (
            json.dumps(_spec(panel)).replace('"shown"', f'"shown{k}"').replace('"zoom"', f'"zoom{k}"')
        )  # names are of the chart
        parts.append({"title": panel.title, "width": SMALL[0], "height": SMALL[1], **json.loads(text)})
    alone = dict.fromkeys(("color", "strokeDash", "shape"), "independent")
    return {"concat": parts, "columns": shown.columns, "resolve": {"scale": alone}}


# What all kinds share


def _scale(values: Sequence[float], axis: Axis) -> list[float]:
    """Positions of ticks; the first and the last are the ends of the axis."""
    known = [float(v) for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low, high = (min(known), max(known)) if known else (1.0, 10.0)
    low = axis.limits[0] if axis.limits[0] is not None else low
    high = axis.limits[1] if axis.limits[1] is not None else high
    if axis.ticks is not None:
        room = 0.03 * (high - low)
        return [low, high] if axis.log else [low - room, high + room]
    if axis.log:
        if high / low > 5:
            parts = (1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)
            ticks: list[float] = np.asarray(LogLocator(10, subs=parts).tick_values(low, high)).tolist()
            inside = [t for t in ticks if low <= t <= high]
            return [max([t for t in ticks if t <= low], default=low), *inside,
                    min([t for t in ticks if t >= high], default=high)]  # fmt: skip
    elif low > 0 and low < 0.5 * high and axis.limits[0] is None:
        low = 0.0
    even: list[float] = np.asarray(MaxNLocator(5).tick_values(low, high if high > low else low + 1)).tolist()
    return even if not axis.log or even[0] > 0 else [low, *(tick for tick in even if tick > low)]


def _channel(name: str, axis: Axis, ticks: Sequence[float]) -> Spec:
    domain = [ticks[0], ticks[-1]]
    scale = {"type": "log" if axis.log else "linear", "domain": domain, "nice": False, "zero": False}
    drawn: Spec = {"title": axis.label, "labelOverlap": "greedy", "grid": name == "y", "format": ",.4~r"}
    if axis.ticks is not None:
        drawn |= {"values": list(axis.ticks), "labelExpr": _lookup({_key(at): text for at, text in axis.ticks.items()})}
    elif name == "y" or axis.log:
        drawn["values"] = list(ticks)
    else:
        drawn["tickCount"] = 6  # not fixed: a reader may zoom
    return {"field": name, "type": "quantitative", "scale": scale, "axis": drawn}


def _key(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _lookup(texts: Mapping[str, str]) -> str:
    return f"({json.dumps(dict(texts))})[datum.value] || ''"


def _style(names: Sequence[str], legend: bool) -> Spec:
    """Colour, dash and shape of each series: series can be told apart without colour."""
    shown: Spec | None = (
        {"title": None, "orient": "top", "symbolSize": 90, "columns": 4, "labelLimit": 220, "symbolOpacity": 1}
        if legend
        else None
    )
    ranges = {
        "color": [f"var(--series-{k % len(SERIES)})" for k in range(len(names))],
        "strokeDash": [_DASHES[k % len(_DASHES)] for k in range(len(names))],
        "shape": [_SHAPES[k % len(_SHAPES)] for k in range(len(names))],
    }
    return {
        channel: {"field": "series", "type": "nominal", "scale": {"domain": list(names), "range": found}, "legend": shown}
        for channel, found in ranges.items()
    }


def _said() -> Spec:
    return {"tooltip": {"field": "said", "type": "nominal"}, "description": {"field": "said", "type": "nominal"}}


def _faded() -> Spec:
    """What a reader has switched off in the legend is pale."""
    return {"opacity": {"condition": {"param": "shown", "value": 1}, "value": 0.08}}


def _params(shown: Figure) -> list[Spec]:
    found: list[Spec] = [
        {"name": "shown", "select": {"type": "point", "fields": ["series"], "toggle": "true"}, "bind": "legend"}
    ]
    if isinstance(shown, Curves) and len(shown.x) > 40:
        found.append({"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"})
    return found


def _rule(channel: str, value: float, dash: list[int]) -> Spec:
    mark = {"type": "rule", "color": "var(--ink)", "strokeDash": dash, "opacity": 0.7, "aria": False}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {channel: {"datum": value}}}


def _text(encoding: Spec, words: str, dy: int = 0) -> Spec:
    mark = {"type": "text", "align": "left", "dy": dy, "color": "var(--ink)", "text": words, "aria": False}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def _config() -> Spec:
    ink = {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": 500,
    }
    return {
        "font": _FONT,
        "mark": {"color": "var(--series-0)"},
        "axis": {**ink, "aria": False, "gridColor": "var(--grid)", "domainColor": "var(--ink)", "tickColor": "var(--ink)"},
        "title": {"color": "var(--ink)", "fontSize": 13},
        "legend": {**ink, "symbolStrokeWidth": 2},
        "view": {"stroke": None},
        "text": {"fontSize": 13},
    }
