"""Class-based queue order: latency-critical jobs before batch jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import InputError
from poolwise.interfaces import OrderKind, QueuePolicy
from poolwise.model import Queue, Snapshot
from poolwise.registry import register


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
        number = queue.table.attributes.get("class")
        if number is None:
            raise InputError(
                "cannot order by class: the jobs have no classes",
                field="class",
                remedy="give each job a class (0 is the most urgent), or choose another order",
            )
        return -(number[queue.jobs].astype(np.float64))
