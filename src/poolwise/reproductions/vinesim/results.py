"""Results of the VineSim runs: values of a set-up over its seeds, ratios of two set-ups, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.comparison.verdicts import Measured
from poolwise.metrics.intervals import mean_interval
from poolwise.reproductions.vinesim.plan import VineSimPlan
from poolwise.reproductions.vinesim.setups import Setup

MetricOf = Callable[[Mapping[str, Any]], float]


def mean_job_latency(content: Mapping[str, Any]) -> float:
    """Return the mean job latency, us."""
    return float(content["mean_job_latency_us"])


def makespan(content: Mapping[str, Any]) -> float:
    """Return the time from the first arrival to the last end, us."""
    return float(content["makespan_s"]) * 1e6


def utilization_of(kind: str) -> MetricOf:
    """Return the utilization of a unit type, or "overall", as a metric."""
    name = "unit_utilization" if kind == "overall" else f"unit_utilization_by_type.{kind}"

    def share(content: Mapping[str, Any]) -> float:
        return float(content.get(name, np.nan))

    return share


@dataclass(frozen=True)
class VineSimResults:
    """Measurements of all set-ups; `changed` holds fields that replace those of a set-up that is looked up."""

    plan: VineSimPlan
    contents: Mapping[Setup, Mapping[str, Any]]
    changed: Mapping[str, Any] = field(default_factory=dict)

    def values(self, setup: Setup, metric: MetricOf = mean_job_latency) -> FloatArray:
        """Return (n_seed,) values of a set-up; empty if it was not run."""
        wanted = self.plan.seeded(replace(setup, **self.changed))
        found = [self.contents[seeded] for seeded in wanted if seeded in self.contents]
        return np.array([metric(content) for content in found], dtype=np.float64)

    def mean(self, setup: Setup, metric: MetricOf = mean_job_latency) -> Measured:
        """Return the mean over the seeds with its interval."""
        return mean_over_seeds(self.values(setup, metric))

    def ratio(self, over: Setup, under: Setup, metric: MetricOf = mean_job_latency) -> Measured:
        """Return the mean of the ratios, seed by seed; a set-up without random draws is used for every seed."""
        above, below = self.values(over, metric), self.values(under, metric)
        if not len(above) or not len(below):
            return Measured(np.nan)
        return mean_over_seeds(above / below)

    def curve(
        self, setups: Sequence[Setup], metric: MetricOf = mean_job_latency
    ) -> tuple[list[float], tuple[list[float], list[float]]]:
        """Return the means of some set-ups and (low, high) of their intervals; without an interval, the mean itself."""
        means = [self.mean(setup, metric) for setup in setups]
        low = [m.value if np.isnan(m.low) else m.low for m in means]
        high = [m.value if np.isnan(m.high) else m.high for m in means]
        return [m.value for m in means], (low, high)


def mean_over_seeds(values: FloatArray) -> Measured:
    """Return the mean and 95 % interval of independent values; no interval if all values are equal."""
    if not len(values):
        return Measured(float("nan"))
    if len(values) == 1 or np.ptp(values) == 0:
        return Measured(float(values[0]))
    found = mean_interval(values)
    return Measured(found.mean, found.low, found.high)
