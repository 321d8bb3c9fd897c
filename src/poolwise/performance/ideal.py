"""The machine on which placement costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.interfaces import PerformanceModel
from poolwise.model import JobTable, Machine, Placement, Run, Snapshot
from poolwise.model.rules import FixedSlowdown
from poolwise.registry import register


class FixedAtStart(PerformanceModel):
    """What models have in common whose slowdown no neighbour changes, and that need no time before work begins."""

    def setup(self, run: Run, view: Snapshot) -> int:
        """No time."""
        return 0

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Nothing."""
        return ()


@register("models", "ideal")
@dataclass(frozen=True)
class Ideal(FixedAtStart):
    """Every run takes exactly its duration, wherever it is."""

    @property
    def parts(self) -> tuple[PerformanceModel, ...]:
        """None."""
        return ()

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """0."""
        return 0.0

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown:
        """None at all."""
        none = np.zeros(len(table.requested[rows]))
        return FixedSlowdown(none, none, none)
