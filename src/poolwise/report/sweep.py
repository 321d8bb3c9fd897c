"""A study as curves: the varied parameter of the x axis, and the combinations of the others as series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from poolwise import quantities
from poolwise.catalog import PREFIX
from poolwise.files.size_text import SizeText
from poolwise.presentation.format import in_unit, order_name, shared_unit
from poolwise.studies import CellResult, StudyResult

MAX_SERIES = 24
"""Maximum number of series in a chart or a table of a report."""


@dataclass(frozen=True)
class Sweep:
    """Cells arranged by series and x position.

    Attributes
    ----------
    x_name : dotted name of the parameter along x, "" if no size is varied
    x : ascending values in base units (MiB for memory); (0.0,) without an x parameter
    labels : x as text, all in one unit
    unit : that unit, "" if x is a plain number
    noun : noun phrase of x, such as pool memory in each rack
    choice : word for one of the series: "order", or "setting" if the study varies settings of one scheduler
    series : labels of the combinations of all other varied parameters, in study order
    cells : (series, position of x) -> one cell per seed; only the first of cells that share a run
    """

    x_name: str
    x: tuple[float, ...]
    labels: tuple[str, ...]
    series: tuple[str, ...]
    cells: Mapping[tuple[str, int], Sequence[CellResult]]
    unit: str = ""
    noun: SizeText = field(default_factory=lambda: SizeText(""))
    choice: str = "order"

    @classmethod
    def of(cls, result: StudyResult) -> Sweep:
        """Choose the first varied size with two or more values as x; all other varied parameters name series.

        Numbers among the settings of the scheduler are not sizes.
        """
        varied: dict[str, dict[object, None]] = {}  # values in study order
        runs: dict[str, CellResult] = {}
        for cell in result.cells:
            runs.setdefault(cell.key, cell)
        for cell in runs.values():
            for name, value in cell.parameters.items():
                varied.setdefault(name, {})[value] = None
        several = {n: vs for n, vs in varied.items() if len(vs) > 1 and not n.startswith("scheduler.")}
        x_name = next((n for n, vs in several.items() if all(_size(v) is not None for v in vs)), "")
        sizes = sorted({float(_size(v) or 0.0) for v in varied.get(x_name, (0.0,))})
        places = {size: at for at, size in enumerate(sizes)}
        unit = shared_unit(sizes) if any(isinstance(v, str) for v in varied.get(x_name, ())) else ""
        cells: dict[tuple[str, int], list[CellResult]] = {}
        series: dict[str, None] = {}
        for cell in runs.values():
            others = [value_label(n, v) for n, v in cell.parameters.items() if n != x_name and len(varied[n]) > 1]
            label = ", ".join(others) or _scheduler_label(result, cell)
            series[label] = None
            at = places[float(_size(cell.parameters.get(x_name, 0.0)) or 0.0)]
            cells.setdefault((label, at), []).append(cell)
        labels = [f"{in_unit(size, unit)} {unit}" if unit else f"{size:g}" if x_name else "" for size in sizes]
        noun = SizeText.of(x_name, result.study.cells[0].machine_tables)
        orders = {"scheduler", "scheduler.order"} & {*varied} or not any(n.startswith("scheduler.") for n in varied)
        choice = "order" if orders else "setting"
        return cls(x_name, tuple(sizes), tuple(labels), tuple(series), cells, unit, noun, choice)

    def sample(self, metric: str, at: int) -> Sweep:
        """Return the sweep with at most `MAX_SERIES` series: the best at x, and others at even distances in rank."""
        if len(self.series) <= MAX_SERIES:
            return self
        ranked = self.best(metric, at) or [*self.series]
        chosen = {ranked[k * (len(ranked) - 1) // (MAX_SERIES - 1)] for k in range(MAX_SERIES)}
        return replace(self, series=tuple(s for s in self.series if s in chosen))

    def amount(self, at: int) -> str:
        """Return a size with its noun, such as "8 GiB of pool memory in each rack"; "" if no size is varied."""
        return self.noun.phrase(self.labels[at]) if self.x_name else ""

    def size(self, at: int) -> str:
        """Return a size in its shortest clear form: with its unit, such as "8 GiB", or a plain number with its noun."""
        return self.labels[at] if self.unit else self.noun.setting(self.labels[at])

    def where(self, at: int) -> str:
        """Return the size as a suffix of a title, " with 8 GiB of ..."; "" if no size is varied."""
        return f" with {self.amount(at)}" if self.x_name else ""

    def values(self, metric: str, series: str) -> list[float]:
        """Return the mean of a metric over the seeds, one value per x; NaN without a value."""
        return [self.value(metric, series, at) for at in range(len(self.x))]

    def value(self, metric: str, series: str, at: int) -> float:
        """Return the mean of a metric over the seeds of one series at one x; NaN without a value."""
        values = [cell.metrics.get(metric, np.nan) for cell in self.cells.get((series, at), ())]
        return float(np.mean(values)) if values else float("nan")

    def best(self, metric: str, at: int, better: str = "lower") -> list[str]:
        """Return the series with a value at x, best first (ties in study order)."""
        sign = 1.0 if better == "lower" else -1.0
        measured = [s for s in self.series if not np.isnan(self.value(metric, s, at))]
        return sorted(measured, key=lambda s: sign * self.value(metric, s, at))


def value_label(path: str, value: object) -> str:
    """Return a varied value as text in a label, with the name of its parameter if it is a number of the scheduler."""
    text = str(value).removeprefix(PREFIX)
    if path.startswith("scheduler.") and isinstance(value, int | float):
        text = f"{path.rpartition('.')[2]} {text}"
    return order_name(text) if path == "scheduler.order" else text


def _scheduler_label(result: StudyResult, cell: CellResult) -> str:
    """Return the label of a single series: the listed values of the scheduler of a cell, or its order if none are listed."""
    listed = [value_label(path, value) for path, value in cell.parameters.items() if path.startswith("scheduler")]
    scheduler = result.simulated(cell).scheduler
    return ", ".join(listed) or order_name(str(scheduler.order or scheduler.kind))


def _size(value: object) -> float | None:
    """Return a value as a number in base units of memory, None if it is not a size."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(quantities.parse(str(value), "memory"))
    except ValueError:
        return None
