"""Tables as plain data: what stands in which column, in words. Only the report renders them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table for a reader.

    Attributes
    ----------
    title : such as "Table III"
    columns : (n_column,) headings, with units
    rows : (n_row, n_column) cells as text, rounded as they are to be read
    note : what a reader must know about it
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __post_init__(self) -> None:
        for k, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {k} of '{self.title}' has {len(row)} cells for {len(self.columns)} columns")
