"""Queue order with a cap on the waiting time."""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.errors import InputError
from poolwise.interfaces import CappedOrder, QueuePolicy
from poolwise.policies.order.priorities import FCFS
from poolwise.registry import register


@register("orders", "capped")
@dataclass(frozen=True)
class Capped(CappedOrder):
    """Jobs that have waited longer than patience_s + backlogs * (age of the backlog) first, oldest first; others by `order`.

    Parameters
    ----------
    order
        Order of all other jobs.
    patience_s
        Fixed part of the cap in seconds, at least 0.
    backlogs
        Multiple of the age of the backlog that is added to the cap, at least 0. The age of the backlog is the node-seconds
        that the waiting jobs request, divided by the nodes of the machine.
    """

    order: QueuePolicy = field(default_factory=FCFS)
    patience_s: float = 0.0
    backlogs: float = 0.0

    def __post_init__(self) -> None:
        for name in ("patience_s", "backlogs"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}", field=name, remedy="give 0 or more")
