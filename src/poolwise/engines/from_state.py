"""Conversion of a machine state to a simulation that continues from it, for example under another scheduler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.model.state import Initial, MachineState
from poolwise.model.workload import Workload
from poolwise.quantities import SECOND, UNKNOWN


class StateRun(NamedTuple):
    """Input of a simulation that continues from a machine state.

    Attributes
    ----------
    workload : running and waiting jobs, with their names in the column "name"
    initial : current runs
    without_limit : number of jobs without a time limit
    overdue : number of current runs that have exceeded their requested time
    """

    workload: Workload
    initial: Initial
    without_limit: int
    overdue: int


def state_run(state: MachineState, default_runtime: int) -> StateRun:
    """Build the input; each job runs for its requested time, or for `default_runtime` (ns) if it has none.

    A run that has exceeded its requested time runs for one more second. Jobs keep their ids if the ids are unique.
    """
    running = {run.job: run for run in state.running}
    rows = np.array([*running, *state.waiting.tolist()], dtype=np.int64)
    numbered = len(np.unique(state.jobs.id[rows])) == len(rows)
    rows = rows[np.lexsort((state.jobs.id[rows] if numbered else rows, state.jobs.submit[rows]))]
    jobs = state.jobs.taken(rows)
    unlimited = jobs.requested >= UNKNOWN
    duration = np.where(unlimited, default_runtime, jobs.requested)
    elapsed = np.array([state.now - running[row].start if row in running else 0 for row in rows.tolist()], dtype=np.int64)
    overdue = (elapsed > 0) & (duration <= elapsed)
    workload = Workload.of(
        jobs.submit,
        np.maximum(np.where(overdue, elapsed + SECOND, duration), 1),
        id=jobs.id if numbered else None,
        requested=jobs.requested,
        tasks=jobs.tasks,
        requests=jobs.requests,
        attributes={**jobs.attributes, "name": np.array([jobs.name(row) for row in range(len(jobs))], dtype=np.str_)},
        name=state.source or "state",
    )
    place = {int(row): k for k, row in enumerate(rows.tolist())}
    runs = [run._replace(job=place[run.job]) for run in state.running]
    return StateRun(workload, Initial(state.now, runs), int(unlimited.sum()), int(overdue.sum()))
