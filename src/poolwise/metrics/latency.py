"""Latency of jobs that consist of tasks, and of the tasks.

Source: VineSim, sections 4.5 and 5.2.2; specs of the accelerators, "Outputs". A job is the set of workload rows with the same
"parent"; without that column each row is a job.

Latencies count from the arrival of the job, even in task graphs: they include the time that a task waits for others, as in the
report ("average job latency may even increase, as tasks of the same job may wait for another", section 7.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model import Schedule, Workload
from poolwise.quantities import US

PERCENTILES = {"p50": 50.0, "p99": 99.0, "p99_9": 99.9}


@dataclass(frozen=True)
class LatencySummary:
    """Mean and linearly interpolated percentiles of `count` values; NaN without values."""

    count: int
    mean: float
    p50: float
    p99: float
    p99_9: float

    @classmethod
    def of(cls, values: FloatArray) -> LatencySummary:
        """Return the mean and percentiles of (n,) values."""
        if not len(values):
            return cls(0, *[float("nan")] * (1 + len(PERCENTILES)))
        return cls(len(values), float(values.mean()), *np.percentile(values, list(PERCENTILES.values())).tolist())


def parents(workload: Workload) -> tuple[IntArray, int]:
    """Return the job of each row, (n_row,), and the number of jobs."""
    column = workload.attributes.get("parent")
    if column is None or not len(workload):
        return np.arange(len(workload)), len(workload)
    return column.astype(np.int64), int(column.max()) + 1


def job_latency_us(schedule: Schedule) -> FloatArray:
    """Return the last end - arrival of each job, (n_job,) microseconds; NaN for jobs with a task that did not finish."""
    workload = schedule.workload
    job, count = parents(workload)
    last, arrival = np.full(count, -1, dtype=np.int64), np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    np.maximum.at(last, job, schedule.job_end)
    np.minimum.at(arrival, job, workload.submit)
    done = np.ones(count, dtype=np.bool_)
    np.logical_and.at(done, job, schedule.done)
    return np.where(done, (last - arrival) / US, np.nan)


def task_latency_us(schedule: Schedule) -> FloatArray:
    """Return task end - job arrival of the finished tasks in start order, (n_task,) microseconds."""
    runs = schedule.finished
    latency: FloatArray = (schedule.end[runs] - schedule.workload.submit[schedule.job[runs]]) / US
    return latency


def response_us(schedule: Schedule) -> FloatArray:
    """Return transfer + compute time = end - start of the finished tasks in start order, (n_task,) microseconds."""
    runs = schedule.finished
    response: FloatArray = (schedule.end[runs] - schedule.start[runs]) / US
    return response
