"""Deadlines of jobs, and goals for their completion times.

Sources: Call et al., section IV-C, and specs of the NVMe composition, "Load and measurement"; Amaral et al., DRMaestro,
"Experiment 3", and specs of the flow placement, "Simulation". A job that was rejected or never ran misses its deadline and
violates its goal; a job without a goal (0) cannot violate one.
"""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Schedule, Workload


def missed(schedule: Schedule) -> BoolArray:
    """Return an (n_job,) mask of jobs that ended late or never; raise InputError if the workload has no deadlines."""
    return late(schedule.workload, schedule.job_end, schedule.done)


def late(workload: Workload, end: IntArray, done: BoolArray) -> BoolArray:
    """Return an (n_job,) mask of jobs that are not `done`, (n_job,), or whose `end`, (n_job,) ns, is after their deadline.

    Raises InputError if the workload has no deadlines.
    """
    deadline = workload.attributes.get("deadline")
    if deadline is None:
        raise InputError("the workload has no deadlines", field="deadline", remedy="give each job a deadline in ns")
    after: BoolArray = ~done | (end > deadline.astype(np.int64))
    return after


def missed_pct(schedule: Schedule, population: BoolArray | None = None) -> float:
    """Return the percentage of a population's jobs, (n_job,), that miss their deadline; NaN without jobs."""
    return _percent(missed(schedule), population)


def missed_high_priority_pct(schedule: Schedule, population: BoolArray | None = None) -> float:
    """Return the percentage of a population's jobs that have high priority and miss their deadline; NaN without jobs.

    The denominator is all jobs of the population. Raises InputError if the workload has no priorities.
    """
    urgent = schedule.workload.attributes.get("high_priority")
    if urgent is None:
        raise InputError(
            "the workload has no priorities", field="high_priority", remedy="mark urgent jobs with 1, others with 0"
        )
    return _percent(missed(schedule) & (urgent.astype(np.int64) > 0), population)


def _percent(marked: BoolArray, population: BoolArray | None) -> float:
    chosen = marked if population is None else marked[population]
    return 100 * float(chosen.mean()) if len(chosen) else float("nan")


def violated(schedule: Schedule, *, queueing: bool = False) -> BoolArray:
    """Return an (n_job,) mask of jobs that took longer than their goal, the attribute "goal" in ns.

    The time counts from the start of the job or, with `queueing`, from its submission. Raises InputError if the workload has
    no goals.
    """
    column = schedule.workload.attributes.get("goal")
    if column is None:
        raise InputError("the workload has no goals", field="goal", remedy="give each job a goal in ns, 0 for none")
    goal = column.astype(np.float64)
    begin = schedule.workload.submit if queueing else schedule.job_start
    late: BoolArray = (goal > 0) & (~schedule.done | (schedule.job_end - begin > goal))
    return late
