"""Simulation of a task graph: jobs arrive once those that they wait for have finished."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from poolwise.interfaces import PerformanceModel
from poolwise.loop import LoopResult
from poolwise.model import Ended, Machine, Outcome, Schedule, Workload
from poolwise.platforms.deferred_arrivals import DeferredArrivals


class DependentTasks(DeferredArrivals):
    """A simulation of jobs that wait for others (`Workload.task_graph`); takes the parameters of `Simulation`.

    A job becomes ready at its submission or when the last task of its predecessors finishes, whichever is later. It arrives at
    that time: schedulers do not see it before, and queues order it by its arrival. The schedule contains the submissions of the
    workload. Waits and latencies count from these, so they include the time spent waiting for predecessors.

    A job whose predecessor is rejected, or lost for good, can never run: the schedule lists it as rejected.
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
        assert workload.task_graph is not None
        self._graph = workload.task_graph
        self._unmet = self._graph.counts.tolist()
        for row in np.flatnonzero(self._graph.counts == 0).tolist():
            self._submit(row, int(workload.submit[row]))

    def _end(self, number: int, outcome: Outcome, requeue: bool, touched: set[int]) -> Ended:
        ended = super()._end(number, outcome, requeue, touched)
        if outcome is Outcome.FINISHED:
            row = self._row[ended.job]
            self._left[row] -= len(ended.tasks)
            if not self._left[row]:
                self._release_successors(row)
        return ended

    def _release_successors(self, row: int) -> None:
        """Count a finished job; submit the jobs that now wait for no other."""
        for later in self._graph.reversed.predecessors(row):
            self._unmet[later] -= 1
            if not self._unmet[later]:
                self._submit(later, max(self.now, int(self._source.submit[later])))

    def schedule(self, workload: Workload, machine: Machine, loop: LoopResult) -> Schedule:
        """Return the schedule by rows of the workload; jobs behind a rejected or lost job are rejected too."""
        record = self.recorder.schedule(workload, machine, loop)
        row = np.array(self._row, dtype=np.int64)
        rejected, waiting = self.unfinished(loop)
        return replace(record, job=row[record.job], rejected=rejected, waiting=tuple(sorted(waiting)))

    def unfinished(self, loop: LoopResult) -> tuple[dict[int, str], set[int]]:
        """Return the rejected jobs, workload row -> reason, and the workload rows of the waiting jobs, after all events.

        Jobs that never became ready are rejected if a predecessor was rejected or lost, and wait otherwise.
        """
        rejected = {self._row[job]: why for job, why in loop.rejected.items()}
        waiting = {self._row[job] for job in loop.waiting}
        failed = {row: "was rejected" for row in rejected}
        failed |= {row: "did not finish" for row in self._row if self._left[row] and row not in failed and row not in waiting}
        for row in self._graph.order:
            if row in self._place:
                continue
            for before in self._graph.predecessors(row):
                if before in failed:
                    rejected[row] = f"it waits for job {self._source.table.name(before)}, which {failed[before]}"
                    failed[row] = "was rejected"
                    break
            else:
                waiting.add(row)
        return rejected, waiting
