"""Classes of jobs: latency-critical ones before batch."""

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
    """The lowest class first: -c, where c is the job table's column "class"; within a class first come, first served.

    Head-of-line priorities (Cobham 1954): a job of a higher class never waits behind one of a lower, and what runs is not
    stopped.
    """

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) -c. Raises InputError where the job table has no classes."""
        number = queue.table.attributes.get("class")
        if number is None:
            raise InputError(
                "the workload has no classes to order by",
                field="class",
                remedy="give each job a class, 0 the most urgent, or choose another order",
            )
        return -(number[queue.jobs].astype(np.float64))
