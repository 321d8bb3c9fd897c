"""Delay scheduling: wait a bounded time for a better unit."""

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
    """Choose the idle unit with the least transfer + compute time; wait a bounded time if a busy unit would be better.

    A task waits, counted from its arrival, at most `patience` times the extra time of the best idle unit over the best unit
    of all. It therefore never loses more than that factor of the possible saving. Ties are broken by (x, y), then by the
    order of the deployment. Source: delay scheduling (Zaharia et al. 2010), with a bound proportional to the saving.

    Parameters
    ----------
    patience
        0 takes an idle unit at once; 1 waits for as long as the better unit would save.
    """

    patience: float = 1.0

    looks_at: ClassVar[tuple[str, ...]] = SHAPE

    def check_settings(self) -> None:
        """Raise InputError unless the patience is a finite number of at least 0."""
        if not (isinstance(self.patience, float | int) and 0 <= self.patience < math.inf):
            raise InputError(
                f"must be a number of at least 0, got {self.patience!r}", field="patience", remedy="use, for example, 1"
            )

    def choose(self, task: Task, units: Units) -> int:
        """Choose an idle unit of the best offer that has one, if no other offer is better or the wait is over."""
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
