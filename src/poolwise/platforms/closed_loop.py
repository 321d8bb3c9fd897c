"""Closed-loop simulation: users submit each job a think time after its predecessor has ended.

Source: the Standard Workload Format, fields 17 (preceding job) and 18 (think time).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.loop import LoopResult
from poolwise.model import CommitResult, Decisions, Ended, Machine, Outcome, Reject, Schedule, Workload
from poolwise.platforms.deferred_arrivals import DeferredArrivals, columns_of
from poolwise.quantities import SECOND

PRECEDING, THINK = "preceding", "think_s"


def predecessors(workload: Workload) -> IntArray:
    """Return the row of each job's predecessor, (n_job,), -1 for none; raise InputError if it is not submitted earlier."""
    named = workload.attributes.get(PRECEDING)
    if named is None:
        raise InputError(
            "the workload does not name preceding jobs", field=PRECEDING, remedy="use a log with fields 17 and 18, such as SWF"
        )
    row_of = {job: row for row, job in enumerate(workload.id.tolist())}
    preceding = np.array([row_of.get(int(job), -1) for job in named.tolist()], dtype=np.int64)
    late = np.flatnonzero(preceding >= np.arange(len(preceding)))
    if len(late):
        job, before = int(workload.id[late[0]]), int(workload.id[preceding[late[0]]])
        remedy = "correct the row, or write -1"
        raise InputError(f"job {job} follows job {before}, which is not submitted before it", field=PRECEDING, remedy=remedy)
    return preceding


class ClosedLoop(DeferredArrivals):
    """A simulation whose submissions depend on its schedule; takes the parameters of `Simulation`.

    A job without a predecessor is submitted at the time in the log. Any other job is submitted once its predecessor has ended,
    was lost or was rejected, and the think time is over (0 if the log has none).
    """

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        model: PerformanceModel,
        estimate: PerformanceModel | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(workload, machine, model, estimate, **settings)
        before = predecessors(workload)
        self._successors: dict[int, list[int]] = defaultdict(list)
        think = (
            np.nan_to_num(np.maximum(workload.attributes[THINK], 0.0))
            if THINK in workload.attributes
            else np.zeros(len(before))
        )
        self._think = np.ceil(think * SECOND).astype(np.int64)
        for row, first in enumerate(before.tolist()):
            if first >= 0:
                self._successors[first].append(row)
            else:
                self._submit(row, int(workload.submit[row]))

    def _end(self, number: int, outcome: Outcome, requeue: bool, touched: set[int]) -> Ended:
        ended = super()._end(number, outcome, requeue, touched)
        if not requeue:
            self._finish_tasks(ended.job, len(ended.tasks))
        return ended

    def commit(self, decisions: Decisions) -> CommitResult:
        """Carry out decisions; a rejected job counts as ended."""
        waiting = {job: len(self._waiting.get(job, ())) for job in decisions.rejected}
        result = super().commit(decisions)
        for decision in result.committed:
            if isinstance(decision, Reject):
                self._finish_tasks(decision.job, waiting[decision.job])
        return result

    def _finish_tasks(self, job: int, tasks: int) -> None:
        """Count tasks of a job that will not run any more; the user's think time begins after the last of them."""
        row = self._row[job]
        self._left[row] -= tasks
        if not self._left[row]:
            for later in self._successors[row]:
                self._submit(later, self.now + int(self._think[later]))

    def schedule(self, workload: Workload, machine: Machine, loop: LoopResult) -> Schedule:
        """Return the schedule with the actual submissions; jobs that were never submitted keep the log's time, and wait."""
        submit = self._source.submit.copy()
        submit[self._row] = self._jobs.submit
        order = np.lexsort((self._source.id, submit))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        submitted = replace(self._source, **{**columns_of(self._source, order), "submit": submit[order]})
        record = self.recorder.schedule(submitted, machine, loop)
        row = np.array(self._row, dtype=np.int64)
        never = np.setdiff1d(np.arange(len(order)), row)
        return replace(
            record,
            job=place[row[record.job]],
            rejected={int(place[row[job]]): why for job, why in loop.rejected.items()},
            waiting=tuple(sorted(place[[*row[list(loop.waiting)], *never]].tolist())),
        )
