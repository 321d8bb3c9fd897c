"""Priority callback: a compiled replay calls the queue policy with the current queue and machine."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.list_columns import ListColumns
from poolwise.engines.run_record import RunRecord
from poolwise.interfaces import RecalculatedOrder
from poolwise.model import Placement, Queue, Run, Snapshot
from poolwise.model.history import RunHistory
from poolwise.model.run_table import RunTable


class WaitingColumns(Protocol):
    """Columns of the waiting jobs that are read: see `kernels.list_scheduling.state.QueueArrays`."""

    @property
    def job(self) -> IntArray:
        """Row of each waiting job, by position."""
        ...

    @property
    def since(self) -> IntArray:
        """Number of the pass in which each joined, by position."""
        ...

    @property
    def where(self) -> IntArray:
        """Position by row of the job, -1 if it does not wait."""
        ...


class PriorityCallback:
    """Computes keys during a replay, updating its queue and runs from call to call.

    Parameters
    ----------
    columns
        Inputs of the run.
    """

    def __init__(self, columns: ListColumns) -> None:
        self.columns = columns
        self.jobs = columns.workload.table.first(0)
        self.queue = Queue(self.jobs)
        self.table, self.history = RunTable(columns.machine.capacity.size), RunHistory()
        self._pass, self._next, self._started = 0, 0, 0

    def compute_keys(self, key: FloatArray, waiting: WaitingColumns, runs: RunRecord, now: IntArray) -> None:
        """Write the keys of the waiting jobs for the next pass."""
        from poolwise.kernels.list_scheduling import state

        self._follow_queue(waiting, runs, int(now[state.NEXT]), int(now[state.STARTED]), int(now[state.PASSES]) - 1)
        self._follow_runs(runs, int(now[state.STARTED]), runs.ending[: int(now[state.RUNNING])])
        self._started = int(now[state.STARTED])
        jobs = self.queue.jobs
        priority = self.columns.scheduler.order.priority(self.queue, self._snapshot(int(now[state.TIME])))
        key[jobs] = self.columns.check(priority, jobs)

    def recalculate(self, key: FloatArray, waiting: WaitingColumns, runs: RunRecord, now: IntArray) -> None:
        """Write the keys of a recalculated order, including those of jobs that arrive before the next recalculation."""
        from poolwise.kernels.list_scheduling import state

        order, all_jobs = self.columns.scheduler.order, self.columns.workload.table
        assert isinstance(order, RecalculatedOrder)
        started, arrived = int(now[state.STARTED]), int(now[state.NEXT])
        self.jobs = all_jobs  # so that policies that cache values per row compute them once
        self._follow_runs(runs, started, runs.ending[: int(now[state.RUNNING])])
        self._started = started
        last = order.last(int(now[state.TIME]))
        following = order.following(last)
        coming = np.arange(arrived, max(arrived, int(np.searchsorted(all_jobs.submit, following))))
        jobs = np.concatenate([waiting.job[: int(now[state.WAITING])], coming])
        key[jobs] = self.columns.check(order.at(last, jobs, self._snapshot(int(now[state.TIME]))), jobs)
        now[state.RENEWAL] = following
        now[state.FIRST], now[state.SETTLED] = -1, 0

    def _follow_queue(self, waiting: WaitingColumns, runs: RunRecord, next_: int, started: int, passes: int) -> None:
        for job in runs.job[self._started : started].tolist():
            if job in self.queue:
                self.queue.remove_tasks(job)
        self.jobs.show(next_)
        for job in range(self._next, next_):
            if waiting.where[job] >= 0:
                self._count(int(waiting.since[waiting.where[job]]))
                self.queue.add(job)
        self._next = next_
        self._count(passes)

    def _count(self, passes: int) -> None:
        while self._pass < passes:
            self.queue.count_pass()
            self._pass += 1

    def _follow_runs(self, runs: RunRecord, started: int, running: IntArray) -> None:
        alive = set(running.tolist())
        gone = [run.id for run in self.table if run.id not in alive]
        for number in gone:
            self.table.remove(number)
        gone += [number for number in range(self._started, started) if number not in alive]
        for number in sorted(gone, key=lambda number: int(runs.end[number])):
            self.history.add(int(runs.job[number]), int(runs.start[number]), int(runs.end[number]))
        for number in range(self._started, started):
            if number in alive:
                placement = self._placement(runs, number)
                cells = placement.owner * len(self.columns.machine.resources) + placement.resource
                start, end = int(runs.start[number]), int(runs.expected[number])
                job = int(runs.job[number])
                tasks = tuple(range(int(self.jobs.tasks[job])))
                self.table.add(Run(number, job, tasks, placement, start, end), cells, ())

    def _placement(self, runs: RunRecord, number: int) -> Placement:
        part = slice(int(runs.offset[number]), int(runs.offset[number + 1]))
        columns = (column[part].tolist() for column in (runs.owner, runs.resource, runs.amount))
        return Placement.of([(0, *row) for row in zip(*columns, strict=True)])

    def _snapshot(self, time: int) -> Snapshot:
        machine = self.columns.machine
        free = machine.capacity.copy()
        for run in self.table:
            run.placement.take_from(free)
        return Snapshot(
            time,
            machine,
            self.jobs,
            machine.capacity,
            free,
            self.table,
            self.columns.estimate,
            self._believed_done,
            history=self.history,
        )

    def _believed_done(self, number: int, time: int) -> float:
        """Return the reference ns of work that a run is estimated to have done."""
        run, estimate = self.table[number], self.columns.estimate
        return max(time - run.start, 0) / (1.0 + estimate.slowdown(run, self.columns.empty))
