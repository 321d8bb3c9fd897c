"""Scheduling at intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model import Reason, Rule
from poolwise.units import SECOND

BETWEEN = Reason(Rule.ROUND, "the scheduler plans at the next round")
"""Why jobs wait in a pass that is no round."""


@dataclass(frozen=True)
class Rounds:
    """Rounds at the multiples of an interval: known from the clock alone, so that a fresh dispatcher decides alike.

    Parameters
    ----------
    every_s
        Seconds; 0 for a round at every event.
    """

    every_s: float

    @property
    def period(self) -> int:
        """Ns, at least 1."""
        return max(1, math.ceil(self.every_s * SECOND))

    def due(self, now: int) -> bool:
        """Whether a round is made at `now`."""
        return self.every_s <= 0 or now % self.period == 0

    def after(self, now: int) -> int | None:
        """Ns of the next round; None where every event makes one."""
        return None if self.every_s <= 0 else (now // self.period + 1) * self.period
