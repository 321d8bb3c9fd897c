"""Measures of waits and slowdowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.metrics import slowdown
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register

_SPREAD = {"mean": "mean", "median": "median", "p90": "90th percentile of the", "p99": "99th percentile of the"}


def _spread(name: str, description: str, unit: str) -> Iterator[tuple[str, Metric]]:
    for prefix, words in _SPREAD.items():
        yield f"{prefix}_{name}", Metric(f"{words} {description}", unit, "lower")


@register("metrics", "waits")
@dataclass(frozen=True)
class Waits(Measure):
    """Waits and bounded slowdowns of the measured jobs: mean, median, 90th and 99th percentile."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "measured_jobs": Metric("measured jobs", "jobs", "neither"),
        **dict(_spread("wait_s", "wait", "s")),
        **dict(_spread("bounded_slowdown", "bounded slowdown", "")),
        **dict(_spread("bounded_slowdown_local", "bounded slowdown relative to the runtime with local memory", "")),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without jobs."""
        found = {"measured_jobs": float(np.count_nonzero(run.counted))}
        for name, values in (
            ("wait_s", slowdown.wait_s(run.outcomes)),
            ("bounded_slowdown", slowdown.bounded_slowdown(run.outcomes, run.tau_s)),
            ("bounded_slowdown_local", slowdown.bounded_slowdown_local(run.outcomes, run.tau_s)),
        ):
            found.update((f"{prefix}_{name}", value) for prefix, value in slowdown.spread(values[run.counted]).items())
        return found
