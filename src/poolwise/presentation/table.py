"""Tables as plain data. Only the report renders them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


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
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    chosen: int | None = None

    def __post_init__(self) -> None:
        for k, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {k} of '{self.title}' has {len(row)} cells for {len(self.columns)} columns")


def cell_text(value: float, unit: str) -> str:
    """Format a metric value for a table cell; a fraction as a percentage."""
    if not math.isfinite(value):
        return "-"
    if unit == "fraction":
        return f"{100 * value:.1f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
