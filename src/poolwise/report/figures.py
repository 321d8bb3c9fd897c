"""Figures for papers, as PNG, SVG and PDF; `draw` dispatches on the kind of figure."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis as MplAxis
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from poolwise.arrays import IntArray
from poolwise.presentation.figure import Axis, Bars, Boxes, Curves, Distribution, Figure, Panels, Scatter
from poolwise.presentation.format import format_number
from poolwise.report.theme import DASHES, GRID, INK, figure, marker, series_color

MAX_HORIZONTAL = 40
"""Maximum number of characters of horizontal labels under bars; longer labels are rotated."""


_METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Format -> metadata that is left out, so that the same figure gives the same bytes."""


def save(shown: Figure, folder: Path) -> list[Path]:
    """Write PNG, SVG and PDF on white for print; equal figures give equal bytes."""
    canvas = _canvas(shown)
    paths = []
    for kind in _METADATA:
        path = folder / f"{shown.name}.{kind}"
        _write(canvas, shown.name, kind, path)
        paths.append(path)
    return paths


def write_figure(shown: Figure, kind: str, file: Path) -> None:
    """Write a figure in one format ("png", "svg" or "pdf") to a file."""
    _write(_canvas(shown), shown.name, kind, file)


def _write(canvas: Canvas, name: str, kind: str, file: Path) -> None:
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "pdf.fonttype": 42}):
        canvas.savefig(file, format=kind, metadata=_METADATA[kind], facecolor="white", dpi=300)


def _canvas(shown: Figure) -> Canvas:
    if isinstance(shown, Panels):
        return _side_by_side(shown)
    with figure() as canvas:
        axes = canvas.subplots()
        draw(shown, axes)
        if axes.get_legend_handles_labels()[1]:
            canvas.legend(loc="outside upper center", ncols=3, handlelength=3, columnspacing=1.2)
        canvas.draw_without_rendering()
        return canvas


def _side_by_side(shown: Panels) -> Canvas:
    rows = -(-len(shown.panels) // shown.columns)
    with figure(2.4 * shown.columns, 2.0 * rows + 0.5) as canvas:
        grid = canvas.subplots(rows, shown.columns, squeeze=False).ravel()
        for panel, axes in zip(shown.panels, grid, strict=False):
            draw(panel, axes)
            axes.set_title(panel.title, fontsize=8)
        for axes in grid[len(shown.panels) :]:
            axes.set_visible(False)
        handles, labels = grid[0].get_legend_handles_labels()
        if labels:
            canvas.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), handlelength=3)
        canvas.draw_without_rendering()
        return canvas


@singledispatch
def draw(shown: Figure, axes: Axes) -> None:
    """Draw a figure into axes. Raises TypeError for an unsupported kind of figure."""
    raise TypeError(f"no drawing for {type(shown).__name__}")


@draw.register
def _curves(shown: Curves, axes: Axes) -> None:
    for k, (label, values) in enumerate(shown.series.items()):
        color = series_color(k)
        axes.plot(shown.x, values, color=color, marker=marker(k), linestyle=DASHES[k % len(DASHES)], label=label)
        if label in shown.interval:
            axes.fill_between(list(shown.x), *shown.interval[label], color=color, alpha=0.18, linewidth=0)
        if label in shown.published:
            axes.plot(
                shown.x,
                shown.published[label],
                color=color,
                marker=marker(k),
                markerfacecolor="none",
                linestyle="none",
                markersize=9,
                label=f"{label}, published",
            )
    for k, (kind, values) in enumerate(shown.marks.items()):
        axes.plot(
            shown.x, values, color=INK, marker=marker(k), markersize=11, markerfacecolor="none", linestyle="none", label=kind
        )
    _target(shown.target, axes)
    if shown.highlight is not None:
        axes.axvline(shown.highlight, color=INK, linewidth=1, alpha=0.45, linestyle=(0, (2, 3)))
    _format_axes(axes, shown.x_axis, shown.y_axis)


@draw.register
def _scatter(shown: Scatter, axes: Axes) -> None:
    for k, (label, (x, y)) in enumerate(shown.series.items()):
        line = DASHES[k % len(DASHES)] if shown.joined else "none"
        axes.plot(x, y, color=series_color(k), marker=marker(k), linestyle=line, label=label)
        if label in shown.spread:
            left, right, low, high = (np.asarray(bound) for bound in shown.spread[label])
            across, up = (np.asarray(x) - left, right - np.asarray(x)), (np.asarray(y) - low, high - np.asarray(y))
            axes.errorbar(x, y, xerr=across, yerr=up, color=series_color(k), linestyle="none", linewidth=1, alpha=0.6)
    _target(shown.target, axes)
    _format_axes(axes, shown.x_axis, shown.y_axis)


def _target(target: tuple[float, str] | None, axes: Axes) -> None:
    if target is not None:
        axes.axhline(target[0], color=INK, linewidth=1, linestyle=(0, (6, 4)), label=target[1])


@draw.register
def _boxes(shown: Boxes, axes: Axes) -> None:
    for k, name in enumerate(shown.series):
        boxes = [box for box in shown.boxes if box.series == name]
        patches = [Rectangle((b.left, b.low), b.right - b.left, b.high - b.low) for b in boxes]
        color = GRID if name in shown.pale else series_color(k)
        axes.add_collection(PatchCollection(patches, facecolor=color, edgecolor="white", linewidth=0.2))
        axes.plot([], [], color=color, linewidth=5, label=name)
    axes.autoscale_view()
    if shown.highlight is not None:
        axes.axvline(shown.highlight, color=INK, linewidth=1, linestyle=(0, (2, 3)))
    _format_axes(axes, shown.x_axis, shown.y_axis)


@draw.register
def _distribution(shown: Distribution, axes: Axes) -> None:
    for k, (label, values) in enumerate(shown.series.items()):
        ordered = np.sort(values)
        share = np.arange(1, len(ordered) + 1) / max(1, len(ordered))
        keep = thin(len(ordered), shown.tail)
        axes.plot(
            ordered[keep],
            (1.0 - share if shown.tail else share)[keep],
            color=series_color(k),
            linestyle=DASHES[k % len(DASHES)],
            marker=marker(k),
            markevery=0.14,
            label=label,
        )
    if shown.tail:
        axes.set_yscale("log")
    _format_axes(axes, shown.x_axis, Axis(shown.y_label))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))


@draw.register
def _bars(shown: Bars, axes: Axes) -> None:
    width = 0.8 / max(1, len(shown.series))
    for k, (label, values) in enumerate(shown.series.items()):
        at = np.arange(len(shown.groups)) + (k - (len(shown.series) - 1) / 2) * width
        axes.bar(at, values, width * 0.9, color=series_color(k), label=label)
        if label in shown.published:
            axes.plot(at, shown.published[label], linestyle="none", marker="_", markersize=12, markeredgewidth=2, color=INK)
    _format_axes(axes, Axis(""), shown.y_axis)
    crowded = sum(map(len, shown.groups)) + len(shown.groups) > MAX_HORIZONTAL
    axes.set_xticks(range(len(shown.groups)), list(shown.groups))
    if crowded:
        for text in axes.get_xticklabels():
            text.set(rotation=30, horizontalalignment="right", rotation_mode="anchor")
    axes.grid(visible=False, axis="x")


def thin(count: int, tail: bool, points: int = 400) -> IntArray:
    """Return positions that preserve the shape of a long curve, denser towards the tail."""
    if count <= points:
        return np.arange(count)
    steps = np.geomspace(1, count, points) if tail else np.linspace(1, count, points)
    return np.unique(np.clip(count - steps, 0, count - 1).astype(np.int64))


def _format_axes(axes: Axes, x_axis: Axis, y_axis: Axis) -> None:
    """Label the axes with units, and logarithmic axes with plain numbers."""
    if x_axis.log:
        axes.set_xscale("log")
    if y_axis.log:
        axes.set_yscale("log")
    _format_axis(axes.xaxis, x_axis)
    _format_axis(axes.yaxis, y_axis)
    axes.set_xlim(*x_axis.limits)
    if not y_axis.log and axes.get_yscale() != "log" and y_axis.limits == (None, None):
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    else:
        axes.set_ylim(*y_axis.limits)


def _format_axis(drawn: MplAxis, axis: Axis) -> None:
    drawn.set_label_text(axis.label)
    drawn.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
    if axis.log:
        drawn.set_minor_formatter(FuncFormatter(lambda value, _: _minor_label(value, *drawn.get_view_interval())))
    if axis.ticks is not None:
        drawn.set_ticks(list(axis.ticks), labels=_tick_labels(axis))
        drawn.set_ticks([], minor=True)
        drawn.set_minor_formatter(NullFormatter())


def _minor_label(value: float, low: float, high: float) -> str:
    """Label 2 and 5 of each decade of a short logarithmic axis."""
    first = f"{value:e}"[0]
    return format_number(value) if first in "25" and high < 50 * low else ""


def _tick_labels(axis: Axis, apart: float = 0.13) -> list[str]:
    """Return the tick labels; labels that would overlap the previous one are blank, except the first and the last."""
    ticks = axis.ticks or {}
    at = np.array(list(ticks), dtype=np.float64)
    at = np.log(at) if axis.log else at
    span = float(np.ptp(at)) or 1.0
    shown: list[str] = []
    before = -np.inf
    for k, label in enumerate(ticks.values()):
        last = k == len(at) - 1
        clear = at[k] - before >= apart * span and (last or at[-1] - at[k] >= apart * span)
        shown.append(label if clear or last else "")
        before = at[k] if shown[-1] else before
    return shown
