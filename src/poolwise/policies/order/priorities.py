"""Published queue orders that are a single formula.

Symbols: w is the waiting time and s the submit time since the start of the trace (at least 1), both in seconds; r is the
requested run time in seconds, n the nodes and m the memory per node. Every engine evaluates the float64 operations in the
order written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces import AgingOrder, OrderKind, QueuePolicy
from poolwise.model import JobTable, Machine, Queue, Snapshot
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
        memory, local = table.memory[jobs], machine.local_memory
        overload = np.where(memory <= local, 1.0, memory / max(local, 1))
        pace: FloatArray = (table.log10_nodes[jobs] + 1) * table.requested_s[jobs] * overload
        return pace
