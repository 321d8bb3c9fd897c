"""Store of a study's cells: facts, and the outcomes of jobs."""

from __future__ import annotations

import io

import polars as pl

from poolwise.errors import InputError
from poolwise.hashing import Json
from poolwise.metrics import Outcomes
from poolwise.runner import Store
from poolwise.studies.cells import Cell


class CellStore(Store):
    """Store of cells: facts, and the outcomes of jobs as Parquet."""

    def facts(self, cell: Cell) -> Json | None:
        """Return the facts of a cell, or None if its record is missing or damaged."""
        return self.content(cell.key)

    def outcomes(self, cell: Cell) -> Outcomes:
        """Read the outcomes of a cell; raises InputError if they are missing or damaged."""
        return self.load(cell.key)[1]

    def load(self, key: str) -> tuple[Json, Outcomes]:
        """Read the facts and outcomes of the cell with a key; raises InputError if they are missing or damaged."""
        facts, outcomes = self.content(key), self.read_file(key, "parquet")
        if facts is None or outcomes is None:
            problem = f"the outcomes of run {key[:8]} are missing or damaged"
            raise InputError(problem, file=self.file, remedy="run the study again")
        return facts, Outcomes.from_frame(pl.read_parquet(io.BytesIO(outcomes)), facts["machine"])
