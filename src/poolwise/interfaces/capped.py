"""Queue orders under which nobody waits for too long: jobs beyond an age come first, in the order of their submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces.order import AffineOrder, AgingOrder, OrderKind, PreparedOrder, QueuePolicy, opened
from poolwise.model import JobTable, Kind, Machine, Queue, Snapshot
from poolwise.units import HORIZON, SECOND

MOST_AREA = 2**40
"""Node-seconds that a single job counts for at most, so that sums of them stay whole numbers."""


class CappedOrder(PreparedOrder):
    """The priorities of another queue order, but jobs that have waited for longer than a cap come first, the oldest in front.

    The cap is `patience_s` seconds and `backlogs` times the age of the backlog: the time in which the machine would work off
    what the waiting jobs ask for (`node_seconds`). So it follows the load, and the jobs that are beyond it stay few.
    """

    kind: ClassVar[OrderKind] = "capped"

    order: QueuePolicy
    patience_s: float
    backlogs: float

    @final
    def open(self) -> QueuePolicy:
        """Open the other order."""
        this: Any = self  # which is a dataclass, as all configurations are
        opened_order: QueuePolicy = replace(this, order=opened(self.order))
        return opened_order

    @final
    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Ask the other order, if it has files to read."""
        if isinstance(self.order, PreparedOrder):
            self.order.check(machine, jobs)

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities; infinity for all that have waited for longer than the cap: the first submitted is first."""
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
"""Kind -> the class from which an order of that kind is derived: engines read what it gives beside priorities."""


def cap(order: CappedOrder, backlog: int, nodes: int) -> int:
    """Ns after which a job comes first, where jobs wait that ask for `backlog` node-seconds of a machine with some nodes.

    The kernels work it out alike: `kernels.list_scheduling.order.front`.
    """
    patience = int(min(order.patience_s * SECOND, HORIZON))
    return min(patience + int(min(order.backlogs * (backlog / nodes) * SECOND, HORIZON)), HORIZON)


def node_seconds(table: JobTable) -> IntArray:
    """(n_job,) node-seconds that jobs ask for, whole ones, at least 1 and at most `MOST_AREA`."""
    return table.derived("node_seconds", _areas)


def machine_nodes(machine: Machine) -> int:
    """Nodes of a machine, taken whole or shared; at least 1."""
    nodes = machine.of_kind(Kind.NODE)
    whole = machine.capacity[nodes, machine.resource("nodes")] if "nodes" in machine.resources else np.zeros_like(nodes)
    return max(int(np.maximum(whole, 1).sum()), 1)


def _areas(table: JobTable, rows: slice) -> IntArray:
    area = table.nodes[rows].astype(np.float64) * table.tasks[rows] * np.maximum(table.requested[rows] // SECOND, 1)
    found: IntArray = np.minimum(area, MOST_AREA).astype(np.int64)
    return found
