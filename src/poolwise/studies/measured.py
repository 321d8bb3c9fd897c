"""The cells of a study, measured on the same jobs: numbers, and the outcomes behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from poolwise.arrays import BoolArray
from poolwise.identity import Json, canonical
from poolwise.metrics import Outcomes, Window, common_population, paper_population
from poolwise.studies.cells import Cell, Parameter
from poolwise.studies.simulation import CellStore
from poolwise.studies.study import Study


@dataclass(frozen=True)
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


class Runs:
    """Outcomes of the cells, read once, and the jobs that are compared."""

    def __init__(self, study: Study, store: CellStore) -> None:
        self._study, self._store = study, store
        self._outcomes: dict[str, Outcomes] = {}
        self._common: dict[str, BoolArray] = {}

    def outcomes(self, cell: Cell) -> Outcomes:
        """What became of every job in a cell."""
        if cell.key not in self._outcomes:
            self._outcomes[cell.key] = self._store.outcomes(cell)
        return self._outcomes[cell.key]

    def population(self, cell: Cell) -> BoolArray:
        """(n_job,) jobs that every cell on the same workload ran, or the paper's rule for one cell."""
        if self._study.measure.population == "paper":
            return paper_population(self.outcomes(cell), cell.warm_up)
        workload = canonical(cell.trace.content())
        if workload not in self._common:
            every = (*self._study.cells, *self._study.today.values())
            together = [c for c in every if canonical(c.trace.content()) == workload]
            self._common[workload] = common_population([self.outcomes(c) for c in together], cell.warm_up)
        return self._common[workload]


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
        return next(cell for cell in self.study.cells if cell.key == result.key)
