"""Objectives of the order search, computed from start and end times and safe to compare as ratios."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.repeats import StartsAndEnds
from poolwise.metrics.fairness import extreme_discrimination
from poolwise.model import Workload
from poolwise.quantities import NEVER, SECOND

ObjectiveName = Literal["bounded_slowdown", "d10", "p99_wait", "longest_wait"]
OBJECTIVES: tuple[ObjectiveName, ...] = get_args(ObjectiveName)
FLOOR_S = 60.0
"""Seconds added to waits and to D10 per job before comparison, because ratios of very short waits are meaningless."""
OBJECTIVE_LABELS: dict[ObjectiveName, str] = {
    "bounded_slowdown": "bounded slowdown",
    "d10": "D10",
    "p99_wait": "p99 wait",
    "longest_wait": "longest wait",
}


class JobObjectives(NamedTuple):
    """Objectives of the jobs of one workload under one order.

    Attributes
    ----------
    bounded_slowdown : geometric mean over the jobs
    d10 : seconds per job; D10, the extreme discrimination of the worst tenth against FCFS without backfilling, divided by
        the size of that tenth (see `metrics.fairness`)
    p99_wait, longest_wait : s
    """

    bounded_slowdown: float
    d10: float
    p99_wait: float
    longest_wait: float

    def logs(self) -> FloatArray:
        """Return logarithms in the order of `OBJECTIVES`, (4,), with `FLOOR_S` added to seconds; differences are log ratios."""
        logs: FloatArray = np.log(np.array(self) + np.array([0.0, FLOOR_S, FLOOR_S, FLOOR_S]))
        return logs


def job_objectives(
    times: StartsAndEnds, fcfs_wait_s: FloatArray, workload: Workload, measured: IntArray, tau_s: float
) -> JobObjectives:
    """Compute the objectives of some jobs, (k,) rows that all ran.

    Parameters
    ----------
    times
        Starts and ends of all jobs of the workload.
    fcfs_wait_s
        (k,) waits under FCFS without backfilling, s.
    workload
        Workload of the jobs.
    measured
        (k,) rows of the jobs.
    tau_s
        Minimum run time in the bounded slowdown, s.
    """
    start, end = times.start[measured], times.end[measured]
    wait = (start - workload.submit[measured]) / SECOND
    runtime = (end - start) / SECOND
    slowdown = np.maximum((wait + runtime) / np.maximum(runtime, tau_s), 1.0)
    tenth = -(-len(wait) // 10)
    return JobObjectives(
        float(np.exp(np.log(slowdown).mean())),
        extreme_discrimination(fcfs_wait_s - wait, 10) / tenth,
        float(np.percentile(wait, 99)),
        float(wait.max()),
    )


def ran(times: StartsAndEnds, first: int) -> IntArray:
    """Return the rows, (k,), from the first on, of the jobs that ran."""
    rows: IntArray = first + np.flatnonzero(times.end[first:] < NEVER)
    return rows
