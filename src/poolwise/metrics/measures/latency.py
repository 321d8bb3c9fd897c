"""Measures of job and task latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.latency import PERCENTILES, Spread, parents, response_us, task_latency_us
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register
from poolwise.units import US

_WORDS = {"mean": "mean", "p50": "median", "p99": "99th percentile of the", "p99_9": "99.9th percentile of the"}


def _metrics(name: str, description: str) -> dict[str, Metric]:
    return {f"{kind}_{name}_us": Metric(f"{words} {description}", "us", "lower") for kind, words in _WORDS.items()}


def _spread(name: str, values: FloatArray) -> dict[str, float]:
    spread = Spread.of(values)
    return {f"{kind}_{name}_us": getattr(spread, kind) for kind in ("mean", *PERCENTILES)}


@register("metrics", "latency")
@dataclass(frozen=True)
class LatencyMeasure(Measure):
    """Time from the arrival of a job to the end of its last task, over the jobs whose tasks are all measured."""

    metrics: ClassVar[Mapping[str, Metric]] = _metrics("job_latency", "job latency")

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without such jobs."""
        outcomes = run.outcomes
        job, count = parents(run.workload)
        last, arrival = np.full(count, -1, dtype=np.int64), np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        np.maximum.at(last, job, outcomes.end)
        np.minimum.at(arrival, job, outcomes.submit)
        whole = np.ones(count, dtype=np.bool_)
        np.logical_and.at(whole, job, run.counted)
        return _spread("job_latency", (last - arrival)[whole] / US)


@register("metrics", "task_latency")
@dataclass(frozen=True)
class TaskLatency(Measure):
    """Task end minus job arrival, and task end minus task start, for jobs that are sets of tasks."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "measured_tasks": Metric("measured tasks", "tasks", "neither"),
        **_metrics("task_latency", "task latency"),
        **_metrics("response", "task response time (transfer and computation)"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether any job has several tasks, or the workload has a column with the parent job of each row."""
        return "parent" in run.workload.attributes or bool((run.workload.tasks > 1).any())

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics over the tasks of the measured jobs."""
        schedule = run.schedule
        chosen = run.counted[schedule.job[schedule.finished]]
        return {
            "measured_tasks": float(np.count_nonzero(chosen)),
            **_spread("task_latency", task_latency_us(schedule)[chosen]),
            **_spread("response", response_us(schedule)[chosen]),
        }
