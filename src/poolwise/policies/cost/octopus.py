"""Firmament's Octopus cost model: placing is cheaper on machines that run fewer tasks.

Source: flow-placement spec, "Baselines".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import register

EACH = 100.0
UNSCHEDULED = 1_000_000.0


@register("costs", "octopus")
@dataclass(frozen=True)
class Octopus(CostModel):
    """Octopus (Firmament): placing costs 100 per task on the machine, including those placed earlier in the round."""

    @property
    def looks_at(self) -> frozenset[str]:
        """The number of running tasks."""
        return frozenset({"running"})

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost of the first, second, ... copy."""
        cost = EACH * (places.running[None, :, None] + np.arange(copies))
        return np.broadcast_to(cost, (len(tasks), len(places), copies)).astype(np.float64)

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return a cost above that of any placement."""
        return np.full(len(waiting.passes), UNSCHEDULED)
