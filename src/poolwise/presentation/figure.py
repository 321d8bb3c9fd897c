"""Figures as plain data: what is shown, in which unit, with which words. Only the report draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.arrays import FloatArray


@dataclass(frozen=True)
class Axis:
    """A labelled axis; `ticks` maps positions to labels where the values are not numbers to be read off."""

    label: str
    log: bool = False
    ticks: Mapping[float, str] | None = None
    limits: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Figure:
    """What every figure has: a name (of its files), a title, a caption, and optionally the paper's figure it stands for.

    `artifact` is that figure, such as "Figure 8". `varies` says what its numbers are that differ from run to run.
    """

    name: str
    title: str
    caption: str = ""
    artifact: str = field(default="", kw_only=True)
    varies: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Curves(Figure):
    """One line per series over common x positions; NaN leaves a gap.

    `published` holds points read off the paper, drawn hollow beside ours; `interval` maps series to (low, high) bands;
    `highlight` marks an x position; `target` draws a line at a value of y, with words; `marks` are points of several kinds;
    `direct` names each line at its end.
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
    """Points (x, y) of each series, joined where `joined`; `spread` maps a series to its (x low, x high, y low, y high).

    `target` draws a line at a value of y, with words; `said` says each point of a series in words.
    """

    series: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    joined: bool = False
    spread: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float]]] = field(
        default_factory=dict
    )
    target: tuple[float, str] | None = None
    said: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Distribution(Figure):
    """Cumulative distribution of samples, or (`tail`) the share above x on a logarithmic axis."""

    series: Mapping[str, FloatArray] = field(default_factory=dict)
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_label: str = "share"
    tail: bool = False


@dataclass(frozen=True)
class Bars(Figure):
    """Grouped bars: a group for each label in `groups`, a bar for each series in it; `published` is drawn as a mark on it."""

    groups: Sequence[str] = ()
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    published: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A rectangle from `left` to `right` and from `low` to `high`, of a series; `said` is what it shows, in words."""

    left: float
    right: float
    low: float
    high: float
    series: str
    said: str


@dataclass(frozen=True)
class Boxes(Figure):
    """Rectangles, coloured by their series: jobs over time, parts of a machine, ranges; drawn in the order given.

    `series` orders the colours, those in `pale` are drawn in the colour of the grid; `highlight` marks an x position.
    """

    boxes: Sequence[Box] = ()
    series: Sequence[str] = ()
    x_axis: Axis = field(default_factory=lambda: Axis(""))
    y_axis: Axis = field(default_factory=lambda: Axis(""))
    highlight: float | None = None
    pale: Sequence[str] = ()


@dataclass(frozen=True)
class Panels(Figure):
    """Figures side by side under one title, as a published figure of several panels; they share the legend of the first."""

    panels: Sequence[Figure] = ()
    columns: int = 2
