"""Check that a user-defined queue order behaves as its `kind` declares, on the first jobs of a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import AffineOrder, AgingOrder, OrderKind, QueuePolicy, RecalculatedOrder, Scheduler
from poolwise.interfaces.order import checked_priorities
from poolwise.loop import run_loop
from poolwise.model import JobTable, Machine, Queue, Snapshot, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.schedulers.list import ListScheduler
from poolwise.user_code import class_location

SAMPLE = 200
"""Number of jobs in the check."""


@dataclass
class OrderContract:
    """Priority, or pace and weight, of each job when it was first seen, for comparison with later values.

    Attributes
    ----------
    again : number of repeated observations of a job, each of which could reveal a violation
    """

    order: QueuePolicy
    repeats: int = 0
    seen: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def problem(self, queue: Queue, snapshot: Snapshot, value: FloatArray) -> str:
        """Describe how the priorities, (n_queued,), violate the order's kind; empty if they do not."""
        order, jobs = self.order, queue.jobs
        if order.kind == "static":
            for job, now in zip(jobs.tolist(), value.tolist(), strict=True):
                self.repeats += job in self.seen
                (then,) = self.seen.setdefault(job, (now,))
                if now != then:
                    return f"static, but the priority of the job in row {job} changed from {then} to {now}"
        elif isinstance(order, RecalculatedOrder):
            last = order.last(snapshot.now)
            for job, now in zip(jobs.tolist(), value.tolist(), strict=True):
                when, then = self.seen.get(job, (-1.0, now))
                self.repeats += when == last
                if when == last and now != then:
                    return (
                        f"recalculated, but the priority of the job in row {job} changed from {then} to {now} "
                        "without a recalculation"
                    )
                self.seen[job] = last, now
        elif isinstance(order, AgingOrder):
            return self._columns(order.aging, AgingOrder.priority, "pace and weight", queue, snapshot, value)
        elif isinstance(order, AffineOrder):
            return self._columns(order.lines, AffineOrder.priority, "offset and slope", queue, snapshot, value)
        return ""

    def _columns(
        self,
        columns_of: Callable[[IntArray, JobTable, Machine], tuple[FloatArray, FloatArray]],
        priority_of: Callable[[Any, Queue, Snapshot], FloatArray],
        what: str,
        queue: Queue,
        snapshot: Snapshot,
        value: FloatArray,
    ) -> str:
        """Describe how two columns of the order, or the (n_queued,) priorities computed from them, violate its kind."""
        order, jobs = self.order, queue.jobs
        columns = np.stack(columns_of(jobs, queue.table, snapshot.machine), axis=1)
        for job, pair in zip(jobs.tolist(), map(tuple, columns.tolist()), strict=True):
            self.repeats += job in self.seen
            if job not in self.seen:
                alone = columns_of(np.array([job], dtype=np.int64), queue.table, snapshot.machine)
                self.seen[job] = tuple(float(column[0]) for column in alone)
            if pair != self.seen[job]:
                return f"{order.kind}, but {what} of the job in row {job} changed from {self.seen[job]} to {pair}"
        if not np.array_equal(value, priority_of(order, queue, snapshot)):
            return f"{order.kind}, but its priorities do not follow from {what}"
        return ""


@dataclass(frozen=True)
class _CheckedOrder(QueuePolicy):
    """A checked order wrapped as an opaque one, so that it is called in each pass and its priorities are checked."""

    contract: OrderContract
    kind: ClassVar[OrderKind] = "opaque"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        value = checked_priorities(self.contract.order, self.contract.order.priority(queue, snapshot), len(queue))
        if problem := self.contract.problem(queue, snapshot, value):
            name = type(self.contract.order).__name__
            raise PolicyError(f"{name} does not behave as its kind declares: it is {problem}", by=self.contract.order)
        return value


def check_order_contract(workload: Workload, machine: Machine, scheduler: Scheduler) -> tuple[str, ...]:
    """Check the declared kind of a user-defined order on the first jobs, in the reference engine.

    Returns
    -------
    One sentence on the check; nothing for built-in orders, and for opaque ones, whose kind makes no promise.

    Raises
    ------
    PolicyError
        With file and line, if the order violates its kind.
    """
    order = getattr(scheduler, "order", None)
    if not isinstance(scheduler, ListScheduler) or order is None or class_location(order) is None or order.kind == "opaque":
        return ()
    n = min(SAMPLE, len(workload))
    rows = slice(0, n)
    sample = replace(
        workload,
        **{name: getattr(workload, name)[rows] for name in ("id", "submit", "duration", "requested", "tasks")},
        requests={name: column[rows] for name, column in workload.requests.items()},
        attributes={name: column[rows] for name, column in workload.attributes.items()},
    )
    contract = OrderContract(order)
    run_loop(Simulation(sample, machine, Ideal()), replace(scheduler, order=_CheckedOrder(contract)))
    name = type(order).__name__
    if not contract.repeats:
        return (f"{name} is declared {order.kind}: not checked, because none of the first {n} jobs waited for a second pass",)
    return (f"{name} is declared {order.kind}: verified at each pass for the first {n} jobs",)
