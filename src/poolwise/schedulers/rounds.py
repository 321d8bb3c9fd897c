"""Scheduling rounds at fixed intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model import Reason, WaitCause
from poolwise.quantities import SECOND

BETWEEN = Reason(WaitCause.ROUND, "the scheduler plans at the next round")
"""Reason why jobs wait in a pass between two rounds."""


@dataclass(frozen=True)
class Rounds:
    """Rounds at multiples of an interval. They depend on the clock alone, so a fresh dispatcher makes the same decisions.

    Parameters
    ----------
    every_s
        Interval in seconds; 0 for a round at every event.
    """

    every_s: float

    @property
    def period(self) -> int:
        """Interval in ns, at least 1."""
        return max(1, math.ceil(self.every_s * SECOND))

    def due(self, now: int) -> bool:
        """Return whether a round takes place at `now`."""
        return self.every_s <= 0 or now % self.period == 0

    def after(self, now: int) -> int | None:
        """Return the next round (ns); None if every event triggers one."""
        return None if self.every_s <= 0 else (now // self.period + 1) * self.period
