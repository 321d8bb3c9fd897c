"""Smallest-area-first queue orders of the Fair Memory family, which ignore the waiting time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.interfaces import OrderKind, QueuePolicy
from poolwise.model import Queue, Snapshot
from poolwise.registry import register


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
        memory, local = workload.memory[jobs], snapshot.machine.local_memory
        overload = np.where(memory <= local, 1.0, memory / max(local, 1))
        return -(workload.requested_s[jobs] * workload.nodes[jobs] * overload)
