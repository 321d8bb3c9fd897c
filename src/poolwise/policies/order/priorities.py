"""The published queue orders that are one formula each.

w is the time waited, s the submit time since the trace began (at least 1), both in seconds; r the requested time in
seconds, n the nodes, m the memory per node. The float64 operations stand in exactly this order in every engine.
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
        """(n_queued,) -s."""
        return -queue.table.submit_s[queue.jobs]


@register("orders", "sjf")
@dataclass(frozen=True)
class SJF(QueuePolicy):
    """Shortest job first: -r."""

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) -r."""
        return -queue.table.requested_s[queue.jobs]


@register("orders", "wfp3")
@dataclass(frozen=True)
class WFP3(AgingOrder):
    """(w/r)^3 * n: old and short first, large ones not starved (Tang et al. 2009)."""

    kind: ClassVar[OrderKind] = "cubic"

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) r."""
        return table.requested_s[jobs]

    def weight(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) n."""
        return table.nodes[jobs].astype(np.float64)


@register("orders", "f1")
@dataclass(frozen=True)
class F1(QueuePolicy):
    """Regression from brute-force simulation, small first: -(log10(r) * n + 870 * log10(s)) (Carastan-Santos, de Camargo 2017).

    `as_printed` takes the sign that the Fair Memory paper prints, which its authors' own runs used: largest first.
    """

    as_printed: bool = False
    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) -(log10(r) * n + 870 * log10(s))."""
        jobs, workload = queue.jobs, queue.table
        value = workload.log10_requested[jobs] * workload.nodes[jobs] + 870 * workload.log10_submit[jobs]
        return value if self.as_printed else -value


@register("orders", "fair")
@dataclass(frozen=True)
class FAIR(AgingOrder):
    """w / r: the expansion of the waiting time."""

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) r."""
        return table.requested_s[jobs]


@register("orders", "fm")
@dataclass(frozen=True)
class FM(AgingOrder):
    """Fair Memory: w / ((log10(n) + 1) * r * memory_overload) (Li et al., section III-E).

    memory_overload = 1 where the memory per node fits into the local memory, else their ratio.
    """

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) (log10(n) + 1) * r * memory_overload."""
        memory, local = table.memory[jobs], machine.local_memory
        overload = np.where(memory <= local, 1.0, memory / max(local, 1))
        pace: FloatArray = (table.log10_nodes[jobs] + 1) * table.requested_s[jobs] * overload
        return pace
