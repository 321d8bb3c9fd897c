"""Firmament's simplest model: the fewer tasks run on a machine, the cheaper.

Source: specs of the flow placement, "Baselines".
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
    """The fewer tasks run on a machine, the cheaper: 100 for each, those placed before in the round among them (Firmament)."""

    @property
    def looks_at(self) -> frozenset[str]:
        """How many tasks run there."""
        return frozenset({"running"})

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Cost of the first, second, ... copy."""
        cost = EACH * (places.running[None, :, None] + np.arange(copies))
        return np.broadcast_to(cost, (len(tasks), len(places), copies)).astype(np.float64)

    def waiting(self, waiting: Waiting) -> FloatArray:
        """More than any placement."""
        return np.full(len(waiting.passes), UNSCHEDULED)
