"""Earliest-deadline-first queue order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import InputError
from poolwise.interfaces import OrderKind, QueuePolicy
from poolwise.model import Queue, Snapshot
from poolwise.registry import register
from poolwise.units import SECOND


@register("orders", "edf")
@dataclass(frozen=True)
class EDF(QueuePolicy):
    """Earliest deadline first: -d, where d is the job table's column "deadline" (ns) in seconds (Call et al., section III-C).

    A missed deadline does not change the order: overdue jobs stay first.
    """

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the (n_queued,) priorities, -d. Raises InputError if the job table has no deadlines."""
        deadline = queue.table.attributes.get("deadline")
        if deadline is None:
            raise InputError(
                "cannot order by deadline: the jobs have no deadlines",
                field="deadline",
                remedy="give each job a deadline in ns, or choose another order",
            )
        return -(deadline[queue.jobs].astype(np.float64) / SECOND)
