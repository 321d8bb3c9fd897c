"""Placement on the idle unit with the highest affinity."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import Tier
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.registry import register


@register("placements", "high")
@dataclass(frozen=True)
class High(TieredPolicy):
    """Choose an idle unit with the highest affinity to the task; ignores the position of the data.

    Source: VineSim, section 5.3.2, HIGH ("best available" in section 8).
    """

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return one tier per affinity, highest first."""
        layout, by_rate = choices.layout, dict[float, list[int]]()
        kind = choices.attribute("task_type", job, 0)
        for able in choices.able(job):
            by_rate.setdefault(float(layout.rate[kind, able]) if len(layout.rate) else 1.0, []).append(able)
        return tuple(tuple(layout.of_type[k] for k in by_rate[rate]) for rate in sorted(by_rate, reverse=True))
