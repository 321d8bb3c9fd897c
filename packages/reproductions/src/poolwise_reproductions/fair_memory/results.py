"""Results of the Fair Memory runs on a machine and a trace, under a reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model.rules import PoolScope
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.fair_memory.readings import SPEC, FairMemoryReading
from poolwise_reproductions.fair_memory.runs import (
    EXTREME,
    FAIRNESS,
    MACHINES,
    ORDERS,
    PRINTED_LATENCY,
    FairMemoryCase,
    PaperMachine,
    SystemLatency,
)
from poolwise_reproductions.results import SeedResults

SLOWDOWN, THROUGHPUT = "mean_bounded_slowdown", "throughput_per_100s"
over_seeds = Measured.over_seeds


@dataclass(frozen=True)
class FairMemoryResults(SeedResults[FairMemoryCase]):
    """Runs on one machine and trace under a reading: (n_seed,) values per metric, order and size; NaN where nothing ran.

    `latency` is the latency of the scope system.
    Some cases ran with more seeds, `repeats`; `repeated` views the runs with all of these seeds.
    """

    seed_count: int
    machine: str
    reading: FairMemoryReading = SPEC
    trace: str = ""
    repeats: int = 0
    latency: SystemLatency = PRINTED_LATENCY

    @property
    def repeated(self) -> FairMemoryResults:
        """The same runs with all seeds of the cases that ran with more seeds; with F1 as printed, no case did."""
        return self if self.reading.f1 != "f1" else replace(self, seed_count=max(self.seed_count, self.repeats))

    def seeded(self, case: FairMemoryCase) -> list[FairMemoryCase]:
        """Return a case with each of its seeds."""
        return [replace(case, seed=seed) for seed in range(self.seed_count)]

    def on(self, machine: str, reading: FairMemoryReading = SPEC, trace: str = "") -> FairMemoryResults:
        """Return a view of the runs on another machine, under another reading or on another trace."""
        return replace(self, machine=machine, reading=reading, trace=trace)

    def under(self, reading: FairMemoryReading, trace: str = "") -> FairMemoryResults:
        """Return a view of the runs under another reading, or on another trace."""
        return self.on(self.machine, reading, trace)

    def case(self, order: str, size: int, **more: Any) -> FairMemoryCase:
        """Return the case of an order and pool size with the reading's backfilling and seed 0."""
        usual: dict[str, Any] = {"backfill": self.reading.backfill, "trace": self.trace}
        if more.get("scope") == "system":
            usual["latency"] = self.latency
        return FairMemoryCase(self.machine, 0, order, size, **{**usual, **more})

    def sample(self, size: int, name: str, scope: PoolScope = "rack") -> list[float] | None:
        """Return a distribution of FM with the first seed; None if nothing ran."""
        return self.measurements.get(self.case("fm", size, scope=scope), {}).get(name)

    @property
    def paper(self) -> PaperMachine:
        """Machine as the paper describes it."""
        return MACHINES[self.machine]

    @cached_property
    def sizes(self) -> list[int]:
        """Pool sizes that were run, TB per rack."""
        here = self.machine, self.trace
        return sorted({case.size_tb for case in self.measurements if case.size_tb and (case.machine, case.trace) == here})

    def __call__(self, metric: str, order: str, size: int, scope: PoolScope = "rack") -> FloatArray:
        """Return the values of a metric under an order, (n_seed,); fairness is relative to the baseline of the reading."""
        order = self.reading.f1 if order == "f1" else order
        if self.reading.baseline == "512 GB" and metric in (*FAIRNESS.values(), *EXTREME.values(), "compared_jobs"):
            metric = f"plain_{metric}"
        values = self.values(self.case(order, size, scope=scope), metric)
        return values if len(values) else np.full(1, np.nan)

    def others(self, metric: str, order: str, size: int, best: Callable[..., FloatArray]) -> FloatArray:
        """Return the best (np.min) or worst (np.max) value of all other orders, seed by seed."""
        return best([self(metric, other, size) for other in ORDERS if other != order], axis=0)

    def lead(self, size: int, metric: str = SLOWDOWN) -> FloatArray:
        """Return the mean bounded slowdown of the best other order divided by that of FM, minus 1."""
        leads: FloatArray = self.others(metric, "fm", size, np.min) / self(metric, "fm", size) - 1
        return leads
