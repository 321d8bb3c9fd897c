"""Priority callback: a compiled replay calls the queue policy with the current queue and machine."""

from __future__ import annotations

from poolwise.engines.list_columns import ListColumns
from poolwise.kernels.common.state import RunArrays
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.model import Placement, Queue, Run, Snapshot
from poolwise.model.history import RunHistory
from poolwise.model.run_table import RunTable


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
        self._free = columns.machine.capacity.copy()
        self._pass, self._next, self._started = 0, 0, 0

    def compute_keys(self, state: RackState | SharedState) -> None:
        """Write the keys of the waiting jobs for the next pass."""
        self._follow_queue(state)
        self._follow_runs(state)
        jobs = self.queue.jobs
        priority = self.columns.scheduler.order.priority(self.queue, self._snapshot(int(state.now.time)))
        state.order.key[jobs] = self.columns.check(priority, jobs)

    def _follow_queue(self, state: RackState | SharedState) -> None:
        """Update the queue; must be called before `_follow_runs`, which counts the started runs."""
        waiting, now = state.queue, state.now
        for job in state.runs.job[self._started : now.started].tolist():
            if job in self.queue:
                self.queue.remove_tasks(job)
        self.jobs.show(int(now.next))
        for job in range(self._next, int(now.next)):
            if waiting.where[job] >= 0:
                self._count(int(waiting.since[waiting.where[job]]))
                self.queue.add(job)
        self._next = int(now.next)
        self._count(int(now.passes) - 1)

    def _count(self, passes: int) -> None:
        while self._pass < passes:
            self.queue.count_pass()
            self._pass += 1

    def _follow_runs(self, state: RackState | SharedState) -> None:
        runs, started = state.runs, int(state.now.started)
        alive = set(runs.ending[: state.now.running].tolist())
        gone = [run.id for run in self.table if run.id not in alive]
        for number in gone:
            self.table.remove(number).placement.give_to(self._free)
        gone += [number for number in range(self._started, started) if number not in alive]
        for number in sorted(gone, key=lambda number: int(runs.end[number])):
            self.history.add(int(runs.job[number]), int(runs.start[number]), int(runs.end[number]))
        for number in range(self._started, started):
            if number in alive:
                placement = self._placement(runs, number)
                placement.take_from(self._free)
                cells = placement.owner * len(self.columns.machine.resources) + placement.resource
                start, end = int(runs.start[number]), int(runs.expected[number])
                job = int(runs.job[number])
                tasks = tuple(range(int(self.jobs.tasks[job])))
                self.table.add(Run(number, job, tasks, placement, start, end), cells, ())
        self._started = started

    def _placement(self, runs: RunArrays, number: int) -> Placement:
        part = slice(int(runs.offset[number]), int(runs.offset[number + 1]))
        columns = (column[part].tolist() for column in (runs.owner, runs.resource, runs.amount))
        return Placement.of([(0, *row) for row in zip(*columns, strict=True)])

    def _snapshot(self, time: int) -> Snapshot:
        machine = self.columns.machine
        return Snapshot(
            time,
            machine,
            self.jobs,
            machine.capacity,
            self._free.copy(),
            self.table,
            self.columns.estimate,
            self._believed_done,
            history=self.history,
        )

    def _believed_done(self, number: int, time: int) -> float:
        """Return the estimated work that a run has done, in reference ns."""
        run, estimate = self.table[number], self.columns.estimate
        return max(time - run.start, 0) / (1.0 + estimate.slowdown(run, self.columns.empty))
