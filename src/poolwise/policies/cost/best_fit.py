"""Best-fit cost model: placing is cheaper on fuller machines, the opposite of Firmament's models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import register

REMOTE = 1.0
"""Exceeds every difference between best-fit costs, so that devices of the own node come first."""
UNSCHEDULED = 1000.0


@register("costs", "best_fit")
@dataclass(frozen=True)
class BestFit(CostModel):
    """Best fit: placing is cheaper the less the machine would have left, which keeps room for large tasks.

    The cost is the mean, over the requested resources, of the fraction of the machine that one task leaves free; a device over
    the network costs 1 more. Waiting costs more than any placement, and more for jobs that have been skipped more often.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """No columns besides the free amounts."""
        return frozenset()

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the same cost for every copy, since flows require non-decreasing costs of copies."""
        left = places.free[None] - tasks.demand[:, None]
        asked = tasks.demand > 0
        share = left / np.maximum(places.capacity, 1)[None] * asked[:, None]
        mean = share.sum(axis=2) / np.maximum(asked.sum(axis=1), 1)[:, None]
        cost: FloatArray = (mean + (REMOTE if places.remote else 0.0))[:, :, None]
        return cost

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return the cost of waiting, linear in the number of passes."""
        return UNSCHEDULED + waiting.passes.astype(np.float64)
