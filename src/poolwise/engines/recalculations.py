"""Recalculations of a queue order: a compiled replay calls it at intervals with the runs so far."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.list_columns import ListColumns
from poolwise.interfaces import RecalculatedOrder
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.model import Accounting, RunHistory


class Recalculations:
    """Recalculates the keys of a `RecalculatedOrder` during a replay, given its runs so far as columns.

    Parameters
    ----------
    columns
        Inputs of the run.
    """

    def __init__(self, columns: ListColumns) -> None:
        self.columns, self.history = columns, RunHistory()
        self._current, self._started = np.zeros(0, dtype=np.int64), 0  # current runs, ascending; and the number of starts

    def recalculate(self, state: RackState | SharedState) -> None:
        """Write the keys of the waiting jobs, and of those that arrive before the next recalculation."""
        order, jobs, now = self.columns.scheduler.order, self.columns.workload.table, state.now
        assert isinstance(order, RecalculatedOrder)
        current = self._follow(state)
        last = order.last(int(now.time))
        following, arrived = order.following(last), int(now.next)
        coming = np.arange(arrived, max(arrived, int(np.searchsorted(jobs.submit, following))))
        rows = np.concatenate([state.queue.job[: now.waiting], coming])
        job, start = state.runs.job[current], state.runs.start[current]
        accounting = Accounting(int(now.time), self.columns.machine, jobs, self.history, job, start)
        state.order.key[rows] = self.columns.check(order.at(last, rows, accounting), rows)
        now.renewal, now.settled = following, 0

    def _follow(self, state: RackState | SharedState) -> IntArray:
        """Add the runs that have ended to the history; return the numbers of the current ones, ascending."""
        runs, started = state.runs, int(state.now.started)
        if started == self._started and state.now.running == len(self._current):
            return self._current
        current = np.sort(runs.ending[: state.now.running])
        before = np.concatenate([self._current, np.arange(self._started, started)])
        at = np.searchsorted(current, before)
        gone = before[np.append(current, -1)[at] != before]
        for number in gone[np.argsort(runs.end[gone], kind="stable")].tolist():
            self.history.add(int(runs.job[number]), int(runs.start[number]), int(runs.end[number]))
        self._current, self._started = current, started
        return current
