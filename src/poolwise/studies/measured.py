"""Measured cells of a study: metrics on a common population of jobs, and the outcomes behind them."""

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
    """One measured run of a study.

    Attributes
    ----------
    parameters : dotted path -> varied value, as written
    seed : random seed
    key : key of the cell's record
    metrics : name -> value, for `poolwise.metrics.METRICS` and additional metrics of the study
    jobs : number of jobs in the workload
    excluded, repaired : reason -> number of trace rows that were skipped or changed
    rejected : reason -> number of jobs that can never run on this machine
    waiting : number of jobs that never started
    engine : name of the engine that simulated the run
    watts, dollars : mean power and purchase price of the machine, NaN if unknown
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


CACHE_MB = 512
"""Size of the cache of outcomes, MB; evicted outcomes are read again when needed."""


class StoredFacts(Mapping[str, Json]):
    """Cell key -> facts of its simulation, read from the store on access."""

    def __init__(self, study: Study, store: CellStore) -> None:
        self._study, self._store = study, store

    def __getitem__(self, key: str) -> Json:
        facts = self._store.content(key)
        if facts is None:
            raise KeyError(key)
        return facts

    def __iter__(self) -> Iterator[str]:
        return (cell.key for cell in self._study.runs)

    def __len__(self) -> int:
        return len(self._study.runs)


class Runs:
    """Cached outcomes of the cells, and the population of compared jobs."""

    def __init__(self, study: Study, store: CellStore) -> None:
        self._study, self._store = study, store
        self._outcomes: OrderedDict[str, Outcomes] = OrderedDict()
        self._cached_bytes = 0
        self._common: dict[str, BoolArray] = {}

    def outcomes(self, cell: Cell) -> Outcomes:
        """Return the outcome of every job in a cell; the most recently used outcomes are cached."""
        if cell.key in self._outcomes:
            self._outcomes.move_to_end(cell.key)
            return self._outcomes[cell.key]
        outcomes = self._outcomes[cell.key] = self._store.outcomes(cell)
        self._cached_bytes += outcomes.nbytes
        while self._cached_bytes > CACHE_MB * 1_000_000 and len(self._outcomes) > 1:
            self._cached_bytes -= self._outcomes.popitem(last=False)[1].nbytes
        return outcomes

    @cached_property
    def _cells_by_workload(self) -> Mapping[str, list[Cell]]:
        """Workload -> cells that run it."""
        cells: dict[str, list[Cell]] = {}
        for cell in (*self._study.cells, *self._study.today.values()):
            cells.setdefault(_workload_name(cell), []).append(cell)
        return cells

    def population(self, cell: Cell) -> BoolArray:
        """Return a mask of the jobs, (n_job,), that all cells with this workload finished, or that the paper's rule selects."""
        if self._study.measure.population == "paper":
            return paper_population(self.outcomes(cell), cell.warm_up)
        workload = _workload_name(cell)
        if workload not in self._common:
            self._common[workload] = common_population(map(self.outcomes, self._cells_by_workload[workload]), cell.warm_up)
        return self._common[workload]


def _workload_name(cell: Cell) -> str:
    """Return a key that cells with the same workload share."""
    return canonical(cell.workload.content())


@dataclass(frozen=True, eq=False)
class MeasuredStudy:
    """All cells of a study, measured on a common population of jobs.

    Attributes
    ----------
    study : the study
    folder : folder of the cells and results
    cells : one result per cell, in the study's order
    facts : cell key -> facts of its simulation, baselines included
    """

    study: Study
    folder: Path
    cells: tuple[CellResult, ...]
    facts: Mapping[str, Json] = field(repr=False)
    _runs: Runs = field(repr=False)

    def outcomes(self, cell: CellResult) -> Outcomes:
        """Return the outcome of every job in a cell."""
        return self._runs.outcomes(self.simulated(cell))

    def baseline(self, cell: CellResult) -> Outcomes:
        """Return the outcome of every job under FCFS without backfilling on the same machine; needs `measure.baseline`."""
        return self._runs.outcomes(self.simulated(cell).baseline())

    def memory_baseline(self, cell: CellResult) -> Outcomes | None:
        """Return the outcome of every job on the machine of `measure.memory_baseline`, or None if there is none."""
        other = self.study.memory_baseline(self.simulated(cell))
        return None if other is None else self._runs.outcomes(other)

    def today(self, cell: CellResult) -> Outcomes | None:
        """Return the outcome of every job under today's configuration, or None if the study has none."""
        other = self.study.today.get(cell.key)
        return None if other is None else self._runs.outcomes(other)

    def window(self, cell: CellResult) -> Window:
        """Return the time window in which throughput and utilization of a cell are measured."""
        return Window.of(self.outcomes(cell), self.simulated(cell).warm_up)

    def population(self, cell: CellResult) -> BoolArray:
        """Return a mask of the jobs, (n_job,), on which a cell is measured."""
        return self._runs.population(self.simulated(cell))

    def simulated(self, result: CellResult) -> Cell:
        """Return the cell that a result measures, with its machine, workload and scheduler."""
        return self._simulated[result.key]

    @cached_property
    def _simulated(self) -> Mapping[str, Cell]:
        return {cell.key: cell for cell in reversed(self.study.cells)}  # the first of the rows that share a run
