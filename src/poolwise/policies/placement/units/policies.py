"""Unit policies: the rules by which a task chooses its processing unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from poolwise.errors import InputError, UnknownNameError
from poolwise.policies.placement.units.layout import Choices, Tier
from poolwise.policies.placement.units.policy import WAIT, Tie, TieredPolicy, UnitPolicy
from poolwise.policies.placement.units.view import SHAPE, Task, Units
from poolwise.quantities import NEVER
from poolwise.registry import register


@register("placements", "flat")
@dataclass(frozen=True)
class Flat(TieredPolicy):
    """Choose uniformly at random among the idle units that can run the task. Source: VineSim, section 5.3.2, FLAT."""

    tie: Tie = "random"

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return one tier with all units that can run the task."""
        return (tuple(choices.layout.of_type[kind] for kind in choices.able(job)),)


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


@register("placements", "closer_to_data")
@dataclass(frozen=True)
class CloserToData(TieredPolicy):
    """Choose an idle unit at the position of the data, else in its rack, else anywhere; ignores affinity.

    Source: VineSim, sections 5.3.2 and 8.8, CLOSER_TO_DATA.
    """

    key: ClassVar[tuple[str, ...]] = ("task_type", "data_x", "data_y")

    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return three overlapping tiers: position, rack, all units. A tier counts only if no earlier one has an idle unit."""
        layout, able = choices.layout, choices.able(job)
        x, y = choices.attribute("data_x", job, 0), choices.attribute("data_y", job, 0)
        place = tuple(layout.of_place[k, x, y] for k in able if (k, x, y) in layout.of_place)
        rack = tuple(layout.of_rack[k, x] for k in able if (k, x) in layout.of_rack)
        return tuple(tier for tier in (place, rack, tuple(layout.of_type[k] for k in able)) if tier)


@register("placements", "earliest_finish")
@dataclass(frozen=True)
class EarliestFinish(UnitPolicy):
    """Choose the unit with the earliest end: transfer and compute time, from now or from the end of the unit's queued tasks.

    If a busy unit gives the earliest end, the task joins the queue of that unit, and later decisions count it. Ties are
    broken by (x, y), then by the order of the deployment. Times are uncontended estimates. Source: accelerator spec,
    "Policies"; the rule is HEFT's processor selection (Topcuoglu et al. 2002) without insertion.
    """

    queues_tasks: ClassVar[bool] = True

    def choose(self, task: Task, units: Units) -> int:
        """Choose among the units of all offers: the first idle unit and the busy unit that is available first."""
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


@register("placements", "delay")
@dataclass(frozen=True)
class Delay(UnitPolicy):
    """Choose the idle unit with the least transfer + compute time; wait a bounded time if a busy unit would be better.

    Counted from its arrival, a task waits at most `patience` times the extra time that the best idle unit takes over the best
    unit of all. It therefore never loses more than `patience` times the possible saving. Ties are broken by (x, y), then by the
    order of the deployment. Source: delay scheduling (Zaharia et al. 2010), with a bound proportional to the saving.

    Parameters
    ----------
    patience
        0 takes an idle unit at once; 1 waits for as long as the time that the better unit would save.
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
