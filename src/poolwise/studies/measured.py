"""The cells of a study, measured on the same jobs: numbers, and the outcomes behind them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from poolwise.arrays import BoolArray
from poolwise.hashing import Json, canonical
from poolwise.metrics import Outcomes, Window, common_population, paper_population
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, Parameter
from poolwise.studies.study import Study


@dataclass(frozen=True, slots=True)
class CellResult:
    """One run of a study, measured.

    Attributes
    ----------
    parameters : dotted path -> value as written, of what the study varies
    seed : of this run
    key : names the cell's files
    metrics : name -> value, the names of `poolwise.metrics.METRICS` and of further measures that the study asks for
    jobs : jobs of the workload
    excluded, repaired : reason -> rows of the trace that were left out or changed
    rejected : reason -> jobs that can never run on this machine
    waiting : jobs that never started
    engine : which engine ran it
    watts, dollars : mean power and purchase price of the machine, NaN where unknown
    """

    parameters: Mapping[str, Parameter]
    seed: int
    key: str
    metrics: Mapping[str, float]
    jobs: int
    excluded: Mapping[str, int]
    repaired: Mapping[str, int]
    rejected: Mapping[str, int]
    waiting: int
    engine: str
    watts: float
    dollars: float


KEPT_MB = 512
"""Outcomes that are kept in memory; others are read again when they are needed."""


class StoredFacts(Mapping[str, Json]):
    """Cell key -> what its simulation left behind beside the outcomes, read from the store when it is asked for."""

    def __init__(self, study: Study, store: CellStore) -> None:
        self._study, self._store = study, store

    def __getitem__(self, key: str) -> Json:
        found = self._store.content(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return (cell.key for cell in self._study.runs)

    def __len__(self) -> int:
        return len(self._study.runs)


class Runs:
    """Outcomes of the cells, and the jobs that are compared."""

    def __init__(self, study: Study, store: CellStore) -> None:
        self._study, self._store = study, store
        self._outcomes: OrderedDict[str, Outcomes] = OrderedDict()
        self._kept = 0
        self._common: dict[str, BoolArray] = {}

    def outcomes(self, cell: Cell) -> Outcomes:
        """What became of every job in a cell; those that were asked for last are kept."""
        if cell.key in self._outcomes:
            self._outcomes.move_to_end(cell.key)
            return self._outcomes[cell.key]
        found = self._outcomes[cell.key] = self._store.outcomes(cell)
        self._kept += found.nbytes
        while self._kept > KEPT_MB * 1_000_000 and len(self._outcomes) > 1:
            self._kept -= self._outcomes.popitem(last=False)[1].nbytes
        return found

    @cached_property
    def _together(self) -> Mapping[str, list[Cell]]:
        """Workload -> the cells on it."""
        found: dict[str, list[Cell]] = {}
        for cell in (*self._study.cells, *self._study.today.values()):
            found.setdefault(_workload_name(cell), []).append(cell)
        return found

    def population(self, cell: Cell) -> BoolArray:
        """(n_job,) jobs that every cell on the same workload ran, or the paper's rule for one cell."""
        if self._study.measure.population == "paper":
            return paper_population(self.outcomes(cell), cell.warm_up)
        workload = _workload_name(cell)
        if workload not in self._common:
            self._common[workload] = common_population(map(self.outcomes, self._together[workload]), cell.warm_up)
        return self._common[workload]


def _workload_name(cell: Cell) -> str:
    """What two cells have alike that are on the same workload."""
    return canonical(cell.trace.content())


@dataclass(frozen=True, eq=False)
class MeasuredStudy:
    """All cells of a study, measured on the same jobs.

    Attributes
    ----------
    study : what was asked
    folder : where the cells and results stand
    cells : one result per cell of the study, in its order
    facts : cell key -> what its simulation left behind beside the outcomes, baselines included
    """

    study: Study
    folder: Path
    cells: tuple[CellResult, ...]
    facts: Mapping[str, Json] = field(repr=False)
    _runs: Runs = field(repr=False)

    def outcomes(self, cell: CellResult) -> Outcomes:
        """What became of every job in a cell."""
        return self._runs.outcomes(self.simulated(cell))

    def baseline(self, cell: CellResult) -> Outcomes:
        """What became of every job under FCFS without backfilling on the same machine; needs `measure.baseline`."""
        return self._runs.outcomes(self.simulated(cell).baseline())

    def memory_baseline(self, cell: CellResult) -> Outcomes | None:
        """What became of every job on the machine of `measure.memory_baseline`; None if there is none."""
        there = self.study.memory_baseline(self.simulated(cell))
        return None if there is None else self._runs.outcomes(there)

    def today(self, cell: CellResult) -> Outcomes | None:
        """What becomes of every job today, in the place of a cell; None if the study names no today."""
        there = self.study.today.get(cell.key)
        return None if there is None else self._runs.outcomes(there)

    def window(self, cell: CellResult) -> Window:
        """Time in which throughput and utilisation of a cell were measured."""
        return Window.of(self.outcomes(cell), self.simulated(cell).warm_up)

    def population(self, cell: CellResult) -> BoolArray:
        """(n_job,) jobs on which a cell was measured."""
        return self._runs.population(self.simulated(cell))

    def simulated(self, result: CellResult) -> Cell:
        """What was simulated: machine, workload, scheduler."""
        return self._simulated[result.key]

    @cached_property
    def _simulated(self) -> Mapping[str, Cell]:
        return {cell.key: cell for cell in reversed(self.study.cells)}  # of rows that share a run the first
