"""Base times under both algorithms of section III-C: how the table of run times affects their difference at S3.

Contrary to the paper, maximize composition alone misses fewer deadlines at S3 than minimize fragmentation alone. This module
repeats those runs without the table, which makes workloads on several devices faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.files.component import Component
from poolwise.files.study import PerformanceSection
from poolwise.hashing import Json
from poolwise.model import Schedule
from poolwise.studies.cells import Cell
from poolwise.traces.generators.nvme_mix import MixScenario
from poolwise_reproductions.cases import CellCase, Measurer
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.nvme_composition.cells import ALONE, NvmeRun, calibrated
from poolwise_reproductions.nvme_composition.claims import MAXIMIZE, MINIMIZE, MISSED, NvmeResults
from poolwise_reproductions.nvme_composition.plan import SATURATED, NvmePlan, base, seeded
from poolwise_reproductions.results import KeyedRow

ARTIFACT = "Section III-C"
SCENARIO: MixScenario = "high_compute"
DIFFERENCE = f"{MAXIMIZE} minus {MINIMIZE}"
CHANGE = f"{DIFFERENCE}, less that with the table"


@dataclass(frozen=True)
class BaseTimesRun(CellCase):
    """Run of a case in which every workload takes its base time."""

    run: NvmeRun

    def cell(self) -> Cell:
        """Return the cell of the run without a table of run times."""
        return replace(self.run.cell(), performance=PerformanceSection(model=Component(name="ideal")))

    def measured(self, schedule: Schedule) -> Json:
        """Return the metrics of the run."""
        return self.run.measured(schedule)


def cases(plan: NvmePlan, measure: Measurer) -> list[BaseTimesRun]:
    """Return the runs of both algorithms at each saturated load with every seed, after calibrating the loads."""
    unseeded = [base(SCENARIO, load, policy) for load in plan.loads if load in SATURATED for policy in ALONE]
    plain = [seeded(case, seed) for case in unseeded for seed in plan.seeds_of(case)]
    return [BaseTimesRun(run) for run in calibrated(plain, measure)]


def rows(results: NvmeResults, by_case: Mapping[BaseTimesRun, Mapping[str, Any]]) -> Iterator[KeyedRow]:
    """Measure the difference between the algorithms with base times, and how much greater it is than with the table."""
    timed = replace(results, measurements={case.run.case: record for case, record in by_case.items()})
    for load in SATURATED:
        condition = f"base times, {SCENARIO}, load {load}"
        with_base, with_table = _differences(timed, load), _differences(results, load)
        yield (ARTIFACT, condition, DIFFERENCE), Measured.over_seeds(with_base)
        both = len(with_base) and len(with_table)
        yield (ARTIFACT, condition, CHANGE), Measured.over_seeds(with_base - with_table if both else [])


def _differences(results: NvmeResults, load: float) -> FloatArray:
    """Return the differences between the algorithms, (n_seed,); empty if a case was not run."""
    above, below = (results.values(results.at(SCENARIO, load, policy), MISSED) for policy in (MAXIMIZE, MINIMIZE))
    return above - below if len(above) and len(below) else np.array([])
