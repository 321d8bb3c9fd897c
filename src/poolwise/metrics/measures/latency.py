"""Latency of jobs of many tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.metrics.latency import PERCENTILES, Spread, parents
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register
from poolwise.units import US

_WORDS = {"mean": "mean", "p50": "median", "p99": "99th percentile of the", "p99_9": "99.9th percentile of the"}


@register("metrics", "latency")
@dataclass(frozen=True)
class LatencyMeasure(Measure):
    """From the arrival of a job to the end of its last task, over the jobs all of whose tasks are measured."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        f"{name}_job_latency_us": Metric(f"{_WORDS[name]} job latency", "us", "lower") for name in ("mean", *PERCENTILES)
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute them."""
        outcomes = run.outcomes
        job, count = parents(run.workload)
        last, arrival = np.full(count, -1, dtype=np.int64), np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        np.maximum.at(last, job, outcomes.end)
        np.minimum.at(arrival, job, outcomes.submit)
        whole = np.ones(count, dtype=np.bool_)
        np.logical_and.at(whole, job, run.counted)
        spread = Spread.of((last - arrival)[whole] / US)
        return {f"{name}_job_latency_us": getattr(spread, name) for name in ("mean", *PERCENTILES)}
