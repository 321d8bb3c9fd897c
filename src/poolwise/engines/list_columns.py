"""Columns shared by the engines of list scheduling: inputs of a run, and the keys that order jobs."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, blocks
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import blank, read_only, zeros_of
from poolwise.errors import PolicyError
from poolwise.interfaces import AffineOrder, AgingOrder, ListRule, PerformanceModel, QueuePolicy
from poolwise.interfaces.order import checked_priorities, opened
from poolwise.interfaces.performance import fixed_slowdown
from poolwise.kernels.common.state import (
    AFFINE,
    AT_INTERVALS,
    CALLBACK,
    CONSERVATIVE,
    CUBIC,
    EASY,
    EASY_NO_EXTRA,
    LINEAR,
    MEAN,
    NONE,
    PAPER,
    STATIC,
    WORST,
    IntervalRules,
    Order,
    QueueArrays,
    RunArrays,
)
from poolwise.model import JobTable, Machine, Queue, Snapshot, Workload
from poolwise.model.eligibility import partition_owners
from poolwise.model.priority_formula import PriorityFormula
from poolwise.model.rules import BackfillRule, FixedSlowdown, PassTimes
from poolwise.model.run_table import RunTable
from poolwise.quantities import LONGEST, SECOND

IN_KERNELS = ("static", "linear", "cubic", "affine")
"""Kinds of orders that kernels compute without calling the policy."""


SPREADS = {"worst": WORST, "mean": MEAN, "paper": PAPER}
"""Spread of a slowdown -> constant of the kernels."""


def _incomplete(order: QueuePolicy, wanted: str) -> PolicyError:
    return PolicyError(f"{type(order).__name__} is {order.kind} but not {wanted}", by=order)


def backfill_code(rule: BackfillRule) -> int:
    """Return the kernels' constant for a backfill rule."""
    head = EASY if rule.extra else EASY_NO_EXTRA
    return {"none": NONE, "head": head, "all": CONSERVATIVE, "tested": AT_INTERVALS}[rule.reserves]


def interval_rules(times: PassTimes) -> IntervalRules:
    """Return the times and limits of passes as arguments of the kernels."""
    values = times._asdict()
    del values["groups"]
    return IntervalRules(last_key=-float(values.pop("least_priority")), **values)


def has_several_heads(rule: BackfillRule, machine: Machine, table: JobTable) -> bool:
    """Return whether a backfill has a head for each partition of a machine, and the jobs use more than one partition."""
    by_partition = rule.heads == "partition" and rule.reserves in ("none", "head") and bool(machine.node_sets)
    return by_partition and len(partition_owners(machine, table)) > 1


class ListColumns:
    """Inputs of a run under a list scheduler.

    Attributes
    ----------
    workload, machine, scheduler, model, estimate, initial : see `RunSpec`
    empty : snapshot of the empty machine with all jobs, passed to policies
    formula : priorities as a sum that the kernel recalculates; None if it does not
    repeated : whether many orders are computed for the same jobs, so that caching the queue of all jobs is worthwhile
    """

    repeated = False
    formula: PriorityFormula | None = None
    _all_jobs: tuple[BoolArray, Queue] | None

    def __init__(self, spec: RunSpec, rule: ListRule) -> None:
        self.machine = spec.machine
        self.scheduler = rule._replace(order=opened(rule.order))
        self.model, self.estimate, self.initial = spec.model, spec.estimate, spec.initial
        self.set_workload(spec.workload)

    def set_workload(self, workload: Workload) -> None:
        """Replace the workload by one with other durations and submit times of the same jobs, row by row."""
        self.workload, self._all_jobs = workload, None
        machine = self.machine
        capacity, runs = machine.capacity, RunTable(machine.capacity.size)
        self.empty = Snapshot(0, machine, workload.table, capacity, capacity, runs, self.estimate)

    def queue_arrays(self) -> QueueArrays:
        """Return an empty queue for all jobs."""
        n = len(self.workload)
        return zeros_of(QueueArrays, n, where=np.full(n, -1), warm=blank(min(self.scheduler.warm_up, n)))

    def run_arrays(self, rows: int) -> RunArrays:
        """Return arrays with space for a run of each job, `rows` rows of placements, and the rows of the initial runs."""
        n, held = len(self.workload), [] if self.initial is None else self.initial.runs
        rows += sum(len(run.placement) for run in held)
        return zeros_of(RunArrays, n, offset=blank(n + 1), owner=blank(rows), resource=blank(rows), amount=blank(rows))

    def check(self, priority: FloatArray, jobs: IntArray) -> FloatArray:
        """Return the keys (negative priorities) of jobs, (k,); raise PolicyError as the reference engine does."""
        return -checked_priorities(self.scheduler.order, priority, len(jobs))

    def order(self, order: QueuePolicy, able: BoolArray) -> Order:
        """Return the arrays for computing keys, with static keys filled in; the policy sees only jobs that may ever wait."""
        workload, none = self.workload, read_only(np.zeros(0))
        key, submit = np.zeros(len(workload)), read_only(workload.submit)
        if order.kind in ("linear", "cubic"):
            if not isinstance(order, AgingOrder):
                raise _incomplete(order, "an AgingOrder: it defines neither pace nor weight")
            pace, weight = self._columns(order, able)
            if order.kind == "linear":
                return Order(LINEAR, key, submit, pace, weight, read_only(weight / pace), none)
            return Order(CUBIC, key, submit, pace, weight, read_only(np.cbrt(weight) / pace), none)
        if order.kind == "affine":
            if not isinstance(order, AffineOrder):
                raise _incomplete(order, "an AffineOrder: it defines neither offset nor slope")
            offset, slope = self._columns(order, able)
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

    def _columns(self, order: AgingOrder | AffineOrder, able: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the pace and weight, or offset and slope, of the jobs that may ever wait, (n_job,) each; 1 for all others."""
        columns_of = order.aging if isinstance(order, AgingOrder) else order.lines
        first, second, jobs = np.ones(len(able)), np.ones(len(able)), np.flatnonzero(able)
        for rows in blocks(len(jobs)):
            some = jobs[rows]
            first[some], second[some] = columns_of(some, self.workload.table, self.machine)
        return read_only(first), read_only(second)

    def slowdown(self, model: PerformanceModel, rows: slice) -> FixedSlowdown:
        """Return the slowdowns of some jobs under a model with fixed slowdowns."""
        slowdown = fixed_slowdown(model, self.workload.table, rows, self.machine)
        assert slowdown is not None
        return slowdown


def stretched(work: IntArray, slow: FloatArray) -> IntArray:
    """Return the time (ns) that work (ns) takes at a slowdown, (n,): vectorized `kernels.common.events.stretch`."""
    whole = np.minimum(work.astype(np.float64), float(LONGEST))
    length: IntArray = np.ceil(np.minimum(whole * slow, LONGEST - whole)).astype(np.int64)
    length += whole.astype(np.int64)
    return length
