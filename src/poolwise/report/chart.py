"""Figures as Vega-Lite charts for the page: one specification is drawn as the static picture and answers the hand.

Colours are variables of the page's style sheet, so that a chart follows the reader's theme. Every mark carries what it shows
as its description: it is the tooltip, what a screen reader says, and what the keyboard steps through.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import singledispatch

import numpy as np

from poolwise.presentation.figure import Axis, Bars, Boxes, Curves, Distribution, Figure, Panels, Scatter
from poolwise.presentation.format import spoken_number
from poolwise.report.chart_parts import (
    TEXT,
    Spec,
    channel,
    chart_config,
    faded,
    lookup,
    rule_at,
    selections,
    series_style,
    speaks,
    target_line,
    tick_positions,
)
from poolwise.report.figures import thin
from poolwise.report.labels import apart

WIDEST, WIDE, SMALL = (1000, 440), (500, 300), (290, 190)
"""Width and height of jobs over time, of the chart that carries the answer, and of those in rows: about as wide as they
stand on a page, so that their text is as large as it says."""


def chart(shown: Figure, wide: bool = False, text: int = TEXT) -> Spec:
    """Vega-Lite specification of a figure, its data inside; colours are variables of the page, `text` is in pixels."""
    width, height = (WIDEST if isinstance(shown, Boxes) else WIDE) if wide else SMALL
    size = {} if isinstance(shown, Panels) else {"width": width, "height": height}
    return {
        **size,
        "padding": 4,
        "background": None,
        "description": f"{shown.title}. {shown.caption}",
        "config": chart_config(text),
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
    xs, ys = tick_positions(shown.x, shown.x_axis), tick_positions([*values, *lows, *highs, *target], shown.y_axis)
    x, y = channel("x", shown.x_axis, xs), channel("y", shown.y_axis, ys)
    style = series_style(list(shown.series), legend=len(shown.series) > 1 and not shown.direct)
    if shown.marks:
        style.pop("shape")  # shapes tell kinds of points apart
    few = len(shown.x) <= 40
    layers: list[Spec] = []
    if shown.interval:
        bands = [row for row in rows if "low" in row]
        band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": style["color"]}
        layers.append({"data": {"values": bands}, "mark": {"type": "area", "opacity": 0.16, "aria": False}, "encoding": band})
    line = {"type": "line", "strokeWidth": 2, "aria": False}
    bare = {key: found for key, found in style.items() if key != "shape"}  # with it Vega-Lite draws points on the line
    layers.append({"mark": line, "encoding": {"x": x, "y": y, **bare, **faded()}, "params": selections(shown)})
    if not few:
        layers.append({"mark": {"type": "point", "opacity": 0, "size": 60}, "encoding": {"x": x, "y": y, **speaks()}})
    if few:
        layers.append(
            {
                "mark": {"type": "point", "size": 55, "filled": True},
                "encoding": {"x": x, "y": y, **style, **speaks(), **faded()},
            }
        )
    if shown.published:
        points = _rows(shown, shown.published, ", published, ")
        hollow = {"type": "point", "size": 90, "filled": False}
        over = {key: channel for key, channel in style.items() if key != "strokeDash"}
        layers.append({"data": {"values": points}, "mark": hollow, "encoding": {"x": x, "y": y, **over, **speaks()}})
    if shown.marks:
        points = _rows(shown, shown.marks, ", ")
        kinds = {"type": "nominal", "field": "series", "title": None}
        shape = {**kinds, "scale": {"domain": list(shown.marks), "range": ["circle", "cross", "diamond"][: len(shown.marks)]}}
        mark = {"type": "point", "size": 120, "filled": False, "color": "var(--ink)"}
        layers.append({"data": {"values": points}, "mark": mark, "encoding": {"x": x, "y": y, "shape": shape, **speaks()}})
    if shown.highlight is not None:
        layers.append(rule_at("x", shown.highlight, [2, 3]))
    layers += target_line(shown.target)
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
            row["said"] = (
                shown.said[label][k] if label in shown.said else f"{label}: {spoken_number(at)}, {spoken_number(value)}"
            )
            if bounds is not None:
                row |= dict(zip(("left", "right", "low", "high"), (float(bound[k]) for bound in bounds), strict=True))
            rows.append(row)
    across = [row[name] for row in rows for name in ("x", "left", "right") if name in row]
    up = [row[name] for row in rows for name in ("y", "low", "high") if name in row]
    up += [] if shown.target is None else [shown.target[0]]
    x, y = (
        channel("x", shown.x_axis, tick_positions(across, shown.x_axis)),
        channel("y", shown.y_axis, tick_positions(up, shown.y_axis)),
    )
    style = series_style(list(shown.series), legend=len(shown.series) > 1)
    layers: list[Spec] = [
        {"mark": {"type": "point", "size": 70, "filled": True}, "encoding": {"x": x, "y": y, **style, **speaks(), **faded()},
         "params": selections(shown)}
    ]  # fmt: skip
    if shown.joined:
        line = {"x": x, "y": y, "order": {"field": "k"}, **style, **faded()}
        layers.insert(0, {"mark": {"type": "line", "strokeWidth": 1.6, "aria": False}, "encoding": line})
    if shown.spread:
        data, mark = {"values": [row for row in rows if "low" in row]}, {"type": "rule", "opacity": 0.6, "aria": False}
        level = {"x": {**x, "field": "left"}, "x2": {"field": "right"}, "y": y}
        upright = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "x": x}
        rules = ({**channels, "color": style["color"]} for channels in (level, upright))
        layers += [{"data": data, "mark": mark, "encoding": encoding} for encoding in rules]
    layers += target_line(shown.target)
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
    x = channel("x", shown.x_axis, tick_positions([row["x"] for row in rows], shown.x_axis))
    y = channel("y", y_axis, tick_positions([row["y"] for row in rows], y_axis))
    style = series_style(list(shown.series), legend=len(shown.series) > 1)
    style.pop("shape")
    line = {"mark": {"type": "line", "strokeWidth": 2, "aria": False}, "encoding": {"x": x, "y": y, **style, **faded()},
            "params": selections(shown)}  # fmt: skip
    grip = {"mark": {"type": "point", "opacity": 0, "size": 60},
            "encoding": {"x": x, "y": y, **speaks()}}  # fmt: skip
    return {"data": {"values": rows}, "layer": [line, grip]}


@_spec.register
def _bars(shown: Bars) -> Spec:
    names = list(shown.series)
    rows: list[Spec] = [
        {"group": k, "y": float(value), "series": label, "said": f"{label}, {shown.groups[k] or k}: {spoken_number(value)}"}
        for label, values in shown.series.items() for k, value in enumerate(values) if math.isfinite(value)
    ]  # fmt: skip
    style = series_style(names, legend=len(names) > 1)
    known = [row["y"] for row in rows if row["y"] > 0 or not shown.y_axis.log]
    y = channel("y", shown.y_axis, tick_positions([*known, *([] if shown.y_axis.log else [0.0])], shown.y_axis))
    texts = {str(k): group for k, group in enumerate(shown.groups)}
    level = max(map(len, shown.groups), default=0) * max(1, len(shown.groups)) * 7 < SMALL[0]
    angle = 0 if level else -30
    x = {"field": "group", "type": "ordinal", "axis": {"title": None, "labelAngle": angle,
         "labelExpr": lookup(texts), "labelOverlap": False, "labelLimit": 150}}  # fmt: skip
    data = {"values": [row for row in rows if row["y"] > 0 or not shown.y_axis.log]}
    base = {"y2": {"datum": 0 if not shown.y_axis.log else y["scale"]["domain"][0]}}
    encoding = {"x": x, "xOffset": {"field": "series", "sort": names}, "y": y, **base, "color": style["color"], **speaks()}
    layers: list[Spec] = [{"mark": "bar", "encoding": encoding}]
    if shown.published:
        points = [{"group": k, "y": float(v), "series": s, "said": f"{s}, {shown.groups[k]}, published: {spoken_number(v)}"}
                  for s, vs in shown.published.items() for k, v in enumerate(vs) if math.isfinite(v)]  # fmt: skip
        mark = {"type": "tick", "color": "var(--ink)", "thickness": 2}
        over = {"x": x, "xOffset": {"field": "series", "sort": names}, "y": y, **speaks()}
        layers.append({"data": {"values": points}, "mark": mark, "encoding": over})
    return {"data": data, "layer": layers}


@_spec.register
def _boxes(shown: Boxes) -> Spec:
    rows = [
        {"x": b.left, "right": b.right, "y": b.low, "high": b.high, "series": b.series, "said": b.said} for b in shown.boxes
    ]
    across = [edge for box in shown.boxes for edge in (box.left, box.right)]
    up = [edge for box in shown.boxes for edge in (box.low, box.high)]
    x, y = (
        channel("x", shown.x_axis, tick_positions(across, shown.x_axis)),
        channel("y", shown.y_axis, tick_positions(up, shown.y_axis)),
    )
    style = series_style(list(shown.series), legend=len(shown.series) > 1)
    colours = style["color"]["scale"]
    colours["range"] = [
        "var(--grid)" if name in shown.pale else colour for name, colour in zip(shown.series, colours["range"], strict=True)
    ]
    mark = {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 0.4, "clip": True}
    encoding = {
        "x": x,
        "x2": {"field": "right"},
        "y": y,
        "y2": {"field": "high"},
        "color": style["color"],
        **speaks(),
        **faded(),
    }
    layers: list[Spec] = [{"mark": mark, "encoding": encoding, "params": selections(shown)}]
    if shown.highlight is not None:
        layers.append(rule_at("x", shown.highlight, [2, 3]))
    return {"data": {"values": rows}, "layer": layers}


@_spec.register
def _panels(shown: Panels) -> Spec:
    parts = []
    for k, panel in enumerate(shown.panels):
        text = (
            json.dumps(_spec(panel))
            .replace('"shown"', f'"shown{k}"')
            .replace('"zoom"', f'"zoom{k}"')
            .replace("(width + 60)", str(SMALL[0] + 60))
        )  # names are of the chart
        parts.append({"title": panel.title, "width": SMALL[0], "height": SMALL[1], **json.loads(text)})
    alone = dict.fromkeys(("color", "strokeDash", "shape"), "independent")
    return {"concat": parts, "columns": shown.columns, "resolve": {"scale": alone}}
