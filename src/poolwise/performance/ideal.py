"""The machine on which placement costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.interfaces import PerformanceModel
from poolwise.model import Placement, Run, Snapshot
from poolwise.registry import register


@register("models", "ideal")
@dataclass(frozen=True)
class Ideal(PerformanceModel):
    """Every run takes exactly its duration, wherever it is."""

    def setup(self, run: Run, view: Snapshot) -> int:
        """No time."""
        return 0

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """None."""
        return 0.0

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Nothing: fixed at the start."""
        return ()
