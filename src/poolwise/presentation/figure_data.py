"""What a figure shows, as a table of numbers: the form in which it is compared and handed on."""

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
"""(panel, series, x, y, low, high, published); NaN where there is nothing. Of a box x and y are its left and right."""


def figure_csv(shown: Figure) -> str:
    """Write the numbers of a figure with six digits, columns `FIGURE_COLUMNS`; a distribution as its percentiles."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(FIGURE_COLUMNS)
    table.writerows([_text(cell) for cell in row] for row in figure_rows(shown))
    return text.getvalue()


@singledispatch
def figure_rows(shown: Figure) -> Iterator[DataRow]:
    """Rows of one kind of figure."""
    raise TypeError(f"no data for {type(shown).__name__}")


@figure_rows.register
def _panels(shown: Panels) -> Iterator[DataRow]:
    for panel in shown.panels:
        for _, *rest in figure_rows(panel):
            yield (panel.title, *rest)  # type: ignore[misc]  # mypy loses the types of what a star takes


@figure_rows.register
def _curves(shown: Curves) -> Iterator[DataRow]:
    for label, values in shown.series.items():
        nothing = [math.nan] * len(shown.x)
        low, high = shown.interval.get(label, (nothing, nothing))
        published = shown.published.get(label, nothing)
        for row in zip(shown.x, values, low, high, published, strict=True):
            yield ("", label, *row)


@figure_rows.register
def _scatter(shown: Scatter) -> Iterator[DataRow]:
    for label, (x, y) in shown.series.items():
        for across, up in zip(x, y, strict=True):
            yield "", label, across, up, math.nan, math.nan, math.nan


@figure_rows.register
def _distribution(shown: Distribution) -> Iterator[DataRow]:
    shares = np.arange(QUANTILES + 1) / QUANTILES
    for label, values in shown.series.items():
        if len(values):
            for value, share in zip(np.quantile(values, shares).tolist(), shares.tolist(), strict=True):
                yield "", label, value, 1.0 - share if shown.tail else share, math.nan, math.nan, math.nan


@figure_rows.register
def _bars(shown: Bars) -> Iterator[DataRow]:
    for label, values in shown.series.items():
        published = shown.published.get(label, [math.nan] * len(shown.groups))
        for group, value, printed in zip(shown.groups, values, published, strict=True):
            yield "", label, group, value, math.nan, math.nan, printed


@figure_rows.register
def _boxes(shown: Boxes) -> Iterator[DataRow]:
    for box in shown.boxes:
        yield "", box.series, box.left, box.right, box.low, box.high, math.nan


def _text(cell: float | str) -> str:
    return cell if isinstance(cell, str) else "" if math.isnan(cell) else f"{cell:.6g}"
