"""The unit, idle or busy, on which the task ends first."""

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
    """Least end over all units: now or when the unit has finished the tasks before, + transfer + compute.

    A task for which a busy unit ends sooner stands in line there, so that the next one counts it in. Ties by (x, y), then
    the order of the deployment. Times are uncontended estimates. Source: specs of the accelerators, "Policies"; the rule is
    that of HEFT's processor selection (Topcuoglu et al. 2002) without insertion.
    """

    lines: ClassVar[bool] = True

    def choose(self, task: Task, units: Units) -> int:
        """Compare the first idle and the soonest busy unit of each offer."""
        best, chosen = (NEVER, NEVER), WAIT
        for response, ranges in units.offers(task.job):
            if units.now + response > best[0]:
                break  # the later offers take longer still
            idle = units.first(ranges)
            for ready, leaf in ((units.now, idle), units.soonest(ranges)):
                if leaf >= 0:
                    end = (ready + response, int(units.layout.rank[leaf]))
                    if end < best:
                        best, chosen = end, leaf
        return chosen
