"""State of a cluster as known at one time: completed, running and waiting jobs, without future arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.model import InitialRun, JobTable, Machine, MachineState, Workload
from poolwise.model.table_columns import Column
from poolwise.quantities import DAY, HOUR, UNKNOWN, format_count, format_time, to_seconds


@dataclass(frozen=True, eq=False)
class KnownState:
    """A machine, its scheduler, and the jobs known at one time.

    Attributes
    ----------
    machine, scheduler : machine, and the scheduler that decides on it
    estimate : performance model that the scheduler uses to estimate runtimes
    jobs : all known jobs, in the order (submit, id)
    now : ns
    ran : (n_job,) run time of completed jobs, and run time so far of running jobs, ns; 0 for waiting jobs
    ended : (n_job,) True for completed jobs
    running : running jobs, in the order of their starts; rows of `jobs`
    waiting : (k,) rows of `jobs`
    """

    machine: Machine
    scheduler: Scheduler
    estimate: PerformanceModel
    jobs: JobTable
    now: int
    ran: IntArray
    ended: BoolArray
    running: Sequence[InitialRun]
    waiting: IntArray

    @property
    def at_work(self) -> IntArray:
        """(k,) rows of the running jobs."""
        return np.array([run.job for run in self.running], dtype=np.int64)


def situation_of(
    state: MachineState, scheduler: Scheduler, estimate: PerformanceModel, history: Workload | None = None
) -> KnownState:
    """Combine a machine state with a history of completed jobs.

    The history is shifted so that its last job is submitted at the time of the state. Only its attribute `user`, and attributes
    that the jobs of the state have, are read. Jobs of the state follow those of the history.
    """
    jobs = state.jobs
    rows = np.concatenate([[run.job for run in state.running], state.waiting]).astype(np.int64)
    rows = rows[np.lexsort((jobs.id[rows], jobs.submit[rows]))]
    place = {int(row): k for k, row in enumerate(rows.tolist())}
    old = 0 if history is None else len(history)
    users = "user" in jobs.attributes or (history is not None and "user" in history.attributes)
    names = list(dict.fromkeys([*jobs.attributes, *(["user"] if users else [])]))

    def joined(before: Column | None, now: Column | None) -> Column:
        text = any(column is not None and column.dtype.kind in "UO" for column in (before, now))
        blank: Column = np.array(["" if text else -1])
        parts = [
            np.repeat(blank, count) if column is None else column.astype(np.str_) if text else column
            for column, count in ((before, old), (now, len(rows)))
        ]
        return np.concatenate(parts)

    past = {} if history is None else history.attributes
    shift = 0 if history is None else int(state.now - history.submit[-1])
    submit = np.zeros(0, dtype=np.int64) if history is None else history.submit + shift

    def known(name: str) -> IntArray:
        before = np.zeros(0, dtype=np.int64) if history is None else history.request(name)
        return np.concatenate([before, jobs.request(name)[rows]])

    requests = {*jobs.requests, *(() if history is None else history.requests)}
    table = JobTable(
        np.arange(old + len(rows)) if history is not None else jobs.id[rows],
        np.concatenate([submit, jobs.submit[rows]]),
        np.concatenate([np.zeros(0, dtype=np.int64) if history is None else history.requested, jobs.requested[rows]]),
        np.concatenate([np.zeros(0, dtype=np.int64) if history is None else history.tasks, jobs.tasks[rows]]),
        {name: known(name) for name in sorted(requests)},
        {name: joined(past.get(name), jobs.attributes[name][rows] if name in jobs.attributes else None) for name in names},
        name=[*[""] * old, *(jobs.name(int(row)) for row in rows)],
        epoch=jobs.epoch,
    )
    ran = np.zeros(len(table), dtype=np.int64)
    ended = np.arange(len(table)) < old
    if history is not None:
        ran[:old] = history.duration
    for run in state.running:
        ran[old + place[run.job]] = max(state.now - run.start, 1)
    runs = [run._replace(job=old + place[run.job]) for run in state.running]
    waiting = np.sort(np.array([old + place[int(row)] for row in state.waiting.tolist()], dtype=np.int64))
    return KnownState(state.machine, scheduler, estimate, table, state.now, ran, ended, runs, waiting)


ROUND = (HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY, 365 * DAY)
"""Time limits (ns) that sites commonly set."""


def with_limits(workload: Workload) -> tuple[Workload, tuple[str, ...]]:
    """Give jobs without a requested time a common limit, as a site would, which carries no information about any job.

    If all requests in a log equal the runtimes, the log has no requested times. Returns the workload and notes on the change.
    """
    unknown = workload.requested >= UNKNOWN
    if np.array_equal(workload.requested, workload.duration):
        unknown = np.ones(len(workload), dtype=np.bool_)
    count = int(unknown.sum())
    if not count:
        return workload, ()
    if count < len(workload):
        limit, which = int(workload.requested[~unknown].max()), "the longest request of the log"
    else:
        longest = int(workload.duration.max())
        limit = next((time for time in ROUND if time >= longest), longest)
        which = "a round limit that no job of the log exceeds"
    have = "has no requested time: it counts" if count == 1 else "have no requested time: they count"
    note = f"{format_count(count, 'job')} {have} as requesting {format_time(to_seconds(limit))}, {which}"
    return replace(workload, requested=np.where(unknown, limit, workload.requested)), (note,)
