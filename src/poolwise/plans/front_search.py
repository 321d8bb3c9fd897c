"""Search for the Pareto front of candidates, by measuring all of them, or by successive halving on parts of the workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from poolwise.arrays import FloatArray
from poolwise.files.fields import Count, Positive, Section
from poolwise.hashing import Json
from poolwise.optimize.front import search_front
from poolwise.optimize.monotone import Element
from poolwise.plans.plan import ReportProgress
from poolwise.runner import TaskRunner
from poolwise.runner.task_type import TaskType
from poolwise.studies.cell_store import CellStore

RUNGS = 3
"""Rungs of successive halving: a ninth of the jobs, a third, and all."""
CellsOf = Callable[[Sequence[Element], int], Sequence[Any]]
"""Function (elements, n) -> tasks on the first 1/n of the jobs, an equal number per element; n = 1 is the whole workload."""


class SearchSection(Section):
    """Search settings for a large set of candidates."""

    exhaustive: Positive = Field(default=2000, description="number of candidates up to which all of them are simulated")
    sample: Positive = Field(default=270, description="number of candidates on the first rung, which uses a ninth of the jobs")
    seed: Count = Field(default=0, description="random seed of the sample")


@dataclass
class FrontSearch:
    """Measures candidates rung by rung, and keeps the records of the last rung.

    Attributes
    ----------
    task_type, cells_of, objectives : the measurement, the tasks of candidates, and names of the record's values to minimize
    records : candidate -> its records on the whole workload
    n_runs : number of runs on all rungs
    """

    task_type: TaskType[Any]
    cells_of: CellsOf
    objectives: Sequence[str]
    runner: TaskRunner[CellStore]
    tell: ReportProgress
    records: dict[Element, list[Json]] = field(default_factory=dict)
    n_runs: int = 0

    def search(self, elements: Sequence[Element], settings: SearchSection) -> None:
        """Measure all candidates, or search them if there are many."""
        if len(elements) <= settings.exhaustive:
            self._measure(elements, RUNGS - 1)
        else:
            search_front(elements, self._measure, RUNGS, min(settings.sample, len(elements)), settings.seed)

    def _measure(self, elements: Sequence[Element], rung: int) -> FloatArray:
        """Return the mean objectives over the records of each candidate, (n, d)."""
        cells = self.cells_of(elements, 3 ** (RUNGS - 1 - rung))
        self.tell(f"rung {rung + 1} of {RUNGS}: {len(elements):,} candidates, {len(cells):,} runs")
        records = self.runner.records(self.task_type, cells)
        self.n_runs += len(cells)
        each = len(cells) // len(elements)
        if rung == RUNGS - 1:
            self.records |= {element: records[k * each : (k + 1) * each] for k, element in enumerate(elements)}
        values = np.array([[run[name] for name in self.objectives] for run in records], dtype=np.float64)
        means: FloatArray = values.reshape(len(elements), each, len(self.objectives)).mean(axis=1)
        return means
