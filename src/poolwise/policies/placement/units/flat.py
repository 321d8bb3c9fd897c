"""Placement on a random idle unit."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import Tier
from poolwise.policies.placement.units.policy import Tie, TieredPolicy
from poolwise.registry import register


@register("placements", "flat")
@dataclass(frozen=True)
class Flat(TieredPolicy):
    """Choose an idle unit that can run the task uniformly at random. Source: VineSim, section 5.3.2, FLAT."""

    tie: Tie = "random"

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return one tier with all units that can run the task."""
        return (tuple(choices.layout.of_type[kind] for kind in choices.able(job)),)
