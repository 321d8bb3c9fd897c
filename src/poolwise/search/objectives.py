"""How jobs fare under an order, in the few numbers that a search weighs: worked out fast, and safe to compare as ratios."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.repeats import StartsAndEnds
from poolwise.metrics.fairness import extreme_discrimination
from poolwise.model import Workload
from poolwise.units import NEVER, SECOND

FareName = Literal["bounded_slowdown", "d10", "p99_wait", "longest_wait"]
FARES: tuple[FareName, ...] = get_args(FareName)
FLOOR_S = 60.0
"""Seconds added to waits and to D10 per job before they are compared: a minute against half a minute is not twice as long."""
WORDS: dict[FareName, str] = {
    "bounded_slowdown": "bounded slowdown",
    "d10": "D10",
    "p99_wait": "p99 wait",
    "longest_wait": "longest wait",
}


class JobObjectives(NamedTuple):
    """How the jobs of one workload fare.

    Attributes
    ----------
    bounded_slowdown : geometric mean over the jobs
    d10 : s, extreme discrimination D10 against FCFS without backfilling, a job of that tenth (see `metrics.fairness`)
    p99_wait, longest_wait : s
    """

    bounded_slowdown: float
    d10: float
    p99_wait: float
    longest_wait: float

    def logs(self) -> FloatArray:
        """(4,) logarithms, in the order of `FARES`, with `FLOOR_S` added to seconds: differences are those of ratios."""
        logs: FloatArray = np.log(np.array(self) + np.array([0.0, FLOOR_S, FLOOR_S, FLOOR_S]))
        return logs


def fares_of(
    times: StartsAndEnds, fcfs_wait_s: FloatArray, workload: Workload, measured: IntArray, tau_s: float
) -> JobObjectives:
    """Measure some jobs, (k,) rows that all run.

    Parameters
    ----------
    fcfs_wait_s
        (k,) seconds that they wait under FCFS without backfilling.
    tau_s
        Bound of the bounded slowdown, s.
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
    """(k,) rows, from the first on, of the jobs that ran."""
    rows: IntArray = first + np.flatnonzero(times.end[first:] < NEVER)
    return rows
