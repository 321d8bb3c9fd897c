"""Tables as plain data. Only the report renders them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from poolwise.quantities import format_time

if TYPE_CHECKING:
    import polars as pl

RowMark = Literal["chosen", "true", "false", "partly", ""]


@dataclass(frozen=True)
class Table:
    """A table of formatted text.

    Attributes
    ----------
    title : such as "Table III"
    columns : (n_column,) headings, with units
    rows : (n_row, n_column) cells as text, rounded for display
    note : information that a reader needs with the table
    chosen : index of the row with the answer, None if there is none
    marks : index of a row -> its mark, shown as a color
    text : whether cells contain sentences, which wrap
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    chosen: int | None = None
    marks: Mapping[int, RowMark] = field(default_factory=dict)
    text: bool = False

    def __post_init__(self) -> None:
        for k, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {k} of '{self.title}' has {len(row)} cells for {len(self.columns)} columns")

    def mark(self, k: int) -> RowMark:
        """Return the mark of a row: "chosen", one of `marks`, or ""."""
        return "chosen" if k == self.chosen else self.marks.get(k, "")


def frame_table(frame: pl.DataFrame, chosen: int | None) -> Table:
    """Return all columns of a frame of candidates as a table."""
    columns = [name.replace("_", " ").replace(".", " ") for name in frame.columns]
    rows = [[_cell(value) for value in row] for row in frame.iter_rows()]
    return Table("Candidates", columns, rows, "All simulated candidates; the answer is in bold.", chosen)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def with_unit(description: str, unit: str) -> str:
    """Return the heading of a metric, with its unit; a fraction is in percent."""
    return f"{description} ({'%' if unit == 'fraction' else unit})" if unit else description


def cell_text(value: float, unit: str) -> str:
    """Format a metric value for a table cell; a fraction as a percentage."""
    if not math.isfinite(value):
        return "-"
    if unit == "fraction":
        return f"{100 * value:.1f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def amount_with_unit(value: float, unit: str) -> tuple[str, str]:
    """Return value and unit of a metric of one run; times of a second or more carry a unit that suits their length."""
    if unit == "s" or (unit == "us" and value >= 1e6):
        return format_time(value if unit == "s" else value / 1e6), ""
    if unit == "fraction":
        return _digits(100 * value, 4), "%"
    return _digits(value, 6), unit_of(value, unit)


def unit_of(value: float, unit: str) -> str:
    """Return the unit of a value; for counted items, the singular if the value is 1."""
    return unit.removesuffix("s") if value == 1 and unit in ("jobs", "nodes", "runs", "tasks") else unit


def _digits(value: float, digits: int) -> str:
    """Format a number with a given number of significant digits, but keep all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:,.{digits}g}"
