"""Wait a bounded time for a better unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from poolwise.errors import InputError
from poolwise.policies.placement.units.policy import WAIT, UnitPolicy
from poolwise.policies.placement.units.view import SHAPE, Task, Units
from poolwise.registry import register


@register("placements", "delay")
@dataclass(frozen=True)
class Delay(UnitPolicy):
    """The idle unit with the least transfer + compute; one that is worse than the best unit, only after a wait.

    A task waits, counted from its arrival, at most `patience` times what the best idle unit would cost it over the best
    unit of all; so it never loses more than that factor of what it tried to save. Ties by (x, y), then the order of the
    deployment. Source: delay scheduling (Zaharia et al. 2010), with a bound in proportion to what is at stake.

    Parameters
    ----------
    patience
        0 takes what is idle at once; 1 waits as long as the better unit would save.
    """

    patience: float = 1.0

    looks_at: ClassVar[tuple[str, ...]] = SHAPE

    def check_settings(self) -> None:
        """Refuse a patience that is no number of 0 or more."""
        if not (isinstance(self.patience, float | int) and 0 <= self.patience < math.inf):
            raise InputError(f"{self.patience!r} is not a number of 0 or more", field="patience", remedy="such as 1")

    def choose(self, task: Task, units: Units) -> int:
        """Take an idle unit of the best offer that has one, if no other is better or the wait is over."""
        offers = units.offers(task.job)
        idle = [(offer.response, leaf) for offer in offers if (leaf := units.first(offer.ranges)) >= 0]
        if not idle:
            return WAIT
        response, leaf = min(idle, key=lambda entry: (entry[0], int(units.layout.rank[entry[1]])))
        stake = response - offers[0].response
        until = int(units.table.submit[task.job]) + math.ceil(self.patience * stake)
        if until <= units.now:
            return leaf
        units.ask_at = min(units.ask_at, until)
        return WAIT
