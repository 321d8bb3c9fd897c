"""Columns shared by the engines of list scheduling: inputs of a run, and the keys that order jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, blocks
from poolwise.engines.compiled_engine import RunSpec
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
"""Kinds of orders that kernels compute without calling the policy."""


def rows_held(initial: Initial | None) -> int:
    """Count the placement rows of the initial runs."""
    return 0 if initial is None else sum(len(run.placement) for run in initial.runs)


class ListColumns:
    """Inputs of a run under a list scheduler.

    Attributes
    ----------
    machine, workload, scheduler, truth, estimate, initial : see `RunSpec`
    empty : snapshot of the empty machine with all jobs, passed to policies
    repeated : whether many orders are computed for the same jobs, so that caching the queue of all jobs pays
    """

    repeated = False
    _all_jobs: tuple[BoolArray, Queue] | None

    def __init__(self, spec: RunSpec, rule: ListRule) -> None:
        self.machine = spec.machine
        self.scheduler = rule._replace(order=opened(rule.order))
        self.truth, self.estimate, self.initial = spec.truth, spec.estimate, spec.initial
        self.set_workload(spec.workload)

    def set_workload(self, workload: Workload) -> None:
        """Replace the workload by one with other durations and submit times of the same jobs, row by row."""
        self.workload, self._all_jobs = workload, None
        machine = self.machine
        capacity, runs = machine.capacity, RunTable(machine.capacity.size)
        self.empty = Snapshot(0, machine, workload.table, capacity, capacity, runs, self.estimate)

    def check(self, priority: FloatArray, jobs: IntArray) -> FloatArray:
        """Return the keys of jobs (k,), their negative priorities; raise PolicyError as the reference engine does."""
        return -checked_priorities(self.scheduler.order, priority, len(jobs))

    def order(self, order: QueuePolicy, able: BoolArray) -> Order:
        """Return how keys are computed, with static keys filled in; the policy sees only jobs that may ever wait."""
        from poolwise.kernels.list_scheduling.state import AFFINE, CALLBACK, CUBIC, LINEAR, STATIC, Order

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
        return Order(CALLBACK, key, submit, none, none, none, none)

    def _queue(self, able: BoolArray) -> Queue:
        """Return all jobs that may ever wait; cached while `able` is the same array."""
        if self._all_jobs is not None and self._all_jobs[0] is able:
            return self._all_jobs[1]
        queue = Queue.of(self.workload.table, np.flatnonzero(able))
        self._all_jobs = (able, queue) if self.repeated else None
        return queue

    def _aging(self, order: QueuePolicy, jobs: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (n_job,) pace, weight and rate of some jobs; 1 for the others, which never wait."""
        if not isinstance(order, AgingOrder):
            raise PolicyError(
                f"{type(order).__name__} is {order.kind} but not an AgingOrder: it defines neither pace nor weight", by=order
            )
        pace, weight = np.ones(len(self.workload)), np.ones(len(self.workload))
        for rows in blocks(len(jobs)):
            some = jobs[rows]
            pace[some], weight[some] = order.aging(some, self.workload.table, self.machine)
        return pace, weight, (weight if order.kind == "linear" else np.cbrt(weight)) / pace

    def _lines(self, order: QueuePolicy, jobs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return (n_job,) offset and slope of some jobs; 0 for the others, which never wait."""
        if not isinstance(order, AffineOrder):
            raise PolicyError(
                f"{type(order).__name__} is affine but not an AffineOrder: it defines neither offset nor slope", by=order
            )
        offset, slope = np.zeros(len(self.workload)), np.zeros(len(self.workload))
        for rows in blocks(len(jobs)):
            some = jobs[rows]
            offset[some], slope[some] = order.lines(some, self.workload.table, self.machine)
        return offset, slope

    def slowdown(self, model: PerformanceModel, rows: slice) -> FixedSlowdown:
        """Return the slowdowns of some jobs under a model with fixed slowdowns."""
        found = fixed_slowdown(model, self.workload.table, rows, self.machine)
        assert found is not None
        return found


def stretched(work: IntArray, slow: FloatArray) -> IntArray:
    """Return (n,) ns that work (ns) takes at a slowdown: vectorized `kernels.list_scheduling.racks.stretch`."""
    whole = np.minimum(work.astype(np.float64), float(LONGEST))
    length: IntArray = np.ceil(np.minimum(whole * slow, LONGEST - whole)).astype(np.int64)
    length += whole.astype(np.int64)
    return length
