"""Figures as tables of numbers, for comparison and export."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from functools import singledispatch

import numpy as np

from poolwise.presentation.figure import Bars, Boxes, Curves, Distribution, Figure, Panels, Scatter

FIGURE_COLUMNS = ("panel", "series", "x", "y", "low", "high", "published")
QUANTILES = 100

DataRow = tuple[str, str, float | str, float, float, float, float]
"""(panel, series, x, y, low, high, published); NaN for missing values. For a box, x and y are its left and right edges."""


def figure_csv(figure: Figure) -> str:
    """Return the numbers of a figure as CSV with six digits and the columns `FIGURE_COLUMNS`; a distribution as percentiles."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(FIGURE_COLUMNS)
    table.writerows([_cell_text(cell) for cell in row] for row in figure_rows(figure))
    return text.getvalue()


@singledispatch
def figure_rows(figure: Figure) -> Iterator[DataRow]:
    """Yield the data rows of a figure. Raises TypeError for an unsupported kind of figure."""
    raise TypeError(f"no data for {type(figure).__name__}")


@figure_rows.register
def _panels(figure: Panels) -> Iterator[DataRow]:
    for panel in figure.panels:
        for _, *rest in figure_rows(panel):
            yield (panel.title, *rest)  # type: ignore[misc]  # mypy loses the types of starred elements


@figure_rows.register
def _curves(figure: Curves) -> Iterator[DataRow]:
    for label, values in figure.series.items():
        nothing = [math.nan] * len(figure.x)
        low, high = figure.interval.get(label, (nothing, nothing))
        published = figure.published.get(label, nothing)
        for row in zip(figure.x, values, low, high, published, strict=True):
            yield ("", label, *row)


@figure_rows.register
def _scatter(figure: Scatter) -> Iterator[DataRow]:
    for label, (xs, ys) in figure.series.items():
        for x, y in zip(xs, ys, strict=True):
            yield "", label, x, y, math.nan, math.nan, math.nan


@figure_rows.register
def _distribution(figure: Distribution) -> Iterator[DataRow]:
    shares = np.arange(QUANTILES + 1) / QUANTILES
    for label, values in figure.series.items():
        if len(values):
            for value, share in zip(np.quantile(values, shares).tolist(), shares.tolist(), strict=True):
                yield "", label, value, 1.0 - share if figure.tail else share, math.nan, math.nan, math.nan


@figure_rows.register
def _bars(figure: Bars) -> Iterator[DataRow]:
    for label, values in figure.series.items():
        published = figure.published.get(label, [math.nan] * len(figure.groups))
        for group, value, published_value in zip(figure.groups, values, published, strict=True):
            yield "", label, group, value, math.nan, math.nan, published_value


@figure_rows.register
def _boxes(figure: Boxes) -> Iterator[DataRow]:
    for box in figure.boxes:
        yield "", box.series, box.left, box.right, box.low, box.high, math.nan


def _cell_text(cell: float | str) -> str:
    return cell if isinstance(cell, str) else "" if math.isnan(cell) else f"{cell:.6g}"
