"""Best fit: the fuller a machine is of what a task asks for, the cheaper. The opposite of Firmament's models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import register

REMOTE = 1.0
"""More than the costs of a best fit can differ by: devices of the own node come first."""
UNSCHEDULED = 1000.0


@register("costs", "best_fit")
@dataclass(frozen=True)
class BestFit(CostModel):
    """The less a machine would have left, the cheaper: keeps room for large tasks, where spreading would leave none.

    The cost is the mean, over the resources that the task asks for, of the fraction of the machine that one task leaves free;
    a device over the network costs 1 more. Waiting costs more than any placement, and more for jobs skipped more often.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """Nothing but what is free."""
        return frozenset()

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """The same for every copy: a flow can only have later copies that cost more."""
        left = places.free[None] - tasks.demand[:, None]
        asked = tasks.demand > 0
        share = left / np.maximum(places.capacity, 1)[None] * asked[:, None]
        mean = share.sum(axis=2) / np.maximum(asked.sum(axis=1), 1)[:, None]
        cost: FloatArray = (mean + (REMOTE if places.remote else 0.0))[:, :, None]
        return cost

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Cost that is linear in the passes."""
        return UNSCHEDULED + waiting.passes.astype(np.float64)
