"""What the families of list scheduling have in common: the parts of a run, and the keys by which jobs are ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, blocks
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.kernel_arrays import read_only
from poolwise.errors import PolicyError
from poolwise.interfaces import (
    AffineOrder,
    AgingOrder,
    ListRule,
    PerformanceModel,
    QueuePolicy,
    checked_priorities,
    fixed_slowdown,
    opened,
)
from poolwise.model import Initial, Queue, Snapshot, Workload
from poolwise.model.rules import FixedSlowdown
from poolwise.model.run_table import RunTable
from poolwise.units import LONGEST, SECOND

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import Order


IN_KERNELS = ("static", "linear", "cubic", "affine")
"""Kinds of orders that kernels follow without asking."""


def rows_held(initial: Initial | None) -> int:
    """Rows of the placements of the runs from which a run goes on."""
    return 0 if initial is None else sum(len(run.placement) for run in initial.runs)


class ListColumns:
    """The parts of a run under a list scheduler.

    Attributes
    ----------
    machine, workload, scheduler, truth, estimate, initial : the parts
    empty : the empty machine with all jobs, as a policy sees it
    repeated : whether orders are taken again and again, so that the queue of all jobs is worth the memory
    """

    repeated = False
    _asked: tuple[BoolArray, Queue] | None

    def __init__(self, parts: Parts, rule: ListRule) -> None:
        self.machine = parts.machine
        self.scheduler = rule._replace(order=opened(rule.order))
        self.truth, self.estimate, self.initial = parts.truth, parts.estimate, parts.initial
        self.show(parts.workload)

    def show(self, workload: Workload) -> None:
        """Take other durations and submissions of the same jobs, row by row."""
        self.workload, self._asked = workload, None
        machine = self.machine
        capacity, runs = machine.capacity, RunTable(machine.capacity.size)
        self.empty = Snapshot(0, machine, workload.table, capacity, capacity, runs, self.estimate)

    def check(self, priority: FloatArray, jobs: IntArray) -> FloatArray:
        """Return the keys of jobs (k,), their negative priorities; raises PolicyError as the reference engine does."""
        return -checked_priorities(self.scheduler.order, priority, len(jobs))

    def order(self, order: QueuePolicy, able: BoolArray) -> Order:
        """Say how the keys follow, and give those that never change; the policy is asked only about jobs that may ever wait."""
        from poolwise.kernels.list_scheduling.state import AFFINE, ASKED, CUBIC, LINEAR, STATIC, Order

        workload, none = self.workload, read_only(np.zeros(0))
        key, submit = np.zeros(len(workload)), read_only(workload.submit)
        if order.kind in ("linear", "cubic"):
            pace, weight, rate = map(read_only, self._aging(order, np.flatnonzero(able)))
            return Order(LINEAR if order.kind == "linear" else CUBIC, key, submit, pace, weight, rate, none)
        if order.kind == "affine":
            offset, slope = map(read_only, self._lines(order, np.flatnonzero(able)))
            return Order(AFFINE, key, submit, none, slope, read_only(slope / SECOND), offset)
        if order.kind == "static":
            queue = self._queue(able)
            if len(queue):
                key[queue.jobs] = self.check(order.priority(queue, self.empty), queue.jobs)
            return Order(STATIC, key, submit, none, none, none, none)
        return Order(ASKED, key, submit, none, none, none, none)

    def _queue(self, able: BoolArray) -> Queue:
        """All jobs that may ever wait, as a policy sees them; where it is kept, as long as the same array says which."""
        if self._asked is not None and self._asked[0] is able:
            return self._asked[1]
        queue = Queue.of(self.workload.table, np.flatnonzero(able))
        self._asked = (able, queue) if self.repeated else None
        return queue

    def _aging(self, order: QueuePolicy, jobs: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n_job,) pace, weight and rate of some jobs; 1 of the others, which never wait."""
        if not isinstance(order, AgingOrder):
            raise PolicyError(
                f"{type(order).__name__} is {order.kind}, but no AgingOrder: it gives neither pace nor weight", by=order
            )
        pace, weight = np.ones(len(self.workload)), np.ones(len(self.workload))
        for rows in blocks(len(jobs)):
            some = jobs[rows]
            pace[some], weight[some] = order.aging(some, self.workload.table, self.machine)
        return pace, weight, (weight if order.kind == "linear" else np.cbrt(weight)) / pace

    def _lines(self, order: QueuePolicy, jobs: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n_job,) offset and slope of some jobs; 0 of the others, which never wait."""
        if not isinstance(order, AffineOrder):
            raise PolicyError(
                f"{type(order).__name__} is affine, but no AffineOrder: it gives neither offset nor slope", by=order
            )
        offset, slope = np.zeros(len(self.workload)), np.zeros(len(self.workload))
        for rows in blocks(len(jobs)):
            some = jobs[rows]
            offset[some], slope[some] = order.lines(some, self.workload.table, self.machine)
        return offset, slope

    def slowdown(self, model: PerformanceModel, rows: slice) -> FixedSlowdown:
        """Slowdowns of some jobs, as a model states them."""
        found = fixed_slowdown(model, self.workload.table, rows, self.machine)
        assert found is not None
        return found


def stretched(work: IntArray, slow: FloatArray) -> IntArray:
    """(n,) ns that work (ns) takes at a slowdown: `kernels.list_scheduling.racks.stretch` of many jobs."""
    whole = np.minimum(work.astype(np.float64), float(LONGEST))
    length: IntArray = np.ceil(np.minimum(whole * slow, LONGEST - whole)).astype(np.int64)
    length += whole.astype(np.int64)
    return length
