"""Placement on the idle unit nearest to the task's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import Tier
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.registry import register


@register("placements", "closer_to_data")
@dataclass(frozen=True)
class CloserToData(TieredPolicy):
    """Choose an idle unit at the position of the data, else in its rack, else anywhere; ignores affinity.

    Source: VineSim, sections 5.3.2 and 8.8, CLOSER_TO_DATA.
    """

    key: ClassVar[tuple[str, ...]] = ("task_type", "data_x", "data_y")

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return the tiers position, rack and all units. They may overlap: a tier is only used if no earlier one is idle."""
        layout, able = choices.layout, choices.able(job)
        x, y = choices.attribute("data_x", job, 0), choices.attribute("data_y", job, 0)
        place = tuple(layout.of_place[k, x, y] for k in able if (k, x, y) in layout.of_place)
        rack = tuple(layout.of_rack[k, x] for k in able if (k, x) in layout.of_rack)
        return tuple(tier for tier in (place, rack, tuple(layout.of_type[k] for k in able)) if tier)
