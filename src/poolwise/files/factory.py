"""From the sections of a file to what they name: schedulers and performance models, configured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poolwise import registry
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json
from poolwise.interfaces import PerformanceModel, PlacementPolicy, Scheduler
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp

GROUPS = {"order": "orders", "backfill": "backfills", "placement": "placements"}
"""Part that schedulers of several kinds have -> group of the registry in which its name is found."""
PARTS = {**GROUPS, "admission": "admissions"}
"""Part of list scheduling -> group."""


def scheduler_content(section: SchedulerSection) -> Json:
    """What a result depends on in a scheduler section, its defaults filled in."""
    if section.kind != "list":
        kind = Component(name=section.kind, **section.settings).identity("schedulers")
        chosen = {part: choice.identity(GROUPS[part]) for part, choice in _chosen(section).items()}
        return {"kind": kind, **chosen, "pass_per_event": section.pass_per_event}
    order, backfill, placement = parts(section)
    return {
        "kind": "list",
        "order": order.identity("orders"),
        "backfill": backfill.identity("backfills"),
        "placement": placement.identity("placements"),
        "scope": section.scope,
        **({} if section.admission is None else {"admission": section.admission.identity("admissions")}),
        "pass_per_event": section.pass_per_event,
    }


def _chosen(section: SchedulerSection) -> dict[str, Component]:
    """Order, backfill and placement, where they are given."""
    return {part: choice for part in GROUPS if (choice := getattr(section, part)) is not None}


def parts(section: SchedulerSection) -> tuple[Component, Component, Component]:
    """Order, backfill and placement of a list scheduler, FCFS, EASY and racks where none is given."""
    return (
        section.order or Component(name="fcfs"),
        section.backfill or Component(name="easy"),
        section.placement or Component(name="racks"),
    )


def scheduler_of(section: SchedulerSection, warm_up: int = 0) -> Scheduler:
    """Configure the scheduler, with the warm-up before it: FCFS without backfilling, with its own placement.

    A scheduler without an order, a backfill and a placement cannot do that: it warms up as it is. Raises InputError for
    unknown names and settings.
    """
    if section.kind != "list":
        check_parts(section)
        made = {part: choice.make(GROUPS[part]) for part, choice in _chosen(section).items()}
        whole = Component(name=section.kind, **section.settings).make("schedulers")
        other: Scheduler = replace(whole, **made) if made else whole
        if not warm_up or not _has_parts(other):
            return other
        own: Any = other  # it places as list scheduling does
        return WarmUp(other, warm_up, _fcfs(own.placement))
    order, backfill, placement = parts(section)
    scope = {} if section.scope is None else {"scope": section.scope}
    admission = {} if section.admission is None else {"admission": section.admission.make("admissions")}
    scheduler = ListScheduler(
        order.make("orders"), backfill.make("backfills"), placement.make("placements", **scope), **admission
    )
    return WarmUp.before(scheduler, warm_up) if warm_up else scheduler


def warms_up_alike(section: SchedulerSection) -> bool:
    """Whether a scheduler has an order, a backfill and a placement, and so warms up under FCFS without backfilling."""
    return _has_parts(scheduler_of(section))


def _has_parts(scheduler: Scheduler) -> bool:
    """Whether a scheduler is put together from an order, a backfill and a placement."""
    return set(GROUPS) <= set(getattr(scheduler, "__dataclass_fields__", {}))


def _fcfs(placement: PlacementPolicy) -> ListScheduler:
    """FCFS without backfilling."""
    return ListScheduler(FCFS(), NoBackfill(), placement)


def check_parts(section: SchedulerSection) -> None:
    """Raise InputError where a section names a part that its kind of scheduler does not have."""
    if section.kind == "list":
        return
    known = getattr(registry.find("schedulers", section.kind), "__dataclass_fields__", {})
    scope = [] if section.scope is None else ["scope"]
    admission = [] if section.admission is None else ["admission"]
    for part in (*_chosen(section), *scope, *admission):
        if part not in known or part == "admission":  # of list scheduling alone; others may have a setting of that name
            raise InputError(
                f"the scheduler '{section.kind}' has no {part}", field=part, remedy="leave it out, or choose another kind"
            )


def models_of(section: PerformanceSection, seed: int) -> tuple[PerformanceModel, PerformanceModel | None]:
    """Configure the truth and the scheduler's estimate (None: the truth). A model with a `seed` gets the cell's."""
    truth = _seeded(section.model.make("models"), section.model, seed)
    if section.estimate_model is not None:
        return truth, _seeded(section.estimate_model.make("models"), section.estimate_model, seed)
    fields = getattr(truth, "__dataclass_fields__", {})
    if section.estimate == "own":
        return truth, None
    if "expect" in fields:
        return truth, replace(truth, expect=section.estimate)
    if section.estimate == "none":
        return truth, Ideal()
    raise InputError(f"model '{section.model.name}' has no mean to expect", field="estimate", remedy="choose own or none")


def _seeded(model: Any, written: Component, seed: int) -> Any:
    """Give a model, and each of those that it has as its `models`, the cell's seed if it has a seed and none was written."""
    known = getattr(model, "__dataclass_fields__", {})
    if "models" in known and "models" in written.settings:
        parts = [Component.model_validate(part) for part in written.settings["models"]]
        model = replace(model, models=tuple(_seeded(*each, seed) for each in zip(model.models, parts, strict=True)))
    return replace(model, seed=seed) if "seed" in known and "seed" not in written.settings else model
