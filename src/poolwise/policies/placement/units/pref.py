"""Placement on units of the type that the task prefers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from poolwise.errors import UnknownNameError
from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import Tier
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.registry import register

Reading = Literal["only", "first"]


@register("placements", "pref")
@dataclass(frozen=True)
class Pref(TieredPolicy):
    """Choose an idle unit of the preferred type. A task with the preference "unspecified" takes any type.

    Source: VineSim, sections 5.2.1 and 5.3.2, PREF. The paper allows both readings.

    Parameters
    ----------
    reading
        "only" never uses another type; "first" uses another type if no unit of the preferred one is idle.
    """

    reading: Reading = "only"

    key: ClassVar[tuple[str, ...]] = ("task_type", "preferred_type")

    def check_settings(self) -> None:
        """Raise UnknownNameError for an unknown reading."""
        super().check_settings()
        if self.reading not in get_args(Reading):
            raise UnknownNameError.of("reading", self.reading, get_args(Reading), field="reading")

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return the preferred type, then, under "first", the others."""
        able, wanted = choices.able(job), choices.preferred(job)
        layout = choices.layout
        preferred = tuple(layout.of_type[k] for k in able if wanted is None or layout.code[k] == wanted)
        others = tuple(layout.of_type[k] for k in able if wanted is not None and layout.code[k] != wanted)
        return tuple(tier for tier in (preferred, others if self.reading == "first" else ()) if tier)
