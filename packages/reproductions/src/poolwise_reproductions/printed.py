"""Numbers that a paper prints, as marks on our figures; the file catalog/printed/NAME.csv places them."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

import numpy as np

from poolwise.presentation.figure import Figure, Panels, VegaChart
from poolwise.presentation.format import format_number
from poolwise.report.chart import chart
from poolwise.report.chart_parts import Spec
from poolwise_reproductions import catalog
from poolwise_reproductions.published import SEPARATOR, ClaimRow

PrintedKind = Literal["value", "ratio", "divided", "reduction", "position", "median"]
"""How a mark is computed from the printed number p: p itself; our value times p, divided by p, or reduced by p %; our value at
p; or our median times p."""
PRINTED = "paper (printed)"
RATIO = "paper (printed ratio)"
POSITION = "paper (printed place)"
MEANINGS: Mapping[str, str] = {
    PRINTED: "the number itself",
    RATIO: "our value times the ratio that the paper prints",
    POSITION: "our value at the place that the paper prints",
}
"""Name of a kind of mark -> what it shows."""
NAMES: Mapping[str, str] = {"value": PRINTED, "position": POSITION}
SHAPES = {PRINTED: "diamond", RATIO: "cross", POSITION: "triangle-down"}
"""Name of a kind of mark -> its shape."""
_MARK = {"type": "point", "size": 130, "filled": False, "strokeWidth": 1.8, "color": "var(--ink)"}
_PUBLISHED = re.compile(r", published(?=[,:])")
_STATED = re.compile(r"prints|published|The paper:")
"""Words of captions that state what the paper prints."""


@dataclass(frozen=True)
class PrintedPoint:
    """A number of a paper on one of our figures.

    Attributes
    ----------
    figure, panel, series : pattern of the name of the figure, its panel ("" without panels), and the series that it belongs to
    x : position: a number, "first", "last" or "largest" of the series, "published" for the number itself, "bin" for its bin of
        10, or "note" for the time between arrivals in the note of the row
    claim : row of the claims file with the number
    kind : how the mark follows from the number
    base_figure, base_panel, base_series, base_x : our value to which a ratio refers
    note : sentence for the caption
    number : the printed number, if the published value of the claim is another
    """

    figure: str
    panel: str
    series: str
    x: str
    claim: str
    kind: PrintedKind
    base_figure: str = ""
    base_panel: str = ""
    base_series: str = ""
    base_x: str = ""
    note: str = ""
    number: str = ""


def read_printed(name: str) -> list[PrintedPoint]:
    """Read the positions at which the printed numbers of a paper are drawn."""
    with catalog.find("printed", f"{name}.csv").open(newline="", encoding="utf-8") as file:
        points = [PrintedPoint(**row) for row in csv.DictReader(file)]  # type: ignore[arg-type]  # the kind is checked below
    unknown = {point.kind for point in points} - set(get_args(PrintedKind))
    if unknown:
        raise ValueError(f"unknown kinds of printed numbers: {', '.join(sorted(unknown))}")
    return points


def with_printed(name: str, figures: Sequence[Figure], rows: Sequence[ClaimRow]) -> list[Figure]:
    """Return the figures with the paper's numbers as marks, and a caption that states which numbers the paper prints."""
    claims = {SEPARATOR.join(row.claim.key): row for row in rows}
    specs = {figure.name: _spec(figure) for figure in figures}
    drawn = {figure: [point for point in read_printed(name) if fnmatchcase(figure, point.figure)] for figure in specs}
    return [_marked(figure, specs, drawn[figure.name], claims) for figure in figures]


def remove_marks(spec: Spec) -> None:
    """Remove the marks that `with_printed` has added to a chart."""
    for unit in _units(spec):
        unit["layer"] = [layer for layer in unit["layer"] if not any("claim" in row for row in _data(layer))]


def _data(layer: Spec) -> list[Spec]:
    rows: list[Spec] = layer.get("data", {}).get("values", [])
    return rows


def _spec(figure: Figure) -> Spec:
    """Return a copy of a figure's chart without the elements that the page adds."""
    spec: Spec = json.loads(json.dumps(figure.spec if isinstance(figure, VegaChart) else chart(figure)))
    return {key: value for key, value in spec.items() if key not in ("width", "height", "padding", "background", "config")}


def _marked(
    figure: Figure, specs: Mapping[str, Spec], points: Sequence[PrintedPoint], claims: Mapping[str, ClaimRow]
) -> Figure:
    spec, names = specs[figure.name], set[str]()
    for unit in _units(spec):
        _name_published(unit)
    for point in points:
        marked = _mark(point, specs, spec, claims)
        if marked is not None:
            unit, marks = marked
            _draw(unit, marks)
    for unit in _units(spec):
        names |= _name_marks(unit)
    if not names and (not figure.artifact.startswith("Figure") or _STATED.search(figure.caption)):
        return figure
    meanings = "; ".join(f"{name}, {meaning}" for name, meaning in MEANINGS.items() if name in names)
    text = f"Marks: {meanings}." if names else "The text prints no number that has a place in this figure."
    remarks = dict.fromkeys(point.note for point in points if point.note and names)
    caption = " ".join(part for part in (figure.caption, text, *remarks) if part)
    columns = figure.columns if isinstance(figure, Panels | VegaChart) else 0
    return VegaChart(
        figure.name, figure.title, caption, artifact=figure.artifact, varies=figure.varies, spec=spec, columns=columns
    )


def _units(spec: Spec) -> list[Spec]:
    """Return the panels of a chart, or the chart itself."""
    units: list[Spec] = spec.get("concat", [spec])
    return units


def _unit(spec: Spec, panel: str) -> Spec | None:
    """Return the panel of a chart whose title begins with a text."""
    if not panel:
        return _units(spec)[0]
    return next((unit for unit in _units(spec) if str(unit.get("title", "")).startswith(f"{panel}:")), None)


def _rows(unit: Spec, series: str) -> list[Spec]:
    return [row for row in unit["data"]["values"] if row.get("series") == series]


def _at(row: Spec) -> float:
    return float(row["x"] if "x" in row else row["group"])


def _value(unit: Spec, series: str, x: float | str) -> Spec | None:
    """Return the row of a series at a position; None if it has none."""
    rows = sorted(_rows(unit, series), key=_at)
    if not rows or x == "largest":
        return max(rows, key=lambda row: float(row["y"]), default=None)
    if isinstance(x, str):
        return rows[0 if x == "first" else -1]
    return next((row for row in rows if math.isclose(_at(row), x, rel_tol=1e-6, abs_tol=1e-9)), None)


def _between(unit: Spec, series: str, x: float | str) -> Spec | None:
    """Return a point on the line of a series, between two of its points or at most one step beyond the last."""
    rows = sorted((row for row in _rows(unit, series) if "x" in row), key=_at)
    if isinstance(x, str) or len(rows) < 2 or not _at(rows[0]) < x <= 2 * _at(rows[-1]) - _at(rows[-2]):
        return None
    y = np.interp(x, [_at(row) for row in rows], [float(row["y"]) for row in rows])
    return {**rows[0], "x": x, "y": float(y)}


def _position(x: str, row: ClaimRow) -> float | str | None:
    """Return the position of a mark; None if the run does not state it."""
    if x == "note":
        note = re.search(r"at ([\d,]+) us between arrivals", row.note)
        return float(note[1].replace(",", "")) if note else None
    if x in ("published", "bin"):
        return row.claim.published // 10 if x == "bin" else row.claim.published
    return x if x in ("first", "last", "largest") else float(x)


def _mark(
    point: PrintedPoint, specs: Mapping[str, Spec], spec: Spec, claims: Mapping[str, ClaimRow]
) -> tuple[Spec, list[Spec]] | None:
    """Return the panel of a point and its mark; None if the run has no value there."""
    row, unit = claims.get(point.claim), _unit(spec, point.panel)
    x = None if row is None else _position(point.x, row)
    if row is None or unit is None or x is None:
        return None
    near, number = _value(unit, point.series, x), _number(point, row)
    if near is None and point.kind == "position":
        near = _between(unit, point.series, x)
    if point.kind == "median":
        base = next((each for each in sorted(_rows(unit, point.base_series), key=_at) if float(each["y"]) >= 50), None)
        near = None if base is None else {**base, "x": _at(base) * number, "series": point.series}
    if near is None:
        return None
    if point.kind == "value":
        value: float | None = number
    elif point.kind in ("position", "median"):
        value = float(near["y"])
    else:
        value = _on_base(point, specs, row)
    if value is None:
        return None
    kind = NAMES.get(point.kind, RATIO)
    series = point.series.partition(",")[0] if point.kind == "reduction" else point.series
    about = "" if point.number else f" ({row.claim.metric})"
    shown = f"{series}, {kind} {format_number(number)}{about}: {format_number(value)}"
    keys = ("x", "group") if point.kind == "reduction" else ("x", "group", "series")  # a reduction is that of several series
    place: Spec = {key: near[key] for key in keys if key in near}
    return unit, [{**place, "y": value, "printed": kind, "claim": point.claim, "description": shown}]


def _number(point: PrintedPoint, row: ClaimRow) -> float:
    """Return the number that the paper prints."""
    return float(point.number) if point.number else row.claim.published


def _on_base(point: PrintedPoint, specs: Mapping[str, Spec], row: ClaimRow) -> float | None:
    """Return our value to which a printed ratio refers, times the ratio."""
    base = specs.get(point.base_figure)
    unit = None if base is None else _unit(base, point.base_panel)
    x = _position(point.base_x, row)
    base_mark = None if unit is None or x is None else _value(unit, point.base_series, x)
    if base_mark is None:
        return None
    ratio, ours = _number(point, row), float(base_mark["y"])
    return {"ratio": ours * ratio, "divided": ours / ratio, "reduction": ours * (1 - ratio / 100)}[point.kind]


def _encodings(unit: Spec) -> Iterator[Spec]:
    for layer in unit["layer"]:
        yield layer.get("encoding", {})


def _draw(unit: Spec, marks: Sequence[Spec]) -> None:
    """Add marks to a panel, extending its vertical axis if they lie outside."""
    for mark in marks:
        _extend(unit, mark["y"])
    source = next(each for each in _encodings(unit) if {"x", "y"} <= set(each) and each["y"].get("field") == "y")
    shared: Spec = {key: source[key] for key in ("xOffset", "color") if key in source}
    if "xOffset" in shared or "series" not in marks[0]:
        shared.pop("color", None)  # a mark in the color of its bar would be invisible
    text = {"field": "description", "type": "nominal"}
    encoding = {"x": source["x"], "y": source["y"], **shared, "tooltip": text, "description": text}
    unit["layer"].append({"data": {"values": list(marks)}, "mark": _MARK, "encoding": encoding})


def _extend(unit: Spec, value: float) -> None:
    for encoding in _encodings(unit):
        scale = encoding.get("y", {}).get("scale", {})
        if "domain" in scale and value == value and (value > 0 or scale.get("type") != "log"):
            low, high = scale["domain"]
            scale["domain"] = [min(low, value), max(high, value)]


def _name_published(unit: Spec) -> None:
    """Draw the published values of a panel as printed marks."""
    for layer in unit["layer"]:
        data = _data(layer)
        if data and all(_PUBLISHED.search(str(row.get("description", ""))) for row in data):
            layer["mark"] = _MARK
            for row in data:
                _extend(unit, row["y"])
                row |= {"printed": PRINTED, "description": _PUBLISHED.sub(f", {PRINTED}", row["description"])}


def _name_marks(unit: Spec) -> set[str]:
    """Use shapes for a panel's marks instead of its series, which differ in color and dash; return the names of the marks."""
    marked = [layer for layer in unit["layer"] if any("printed" in row for row in _data(layer))]
    names = {row["printed"] for layer in marked for row in layer["data"]["values"]}
    if marked:
        for encoding in _encodings(unit):
            encoding.pop("shape", None)
        _show_dashes(unit)
    kinds = [name for name in SHAPES if name in names]
    scale = {"domain": kinds, "range": [SHAPES[name] for name in kinds]}
    legend = {"title": None, "orient": "bottom", "symbolSize": 90, "symbolStrokeColor": "var(--ink)", "labelLimit": 320}
    for layer in marked:
        layer["encoding"]["shape"] = {"field": "printed", "type": "nominal", "scale": scale, "legend": {**legend, "columns": 1}}
    return names


def _show_dashes(unit: Spec) -> None:
    """Show the dash of each series in the legend, which has no shapes: colors repeat if there are many series."""
    dashed = next((each for each in _encodings(unit) if {"color", "strokeDash"} <= set(each)), None)
    if dashed is None or not dashed["color"].get("legend"):
        return
    legend = {**dashed["color"]["legend"], "symbolType": "stroke", "symbolSize": 400}
    for encoding in _encodings(unit):
        if encoding.get("color", {}).get("legend"):
            encoding["color"]["legend"] = legend
    names, dashes = dashed["color"]["scale"]["domain"], dashed["strokeDash"]["scale"]["range"]
    dashed["strokeDash"] |= {"scale": {"domain": names, "range": dashes[: len(names)]}, "legend": legend}
