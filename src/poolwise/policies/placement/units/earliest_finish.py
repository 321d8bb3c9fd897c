"""Placement on the unit, idle or busy, on which the task ends first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poolwise.policies.placement.units.policy import WAIT, UnitPolicy
from poolwise.policies.placement.units.view import Task, Units
from poolwise.registry import register
from poolwise.units import NEVER


@register("placements", "earliest_finish")
@dataclass(frozen=True)
class EarliestFinish(UnitPolicy):
    """Choose the unit with the earliest end: now, or when the unit has finished its queued tasks, + transfer + compute.

    If a busy unit gives the earliest end, the task joins the queue of that unit, and later decisions count it. Ties are
    broken by (x, y), then by the order of the deployment. Times are uncontended estimates. Source: accelerator spec,
    "Policies"; the rule is HEFT's processor selection (Topcuoglu et al. 2002) without insertion.
    """

    queues_tasks: ClassVar[bool] = True

    def choose(self, task: Task, units: Units) -> int:
        """Choose among the first idle and the first available busy unit of each offer."""
        best, chosen = (NEVER, NEVER), WAIT
        for response, ranges in units.offers(task.job):
            if units.now + response > best[0]:
                break  # later offers take even longer
            idle = units.first(ranges)
            for ready, leaf in ((units.now, idle), units.soonest(ranges)):
                if leaf >= 0:
                    end = (ready + response, int(units.layout.rank[leaf]))
                    if end < best:
                        best, chosen = end, leaf
        return chosen
