"""Results of the VineSim runs: means and ratios over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.results import RunMetric, SeedResults
from poolwise_reproductions.vinesim.plan import VineSimPlan
from poolwise_reproductions.vinesim.setups import Setup

LATENCY = "mean_job_latency_us"


@dataclass(frozen=True)
class VineSimResults(SeedResults[Setup]):
    """Measurements of all set-ups; the fields in `changed` replace those of any set-up before it is looked up."""

    plan: VineSimPlan
    changed: Mapping[str, Any] = field(default_factory=dict)

    def seeded(self, case: Setup) -> Sequence[Setup]:
        """Return a changed set-up with each of its seeds."""
        return self.plan.seeded(replace(case, **self.changed))

    def mean(self, case: Setup, metric: RunMetric = LATENCY) -> Measured:
        """Return the mean over the seeds with its interval; no interval if all values are equal."""
        return mean_over_seeds(self.values(case, metric))

    def ratio(self, over: Setup, under: Setup) -> Measured:
        """Return the mean of the ratios of latency, seed by seed; a set-up without random draws is used for every seed."""
        above, below = self.values(over, LATENCY), self.values(under, LATENCY)
        return mean_over_seeds(above / below if len(above) and len(below) else np.empty(0))


def mean_over_seeds(values: FloatArray) -> Measured:
    """Return the mean and 95 % interval of independent values; no interval if all values are equal."""
    return Measured(float(values[0])) if len(values) and np.ptp(values) == 0 else Measured.over_seeds(values)


def makespan(run: Mapping[str, Any]) -> float:
    """Return the time from the first arrival to the last end, us."""
    return float(run["makespan_s"]) * 1e6


def utilization(run: Mapping[str, Any], unit: str = "") -> float:
    """Return the utilization of a unit type, or of all units."""
    return float(run.get(f"unit_utilization_by_type.{unit}" if unit else "unit_utilization", np.nan))


def cpu_use(run: Mapping[str, Any]) -> float:
    """Return the utilization of the CPUs."""
    return utilization(run, "cpu-intel")
