"""Whether a queue order of the user's own keeps what its `kind` promises, on the first jobs of a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import (
    AffineOrder,
    AgingOrder,
    OrderKind,
    QueuePolicy,
    RecalculatedOrder,
    Scheduler,
    checked_priorities,
)
from poolwise.loop import run_loop
from poolwise.model import JobTable, Machine, Queue, Snapshot, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.schedulers.list import ListScheduler
from poolwise.user_code import place_of

SAMPLE = 200
"""Jobs that are tried."""


@dataclass
class OrderContract:
    """What was known of each job when it was first seen: its priority, or its pace and weight.

    Attributes
    ----------
    again : times that a job was seen again, so that the promise could be broken
    """

    order: QueuePolicy
    again: int = 0
    seen: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def problem(self, queue: Queue, snapshot: Snapshot, value: FloatArray) -> str:
        """Say in a sentence how the (n_queued,) priorities break the promise of the order's kind; empty if they do not."""
        order, jobs = self.order, queue.jobs
        if order.kind == "static":
            for job, now in zip(jobs.tolist(), value.tolist(), strict=True):
                self.again += job in self.seen
                (then,) = self.seen.setdefault(job, (now,))
                if now != then:
                    return f"static, but the job in row {job} had {then} at first and has {now} later"
        elif isinstance(order, RecalculatedOrder):
            last = order.last(snapshot.now)
            for job, now in zip(jobs.tolist(), value.tolist(), strict=True):
                when, then = self.seen.get(job, (-1.0, now))
                self.again += when == last
                if when == last and now != then:
                    return f"recalculated, but the job in row {job} had {then} and has {now} without a recalculation"
                self.seen[job] = last, now
        elif isinstance(order, AgingOrder):
            return self._columns(order.aging, AgingOrder.priority, "pace and weight", queue, snapshot, value)
        elif isinstance(order, AffineOrder):
            return self._columns(order.lines, AffineOrder.priority, "offset and slope", queue, snapshot, value)
        return ""

    def _columns(
        self,
        give: Callable[[IntArray, JobTable, Machine], tuple[FloatArray, FloatArray]],
        follow: Callable[[Any, Queue, Snapshot], FloatArray],
        what: str,
        queue: Queue,
        snapshot: Snapshot,
        value: FloatArray,
    ) -> str:
        """Say how two columns of the order, or the (n_queued,) priorities that should follow from them, break the promise."""
        order, jobs = self.order, queue.jobs
        columns = np.stack(give(jobs, queue.table, snapshot.machine), axis=1)
        for job, pair in zip(jobs.tolist(), map(tuple, columns.tolist()), strict=True):
            self.again += job in self.seen
            if job not in self.seen:
                alone = give(np.array([job], dtype=np.int64), queue.table, snapshot.machine)
                self.seen[job] = tuple(float(column[0]) for column in alone)
            if pair != self.seen[job]:
                return f"{order.kind}, but {what} of the job in row {job} were {self.seen[job]} and are {pair}"
        if not np.array_equal(value, follow(order, queue, snapshot)):
            return f"{order.kind}, but its priorities are not those that follow from {what}"
        return ""


@dataclass(frozen=True)
class _Asked(QueuePolicy):
    """The same order, asked at each pass, and watched."""

    promise: OrderContract
    kind: ClassVar[OrderKind] = "opaque"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        value = checked_priorities(self.promise.order, self.promise.order.priority(queue, snapshot), len(queue))
        if problem := self.promise.problem(queue, snapshot, value):
            name = type(self.promise.order).__name__
            raise PolicyError(f"{name} breaks the promise of its kind: it is {problem}", by=self.promise.order)
        return value


def try_promise(scheduler: Scheduler, machine: Machine, workload: Workload) -> tuple[str, ...]:
    """Try the promise of an order of the user's own on the first jobs, in the reference engine.

    Returns a sentence on what was tried; nothing for Poolwise's own orders and for opaque ones, which promise nothing. Raises
    PolicyError, with file and line, where the promise is broken.
    """
    order = getattr(scheduler, "order", None)
    if not isinstance(scheduler, ListScheduler) or order is None or place_of(order) is None or order.kind == "opaque":
        return ()
    n = min(SAMPLE, len(workload))
    rows = slice(0, n)
    sample = replace(
        workload,
        **{name: getattr(workload, name)[rows] for name in ("id", "submit", "duration", "requested", "tasks")},
        requests={name: column[rows] for name, column in workload.requests.items()},
        attributes={name: column[rows] for name, column in workload.attributes.items()},
    )
    promise = OrderContract(order)
    run_loop(Simulation(machine, sample, Ideal()), replace(scheduler, order=_Asked(promise)))
    name = type(order).__name__
    if not promise.again:
        return (f"{name} says that it is {order.kind}: not tested, since none of the first {n} jobs waited for a second pass",)
    return (f"{name} says that it is {order.kind}: that held for the first {n} jobs, asked at each pass",)
