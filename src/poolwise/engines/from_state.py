"""A machine at work at one instant as a simulation that goes on from there: what if another scheduler decided from now on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.model.state import Initial, MachineState
from poolwise.model.workload import Workload
from poolwise.units import SECOND, UNKNOWN


class StateRun(NamedTuple):
    """What is simulated.

    Attributes
    ----------
    workload : the jobs at work and those that wait, with their names in the column "name"
    initial : what runs already
    unsaid : how many of them did not say how long they run
    overdue : how many of those at work have run for longer than they asked for
    """

    workload: Workload
    initial: Initial
    unsaid: int
    overdue: int


def state_run(state: MachineState, unsaid: int) -> StateRun:
    """Let each job run for as long as it asked for, and one that did not say for `unsaid` ns.

    A job at work that should be over by then runs for a second more. Jobs keep their ids where each has its own.
    """
    at_work = {run.job: run for run in state.running}
    rows = np.array([*at_work, *state.waiting.tolist()], dtype=np.int64)
    numbered = len(np.unique(state.jobs.id[rows])) == len(rows)
    rows = rows[np.lexsort((state.jobs.id[rows] if numbered else rows, state.jobs.submit[rows]))]
    jobs = state.jobs.taken(rows)
    silent = jobs.requested >= UNKNOWN
    duration = np.where(silent, unsaid, jobs.requested)
    elapsed = np.array([state.now - at_work[row].start if row in at_work else 0 for row in rows.tolist()], dtype=np.int64)
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
    return StateRun(workload, Initial(state.now, runs), int(silent.sum()), int(overdue.sum()))
