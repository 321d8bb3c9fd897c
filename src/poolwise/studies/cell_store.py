"""The folder that the cells of a study are kept in, read as what they are: facts, and outcomes of jobs."""

from __future__ import annotations

import io

import polars as pl

from poolwise.errors import InputError
from poolwise.hashing import Json
from poolwise.metrics import Outcomes
from poolwise.runner import Store
from poolwise.studies.cells import Cell


class CellStore(Store):
    """The folder that cells are kept in: facts, and the outcomes of jobs as Parquet."""

    def facts(self, cell: Cell) -> Json | None:
        """Facts of a cell that is complete, else None."""
        return self.content(cell.key)

    def outcomes(self, cell: Cell) -> Outcomes:
        """Read the outcomes of a cell; raises InputError if they are not complete."""
        return self.kept(cell.key)[1]

    def kept(self, key: str) -> tuple[Json, Outcomes]:
        """Facts and outcomes of the cell with a key; raises InputError if they are not complete."""
        facts, outcomes = self.content(key), self.kept_file(key, "parquet")
        if facts is None or outcomes is None:
            problem = f"the outcomes of the run {key[:8]} are missing or damaged"
            raise InputError(problem, file=self.file, remedy="run the study again")
        return facts, Outcomes.from_frame(pl.read_parquet(io.BytesIO(outcomes)), facts["machine"])
