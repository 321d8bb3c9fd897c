"""Vega-Lite charts of figures for the page; one specification serves the static and the interactive chart.

Colors are variables of the page's style sheet, so a chart follows the reader's theme. Every mark carries a description, which
is its tooltip, its text for screen readers, and the text of keyboard navigation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import singledispatch

import numpy as np

from poolwise.arrays import IntArray
from poolwise.presentation.figure import Axis, Bars, Boxes, Curves, Distribution, Figure, Panels, Scatter, VegaChart
from poolwise.presentation.format import format_number
from poolwise.report.chart_parts import (
    TEXT,
    Spec,
    channel,
    chart_config,
    described,
    faded,
    lookup,
    rule_at,
    selections,
    series_style,
    spread_labels,
    target_line,
)

WIDEST, WIDE, SMALL = (1000, 440), (500, 300), (290, 190)
"""Width and height of time lines, of the main chart, and of charts in rows: close to their size on the page, so that text is
displayed at its nominal size."""


def chart(figure: Figure, wide: bool = False, text: int = TEXT) -> Spec:
    """Return the Vega-Lite specification of a figure with its data; colors are page variables, `text` is in pixels."""
    width, height = (WIDEST if isinstance(figure, Boxes) else WIDE) if wide else SMALL
    panels = figure.columns if isinstance(figure, Panels | VegaChart) else 0
    size = {} if panels else {"width": width, "height": height}
    return {
        **size,
        "padding": 4,
        "background": None,
        "description": f"{figure.title}. {figure.caption}",
        "config": chart_config(text),
        **_spec(figure),
    }


@singledispatch
def _spec(figure: Figure) -> Spec:
    raise TypeError(f"no chart for {type(figure).__name__}")


@_spec.register
def _given(figure: VegaChart) -> Spec:
    return dict(figure.spec)


@_spec.register
def _curves(figure: Curves) -> Spec:
    rows = _rows(figure, figure.series, ", ")
    lows = [v for low, _ in figure.interval.values() for v in low]
    highs = [v for _, high in figure.interval.values() for v in high]
    values = [v for column in (*figure.series.values(), *figure.published.values()) for v in column]
    target = [] if figure.target is None else [figure.target[0]]
    x, y = channel("x", figure.x_axis, figure.x), channel("y", figure.y_axis, [*values, *lows, *highs, *target])
    few = len(figure.x) <= 40
    lines, points = series_style(list(figure.series), len(figure.series) > 1 and not figure.direct, points=few)
    if figure.marks:
        points.pop("shape")  # shapes distinguish the kinds of points
    layers: list[Spec] = []
    if figure.interval:
        least = y["scale"]["domain"][0] if figure.y_axis.log else -math.inf  # an interval may reach below 0
        bands = [row | {"low": max(row["low"], least)} for row in rows if "low" in row]
        band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": lines["color"]}
        area = {"type": "area", "opacity": 0.16, "aria": False, "clip": True}
        layers.append({"data": {"values": bands}, "mark": area, "encoding": band})
    line = {"type": "line", "strokeWidth": 2, "aria": False}
    layers.append({"mark": line, "encoding": {"x": x, "y": y, **lines, **faded()}, "params": selections(figure)})
    if few:
        filled = {"type": "point", "size": 55, "filled": True}
        layers.append({"mark": filled, "encoding": {"x": x, "y": y, **points, **described(), **faded()}})
    else:
        layers.append(_hidden_points(x, y))
    if figure.published:
        data = {"values": _rows(figure, figure.published, ", published, ")}
        hollow = {"type": "point", "size": 90, "filled": False}
        layers.append({"data": data, "mark": hollow, "encoding": {"x": x, "y": y, **points, **described()}})
    if figure.marks:
        data = {"values": _rows(figure, figure.marks, ", ")}
        kinds = {"type": "nominal", "field": "series", "title": None}
        shape = {**kinds, "scale": {"domain": list(figure.marks), "range": ["circle", "cross", "diamond"][: len(figure.marks)]}}
        mark = {"type": "point", "size": 120, "filled": False, "color": "var(--ink)"}
        layers.append({"data": data, "mark": mark, "encoding": {"x": x, "y": y, "shape": shape, **described()}})
    if figure.highlight is not None:
        layers.append(rule_at("x", figure.highlight, [2, 3]))
    layers += target_line(figure.target)
    if figure.direct:
        layers.append(_labels(figure, x, y, lines["color"]))
    return {"data": {"values": rows}, "layer": layers}


def _hidden_points(x: Spec, y: Spec) -> Spec:
    """Return the points of a long curve, which are not drawn but carry descriptions."""
    return {"mark": {"type": "point", "opacity": 0, "size": 60}, "encoding": {"x": x, "y": y, **described()}}


def _rows(figure: Curves, series: Mapping[str, Sequence[float]], between: str) -> list[Spec]:
    """Return one row per known point, with its description."""
    ticks, rows = figure.x_axis.ticks or {}, []
    for label, values in series.items():
        bounds = figure.interval.get(label) if series is figure.series else None
        for k, (at, value) in enumerate(zip(figure.x, values, strict=True)):
            if not math.isfinite(value):
                continue
            row: Spec = {"x": float(at), "y": float(value), "series": label}
            text = f"{label}{between}{ticks.get(at, format_number(at))}: {format_number(value)}"
            if bounds is not None and math.isfinite(bounds[0][k]):
                row |= {"low": float(bounds[0][k]), "high": float(bounds[1][k])}
                text += f" [{format_number(row['low'])}, {format_number(row['high'])}]"
            rows.append(row | {"description": text})
    return rows


def _labels(figure: Curves, x: Spec, y: Spec, color: Spec) -> Spec:
    """Label each line at its end, with labels moved apart."""
    ends = {}
    for label, values in figure.series.items():
        finite = [k for k, v in enumerate(values) if math.isfinite(v)]
        if finite:
            ends[label] = (float(figure.x[finite[-1]]), float(values[finite[-1]]))
    moved = spread_labels([end[1] for end in ends.values()], tuple(y["scale"]["domain"]), WIDE[1], 15, figure.y_axis.log)
    rows = [{"x": end[0], "y": at, "series": label} for (label, end), at in zip(ends.items(), moved, strict=True)]
    mark = {"type": "text", "align": "left", "dx": 9, "fontWeight": 600, "aria": False}
    return {"data": {"values": rows}, "mark": mark,
            "encoding": {"x": x, "y": y, "text": {"field": "series"}, "color": color}}  # fmt: skip


@_spec.register
def _scatter(figure: Scatter) -> Spec:
    rows = []
    for label, (xs, ys) in figure.series.items():
        bounds = figure.spread.get(label)
        for k, (at, value) in enumerate(zip(xs, ys, strict=True)):
            if not (math.isfinite(at) and math.isfinite(value)):
                continue
            row: Spec = {"x": float(at), "y": float(value), "series": label, "k": k}
            row["description"] = (
                figure.descriptions[label][k]
                if label in figure.descriptions
                else f"{label}: {format_number(at)}, {format_number(value)}"
            )
            ends = [] if bounds is None else [float(bound[k]) for bound in bounds]
            if ends and all(map(math.isfinite, ends)):
                row |= dict(zip(("left", "right", "low", "high"), ends, strict=True))
            elif ends:
                row["description"] += " (no interval)"
            rows.append(row)
    across = [row[name] for row in rows for name in ("x", "left", "right") if name in row]
    up = [row[name] for row in rows for name in ("y", "low", "high") if name in row]
    up += [] if figure.target is None else [figure.target[0]]
    x, y = channel("x", figure.x_axis, across), channel("y", figure.y_axis, up)
    lines, points = series_style(list(figure.series), len(figure.series) > 1, points=True)
    mark = {"type": "point", "size": 70, "filled": True}
    encoding = {"x": x, "y": y, **points, **described(), **faded()}
    layers: list[Spec] = [{"mark": mark, "encoding": encoding, "params": selections(figure)}]
    if figure.joined:
        line = {"x": x, "y": y, "order": {"field": "k"}, **lines, **faded()}
        layers.insert(0, {"mark": {"type": "line", "strokeWidth": 1.6, "aria": False}, "encoding": line})
    if figure.spread:
        data, mark = {"values": [row for row in rows if "low" in row]}, {"type": "rule", "opacity": 0.6, "aria": False}
        horizontal = {"x": {**x, "field": "left"}, "x2": {"field": "right"}, "y": y}
        vertical = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "x": x}
        rules = ({**channels, "color": lines["color"]} for channels in (horizontal, vertical))
        layers += [{"data": data, "mark": mark, "encoding": encoding} for encoding in rules]
    layers += target_line(figure.target)
    return {"data": {"values": rows}, "layer": layers}


@_spec.register
def _distribution(figure: Distribution) -> Spec:
    rows = []
    for label, sample in figure.series.items():
        ordered = np.sort(sample)
        keep = thin(len(ordered), figure.tail, 150)
        share = np.arange(1, len(ordered) + 1) / max(1, len(ordered))
        for value, part in zip(ordered[keep].tolist(), (1.0 - share if figure.tail else share)[keep].tolist(), strict=True):
            if part > 0 or not figure.tail:
                text = f"{label}: {format_number(100 * part)} % at {format_number(value)}"
                rows.append({"x": value, "y": 100 * part, "series": label, "description": text})
    y_axis = Axis(f"{figure.y_label} (%)", log=figure.tail)
    x = channel("x", figure.x_axis, [row["x"] for row in rows])
    y = channel("y", y_axis, [row["y"] for row in rows])
    lines, _ = series_style(list(figure.series), len(figure.series) > 1)
    mark = {"type": "line", "strokeWidth": 2, "aria": False}
    line = {"mark": mark, "encoding": {"x": x, "y": y, **lines, **faded()}, "params": selections(figure)}
    return {"data": {"values": rows}, "layer": [line, _hidden_points(x, y)]}


def thin(count: int, tail: bool, points: int = 400) -> IntArray:
    """Return positions that keep the shape of a long curve, denser towards the end that matters."""
    if count <= points:
        return np.arange(count)
    steps = np.geomspace(1, count, points) if tail else np.linspace(1, count, points)
    return np.unique(np.clip(count - steps, 0, count - 1).astype(np.int64))


@_spec.register
def _bars(figure: Bars) -> Spec:
    names = list(figure.series)
    rows: list[Spec] = [
        {"group": k, "y": float(value), "series": label,
         "description": f"{label}, {figure.groups[k] or k}: {format_number(value)}"}
        for label, values in figure.series.items() for k, value in enumerate(values) if math.isfinite(value)
    ]  # fmt: skip
    color = series_style(names, len(names) > 1)[0]["color"]
    printed = [v for values in figure.published.values() for v in values]
    drawable = [value for value in (*(row["y"] for row in rows), *printed) if value > 0 or not figure.y_axis.log]
    y = channel("y", figure.y_axis, [*drawable, *([] if figure.y_axis.log else [0.0])])
    texts = {str(k): group for k, group in enumerate(figure.groups)}
    level = max(map(len, figure.groups), default=0) * max(1, len(figure.groups)) * 7 < SMALL[0]
    angle = 0 if level else -30
    every = {"domain": [*range(len(figure.groups))]}  # also groups without a bar
    x = {"field": "group", "type": "ordinal", "scale": every, "axis": {"title": None, "labelAngle": angle,
         "labelExpr": lookup(texts), "labelOverlap": False, "labelLimit": 320}}  # fmt: skip
    data = {"values": [row for row in rows if row["y"] > 0 or not figure.y_axis.log]}
    base = {"y2": {"datum": 0 if not figure.y_axis.log else y["scale"]["domain"][0]}}
    encoding = {"x": x, "xOffset": {"field": "series", "sort": names}, "y": y, **base, "color": color, **described()}
    layers: list[Spec] = [{"mark": "bar", "encoding": encoding}]
    if figure.published:
        points = [{"group": k, "y": float(v), "series": s,
                   "description": f"{s}, {figure.groups[k]}, published: {format_number(v)}"}
                  for s, vs in figure.published.items() for k, v in enumerate(vs) if math.isfinite(v)]  # fmt: skip
        mark = {"type": "tick", "color": "var(--ink)", "thickness": 2}
        over = {"x": x, "xOffset": {"field": "series", "sort": names}, "y": y, **described()}
        layers.append({"data": {"values": points}, "mark": mark, "encoding": over})
    return {"data": data, "layer": layers}


@_spec.register
def _boxes(figure: Boxes) -> Spec:
    rows = [
        {"x": b.left, "right": b.right, "y": b.low, "high": b.high, "series": b.series, "description": b.description}
        for b in figure.boxes
    ]
    across = [edge for box in figure.boxes for edge in (box.left, box.right)]
    up = [edge for box in figure.boxes for edge in (box.low, box.high)]
    x, y = channel("x", figure.x_axis, across), channel("y", figure.y_axis, up)
    color = series_style(list(figure.series), len(figure.series) > 1)[0]["color"]
    drawn = zip(figure.series, color["scale"]["range"], strict=True)
    color["scale"]["range"] = ["var(--grid)" if name in figure.pale else shade for name, shade in drawn]
    mark = {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 0.4, "clip": True}
    area = {"x": x, "x2": {"field": "right"}, "y": y, "y2": {"field": "high"}}
    encoding = {**area, "color": color, **described(), **faded()}
    layers: list[Spec] = [{"mark": mark, "encoding": encoding, "params": selections(figure)}]
    if figure.highlight is not None:
        layers.append(rule_at("x", figure.highlight, [2, 3]))
    return {"data": {"values": rows}, "layer": layers}


@_spec.register
def _panels(figure: Panels) -> Spec:
    parts = []
    for k, panel in enumerate(figure.panels):
        text = (
            json.dumps(_spec(panel))
            .replace('"shown"', f'"shown{k}"')
            .replace('"zoom"', f'"zoom{k}"')
            .replace("(width + 60)", str(SMALL[0] + 60))
        )  # parameter names must be unique within the chart
        parts.append({"title": panel.title, "width": SMALL[0], "height": SMALL[1], **json.loads(text)})
    alone = dict.fromkeys(("color", "strokeDash", "shape"), "independent")
    return {"concat": parts, "columns": figure.columns, "resolve": {"scale": alone}}
