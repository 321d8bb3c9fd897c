"""Queue orders with a cap on waiting: jobs beyond an age come first, in the order of submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces.order import AffineOrder, AgingOrder, OrderKind, PreparedOrder, QueuePolicy, opened
from poolwise.model import JobTable, Kind, Machine, Queue, Snapshot
from poolwise.quantities import HORIZON, SECOND

MOST_AREA = 2**40
"""Largest number of node-seconds counted for one job, so that sums stay exact integers."""


class CappedOrder(PreparedOrder):
    """Queue order with the priorities of another order, except that jobs beyond an age limit come first, by age.

    The limit is `patience_s` seconds plus `backlogs` times the age of the backlog, which is the time that the machine would
    need to work off the requests of the waiting jobs (`node_seconds`). The limit thus follows the load, and few jobs exceed it.

    Attributes
    ----------
    order : order of the other jobs
    patience_s : constant part of the limit, seconds
    backlogs : multiple of the backlog's age

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.policies import Capped, SJF
    >>> isinstance(Capped(SJF(), patience_s=86400.0), poolwise.interfaces.CappedOrder)
    True
    """

    kind: ClassVar[OrderKind] = "capped"

    order: QueuePolicy
    patience_s: float
    backlogs: float

    @final
    def open(self) -> QueuePolicy:
        """Begin a run of the other order."""
        this: Any = self  # a dataclass, as all configurations are
        opened_order: QueuePolicy = replace(this, order=opened(self.order))
        return opened_order

    @final
    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the other order if it is a `PreparedOrder`."""
        if isinstance(self.order, PreparedOrder):
            self.order.check(machine, jobs)

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the priorities, (n_queued,); infinity for jobs beyond the limit, which come first, in order of submission."""
        priority = self.order.priority(queue, snapshot)
        backlog = int(node_seconds(queue.table)[queue.jobs].sum())
        submitted_by = snapshot.now - cap(self, backlog, machine_nodes(snapshot.machine))
        return np.where(queue.table.submit[queue.jobs] <= submitted_by, np.inf, priority)


KIND_CLASSES: Mapping[OrderKind, type[QueuePolicy]] = {
    "linear": AgingOrder,
    "cubic": AgingOrder,
    "affine": AffineOrder,
    "capped": CappedOrder,
}
"""Kind -> base class of orders of that kind; it defines the additional methods that engines call."""


def cap(order: CappedOrder, backlog: int, nodes: int) -> int:
    """Return the wait (ns) after which a job comes first, given the backlog in node-seconds and the nodes of the machine.

    `kernels.list_scheduling.waiting.front` computes the same in the kernels.
    """
    patience = int(min(order.patience_s * SECOND, HORIZON))
    return min(patience + int(min(order.backlogs * (backlog / nodes) * SECOND, HORIZON)), HORIZON)


def node_seconds(table: JobTable) -> IntArray:
    """Return the requested node-seconds of each job, (n_job,), as integers from 1 to `MOST_AREA`."""
    return table.derived("node_seconds", _areas)


def machine_nodes(machine: Machine) -> int:
    """Return the number of nodes of a machine, whole or shared; at least 1."""
    nodes = machine.of_kind(Kind.NODE)
    whole = machine.capacity[nodes, machine.resource("nodes")] if "nodes" in machine.resources else np.zeros_like(nodes)
    return max(int(np.maximum(whole, 1).sum()), 1)


def _areas(table: JobTable, rows: slice) -> IntArray:
    area = table.nodes[rows].astype(np.float64) * table.tasks[rows] * np.maximum(table.requested[rows] // SECOND, 1)
    return np.minimum(area, MOST_AREA).astype(np.int64)
