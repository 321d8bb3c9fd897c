"""Figures as plain data: values, units and labels. Only the report draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poolwise.arrays import FloatArray


@dataclass(frozen=True)
class Axis:
    """A labelled axis; `ticks` maps positions to labels if the values are categories."""

    label: str
    log: bool = False
    ticks: Mapping[float, str] | None = None
    limits: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Figure:
    """Common part of all figures: a name, used for files, a title, a caption, and optionally the published figure.

    `artifact` is the figure of the paper that this one reproduces, such as "Figure 8". `varies` names the numbers that differ
    between runs, such as timings.
    """

    name: str
    title: str
    caption: str = ""
    artifact: str = field(default="", kw_only=True)
    varies: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Curves(Figure):
    """One line per series over common x positions; NaN leaves a gap.

    `published` holds points read from the paper, drawn as hollow markers; `interval` maps a series to (low, high) bands;
    `highlight` marks an x position; `target` draws a labelled line at a y value; `marks` are points of several kinds;
    `direct` labels each line at its end.
    """

    x: Sequence[float] = ()
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    published: Mapping[str, Sequence[float]] = field(default_factory=dict)
    interval: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    highlight: float | None = None
    target: tuple[float, str] | None = None
    marks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    direct: bool = False


@dataclass(frozen=True)
class Scatter(Figure):
    """Points (x, y) of each series, connected if `joined`; `spread` maps a series to its (x low, x high, y low, y high).

    `target` draws a labelled line at a y value; `descriptions` maps a series to a text for each of its points.
    """

    series: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    joined: bool = False
    spread: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float]]] = field(
        default_factory=dict
    )
    target: tuple[float, str] | None = None
    descriptions: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Distribution(Figure):
    """Cumulative distribution of samples or, with `tail`, the share above x on a logarithmic axis."""

    series: Mapping[str, FloatArray] = field(default_factory=dict)
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_label: str = "share"
    tail: bool = False


@dataclass(frozen=True)
class Bars(Figure):
    """Grouped bars: one group per label in `groups`, one bar per series in each; `published` is drawn as a mark on the bar."""

    groups: Sequence[str] = ()
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    published: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A rectangle of a series, from `left` to `right` and from `low` to `high`; `description` is its text."""

    left: float
    right: float
    low: float
    high: float
    series: str
    description: str


@dataclass(frozen=True)
class Boxes(Figure):
    """Rectangles, colored by series: jobs over time, parts of a machine, ranges; drawn in the given order.

    `series` orders the colors; series in `pale` have the color of the grid; `highlight` marks an x position.
    """

    boxes: Sequence[Box] = ()
    series: Sequence[str] = ()
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    highlight: float | None = None
    pale: Sequence[str] = ()


@dataclass(frozen=True)
class Panels(Figure):
    """Figures in a grid under one title, as in a published figure with several panels; they share the legend of the first."""

    panels: Sequence[Figure] = ()
    columns: int = 2


@dataclass(frozen=True)
class VegaChart(Figure):
    """A chart given as Vega-Lite, without size, fonts and background, such as one read from a page.

    `columns` is the number of panels in a row, 0 for a single chart.
    """

    spec: Mapping[str, Any] = field(default_factory=dict)
    columns: int = 0
