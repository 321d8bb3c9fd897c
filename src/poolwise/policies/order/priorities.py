"""Published queue orders that are a single formula.

Symbols: w is the waiting time and s the submit time since the start of the trace (at least 1), both in seconds; r is the
requested run time in seconds, n the nodes and m the memory per node. Every engine evaluates the float64 operations in the
order written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces import AgingOrder, CappedOrder, OrderKind, QueuePolicy
from poolwise.model import JobTable, Machine, Queue, Snapshot
from poolwise.quantities import SECOND
from poolwise.registry import register


@register("orders", "fcfs")
@dataclass(frozen=True)
class FCFS(QueuePolicy):
    """First come, first served: -s."""

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -s."""
        return -queue.table.submit_s[queue.jobs]


@register("orders", "sjf")
@dataclass(frozen=True)
class SJF(QueuePolicy):
    """Shortest job first: -r."""

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -r."""
        return -queue.table.requested_s[queue.jobs]


@register("orders", "wfp3")
@dataclass(frozen=True)
class WFP3(AgingOrder):
    """(w / r)^3 * n: favors old and short jobs without starving large ones (Tang et al. 2009)."""

    kind: ClassVar[OrderKind] = "cubic"

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return r, (k,) seconds."""
        return table.requested_s[jobs]

    def weight(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return n, (k,) nodes."""
        return table.nodes[jobs].astype(np.float64)


@register("orders", "f1")
@dataclass(frozen=True)
class F1(QueuePolicy):
    """Smallest log10(r) * n + 870 * log10(s) first, a regression on simulations (Carastan-Santos, de Camargo 2017).

    Parameters
    ----------
    as_printed
        Use the sign printed in the Fair Memory paper, which its authors also ran: largest jobs first.
    """

    as_printed: bool = False
    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -(log10(r) * n + 870 * log10(s)), or their negatives if `as_printed`."""
        jobs, workload = queue.jobs, queue.table
        value = workload.log10_requested[jobs] * workload.nodes[jobs] + 870 * workload.log10_submit[jobs]
        return value if self.as_printed else -value


@register("orders", "fair")
@dataclass(frozen=True)
class FAIR(AgingOrder):
    """Largest expansion factor first: w / r, the waiting time relative to the requested run time."""

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return r, (k,) seconds."""
        return table.requested_s[jobs]


@register("orders", "fm")
@dataclass(frozen=True)
class FM(AgingOrder):
    """Fair Memory: w / ((log10(n) + 1) * r * memory_overload) (Li et al., section III-E).

    memory_overload is the ratio of the memory per node to the local memory, at least 1.
    """

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return (log10(n) + 1) * r * memory_overload, (k,)."""
        return (table.log10_nodes[jobs] + 1) * table.requested_s[jobs] * _overload(jobs, table, machine)


def _overload(jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
    """Return the ratio of the memory per node to the local memory, at least 1, (k,)."""
    memory, local = table.memory[jobs], machine.local_memory
    return np.where(memory <= local, 1.0, memory / max(local, 1))


@register("orders", "area")
@dataclass(frozen=True)
class SmallestArea(QueuePolicy):
    """Smallest area first: -(r * n), r the requested seconds and n the nodes."""

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -(r * n)."""
        jobs, workload = queue.jobs, queue.table
        return -(workload.requested_s[jobs] * workload.nodes[jobs])


@register("orders", "memory_area")
@dataclass(frozen=True)
class SmallestMemoryArea(QueuePolicy):
    """Smallest memory-weighted area first: -(r * n * memory_overload), with the overload as in Fair Memory."""

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -(r * n * memory_overload)."""
        jobs, workload = queue.jobs, queue.table
        return -(workload.requested_s[jobs] * workload.nodes[jobs] * _overload(jobs, workload, snapshot.machine))


@register("orders", "edf")
@dataclass(frozen=True)
class EDF(QueuePolicy):
    """Earliest deadline first: -d, where d is the job table's column "deadline" (ns) in seconds (Call et al., section III-C).

    A missed deadline does not change the order: overdue jobs stay first.
    """

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -d. Raises InputError if the job table has no deadlines."""
        return -(_column(queue, "deadline", "deadlines", "in ns") / SECOND)


@register("orders", "classes")
@dataclass(frozen=True)
class Classes(QueuePolicy):
    """Lowest class first, -c for the job table's column "class"; first come, first served within a class.

    These are non-preemptive head-of-line priorities (Cobham 1954): a job never waits behind one of a less urgent class, and
    running jobs are not stopped.
    """

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -c. Raises InputError if the job table has no classes."""
        return -_column(queue, "class", "classes", "(0 is the most urgent)")


def _column(queue: Queue, name: str, many: str, scale: str) -> FloatArray:
    """Return an attribute of the waiting jobs, (n_queued,); raise InputError if the job table lacks it."""
    column = queue.table.attributes.get(name)
    if column is None:
        raise InputError(
            f"cannot order by {name}: the jobs have no {many}",
            field=name,
            remedy=f"give each job a {name} {scale}, or choose another order",
        )
    return column[queue.jobs].astype(np.float64)


@register("orders", "capped")
@dataclass(frozen=True)
class Capped(CappedOrder):
    """Jobs that have waited longer than patience_s + backlogs * (age of the backlog) first, oldest first; others by `order`.

    Parameters
    ----------
    order
        Order of all other jobs.
    patience_s
        Fixed part of the cap in seconds, at least 0.
    backlogs
        Multiple of the age of the backlog that is added to the cap, at least 0. The age of the backlog is the node-seconds
        that the waiting jobs request, divided by the nodes of the machine.
    """

    order: QueuePolicy = field(default_factory=FCFS)
    patience_s: float = 0.0
    backlogs: float = 0.0

    def __post_init__(self) -> None:
        for name in ("patience_s", "backlogs"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}", field=name, remedy="give 0 or more")
