"""Looking up what was measured: values of a set-up over its seeds, ratios of two, and their intervals."""

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


def latency_over_seeds(content: Mapping[str, Any]) -> float:
    """Mean job latency, us."""
    return float(content["mean_job_latency_us"])


def makespan(content: Mapping[str, Any]) -> float:
    """First arrival to last end, us."""
    return float(content["makespan_s"]) * 1e6


def busy(kind: str) -> MetricOf:
    """Return the utilisation of a unit type, or "overall", as a metric."""
    name = "unit_utilization" if kind == "overall" else f"unit_utilization_by_type.{kind}"

    def share(content: Mapping[str, Any]) -> float:
        return float(content.get(name, np.nan))

    return share


@dataclass(frozen=True)
class VineSimResults:
    """All that was measured; `changed` are fields of a set-up that stand in for those that are looked up."""

    plan: VineSimPlan
    contents: Mapping[Setup, Mapping[str, Any]]
    changed: Mapping[str, Any] = field(default_factory=dict)

    def values(self, setup: Setup, metric: MetricOf = latency_over_seeds) -> FloatArray:
        """(n_seed,) values of a set-up; empty where it was not run."""
        wanted = self.plan.seeded(replace(setup, **self.changed))
        found = [self.contents[seeded] for seeded in wanted if seeded in self.contents]
        return np.array([metric(content) for content in found], dtype=np.float64)

    def mean(self, setup: Setup, metric: MetricOf = latency_over_seeds) -> Measured:
        """Mean over the seeds with its interval."""
        return mean_over_seeds(self.values(setup, metric))

    def ratio(self, over: Setup, under: Setup, metric: MetricOf = latency_over_seeds) -> Measured:
        """Mean of the ratios seed by seed; set-ups that draw nothing stand for all seeds."""
        above, below = self.values(over, metric), self.values(under, metric)
        if not len(above) or not len(below):
            return Measured(np.nan)
        return mean_over_seeds(above / below)

    def curve(
        self, setups: Sequence[Setup], metric: MetricOf = latency_over_seeds
    ) -> tuple[list[float], tuple[list[float], list[float]]]:
        """Means of some set-ups and (low, high) of their intervals; where there is none, the mean itself."""
        means = [self.mean(setup, metric) for setup in setups]
        low = [m.value if np.isnan(m.low) else m.low for m in means]
        high = [m.value if np.isnan(m.high) else m.high for m in means]
        return [m.value for m in means], (low, high)


def mean_over_seeds(values: FloatArray) -> Measured:
    """Mean and 95 % interval of independent values; one that is the same for all seeds has no interval."""
    if not len(values):
        return Measured(float("nan"))
    if len(values) == 1 or np.ptp(values) == 0:
        return Measured(float(values[0]))
    found = mean_interval(values)
    return Measured(found.mean, found.low, found.high)
