"""Any idle unit, as if all were alike."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import Tier
from poolwise.policies.placement.units.policy import Tie, TieredPolicy
from poolwise.registry import register


@register("placements", "flat")
@dataclass(frozen=True)
class Flat(TieredPolicy):
    """A random idle unit that can run the task, each as likely as the others. Source: VineSim, section 5.3.2, FLAT."""

    tie: Tie = "random"

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """All units that can run the task."""
        return (tuple(choices.layout.of_type[kind] for kind in choices.able(job)),)
