"""Recalculations of a queue order: kernels compute its formula, or call the order at intervals with the runs so far."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.engines.list_columns import ListColumns
from poolwise.interfaces import RecalculatedOrder
from poolwise.kernels.common.formula import Formula, FormulaRules, FormulaStatus
from poolwise.kernels.common.state import record
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.model import Accounting, RunHistory
from poolwise.model.priority_formula import PriorityFormula, ShareRanking, UsageShares
from poolwise.quantities import SECOND


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

    def rank(self, formula: Formula) -> None:
        """Rank the level fair shares of a formula."""
        priorities = self.columns.formula
        assert priorities is not None and priorities.shares is not None
        ranking = priorities.shares.rank(formula.level)
        size = len(ranking.before)
        formula.before[:size], formula.behind[:size], formula.leads[:size] = ranking.before, ranking.behind, ranking.leads
        formula.factor[1:] = ranking.factor * priorities.shares.weight
        formula.status.pairs = size

    def _follow(self, state: RackState | SharedState) -> IntArray:
        """Add the runs that have ended to the history; return the numbers of the current runs, ascending."""
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


_ROW, _NUMBER = np.zeros((0, 0)), np.zeros(0)
_NO_SHARES = UsageShares(
    weight=0.0,
    user=blank(0),
    billing=_NUMBER,
    parent=blank(0),
    share=_NUMBER,
    upward=blank(0),
    usage=_NUMBER,
    at=0,
    decay=1.0,
    remains=_NUMBER,
    rank=lambda level: ShareRanking(blank(0), blank(0), level > 0, level),
)
_NO_FORMULA = PriorityFormula(0.0, 1.0, None, _ROW, _ROW, 1.0)


def formula_arrays(columns: ListColumns) -> Formula:
    """Return the arrays with which a kernel recalculates priorities; without a formula, it asks the caller to do so."""
    order, priorities, first, period = columns.scheduler.order, columns.formula or _NO_FORMULA, 0, 1
    if columns.formula is not None and isinstance(order, RecalculatedOrder):
        first = order.last(0)
        period = order.following(first) - first
    shares, status = priorities.shares or _NO_SHARES, record(FormulaStatus)
    status.usage_at, status.pairs, size = shares.at, -1, len(shares.parent)
    rules = FormulaRules(
        columns.formula is not None,
        period,
        first,
        priorities.age,
        priorities.max_age,
        priorities.most,
        priorities.shares is not None,
        shares.decay ** float(period // SECOND),
    )
    return Formula(
        rules,
        status,
        added=read_only(priorities.added),
        subtracted=read_only(priorities.subtracted),
        user=read_only(shares.user),
        billing=read_only(shares.billing),
        remains=read_only(shares.remains),
        parent=read_only(shares.parent),
        share=read_only(shares.share),
        usage=shares.usage.copy(),
        level=np.zeros(size),
        upward=read_only(shares.upward),
        charged=np.zeros(size),
        before=blank(size),
        behind=blank(size),
        leads=np.zeros(size, dtype=np.bool_),
        factor=np.zeros(size + 1),
        active=blank(len(columns.workload) if size else 0),
    )
