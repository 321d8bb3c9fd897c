"""Construction of schedulers and performance models from the sections of a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from poolwise import registry
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json
from poolwise.interfaces import PerformanceModel, PlacementPolicy, Scheduler
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Kind, Machine
from poolwise.model.rules import NodeRule, RackRule
from poolwise.performance.ideal import Ideal
from poolwise.policies.order.priorities import FCFS
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WITHOUT_BACKFILL, WarmUp

GROUPS = {"order": "orders", "backfill": "backfills", "placement": "placements"}
"""Component common to several kinds of schedulers -> registry group of its name."""
OPTIONAL = {"admission": "admissions", "preemption": "preemptions"}
"""Component of list scheduling only -> registry group; by default the machine's limits, and no preemption."""
PARTS = {**GROUPS, **OPTIONAL}
"""Component of list scheduling -> registry group."""


def scheduler_content(section: SchedulerSection) -> Json:
    """Return everything in a scheduler section that a result depends on, with defaults filled in."""
    if section.kind != "list":
        kind = Component(name=section.kind, **section.settings).identity("schedulers")
        chosen = {part: component.identity(GROUPS[part]) for part, component in _chosen(section).items()}
        return {"kind": kind, **chosen, "pass_per_event": section.pass_per_event}
    order, backfill, placement = parts(section)
    return {
        "kind": "list",
        "order": order.identity("orders"),
        "backfill": backfill.identity("backfills"),
        "placement": placement.identity("placements"),
        "scope": section.scope,
        **{part: component.identity(OPTIONAL[part]) for part, component in _optional(section).items()},
        "pass_per_event": section.pass_per_event,
    }


def _chosen(section: SchedulerSection) -> dict[str, Component]:
    """Return the order, backfill and placement that the section gives."""
    return {part: component for part in GROUPS if (component := getattr(section, part)) is not None}


def _optional(section: SchedulerSection) -> dict[str, Component]:
    """Return the admission and the preemption that the section gives."""
    return {part: component for part in OPTIONAL if (component := getattr(section, part)) is not None}


def parts(section: SchedulerSection) -> tuple[Component, Component, Component]:
    """Return the order, backfill and placement of a list scheduler; the defaults are FCFS, EASY and racks."""
    return (
        section.order or Component(name="fcfs"),
        section.backfill or Component(name="easy"),
        section.placement or Component(name="racks"),
    )


def scheduler_of(section: SchedulerSection, warm_up: int = 0) -> Scheduler:
    """Build the scheduler, including its warm-up: FCFS without backfilling, with the scheduler's own placement.

    A scheduler without order, backfill and placement runs its own policy during the warm-up. Raises InputError for unknown
    names and settings.
    """
    if section.kind != "list":
        check_parts(section)
        made = {part: component.make(GROUPS[part]) for part, component in _chosen(section).items()}
        base = Component(name=section.kind, **section.settings).make("schedulers")
        other: Scheduler = replace(base, **made) if made else base
        if not warm_up or not _has_parts(other):
            return other
        own: Any = other  # it has a placement, as a list scheduler does
        return WarmUp(other, warm_up, _fcfs(own.placement))
    order, backfill, placement = parts(section)
    scope = {} if section.scope is None else {"scope": section.scope}
    more = {part: component.make(OPTIONAL[part]) for part, component in _optional(section).items()}
    scheduler = ListScheduler(order.make("orders"), backfill.make("backfills"), placement.make("placements", **scope), **more)
    return WarmUp.before(scheduler, warm_up) if warm_up else scheduler


def warm_up_policy(sections: Iterable[SchedulerSection]) -> str:
    """Name the policy of a warm-up: FCFS without backfilling for schedulers with order, backfill and placement."""
    parts_of_kind = {section.kind: section.kind == "list" or _has_parts(scheduler_of(section)) for section in sections}
    others = sorted(kind for kind, has_parts in parts_of_kind.items() if not has_parts)
    if len(others) == len(parts_of_kind):
        return "the scheduler's own policy"
    return "FCFS without backfilling" + (f"; {', '.join(others)} under its own policy" if others else "")


def _has_parts(scheduler: Scheduler) -> bool:
    """Return whether a scheduler is composed of an order, a backfill and a placement."""
    return set(GROUPS) <= set(getattr(scheduler, "__dataclass_fields__", {}))


def _fcfs(placement: PlacementPolicy) -> ListScheduler:
    """Return FCFS without backfilling."""
    return ListScheduler(FCFS(), WITHOUT_BACKFILL, placement)


def check_parts(section: SchedulerSection) -> None:
    """Raise InputError if a section names a component that its kind of scheduler does not support."""
    if section.kind == "list":
        return
    fields = getattr(registry.find("schedulers", section.kind), "__dataclass_fields__", {})
    scope = [] if section.scope is None else ["scope"]
    for part in (*_chosen(section), *scope, *_optional(section)):
        if part not in fields or part in OPTIONAL:  # list scheduling only; other kinds may have a setting of that name
            raise InputError(
                f"scheduler '{section.kind}' does not support '{part}'", field=part, remedy="remove it, or choose another kind"
            )


class UnsuitablePlacementError(InputError):
    """Error for a machine without the kind of nodes on which a placement policy places jobs."""


def check_placement_suits(section: SchedulerSection, machine: Machine) -> None:
    """Raise UnsuitablePlacementError if a list scheduler places jobs on whole or shared nodes that the machine lacks."""
    if section.kind != "list":
        return
    chosen = parts(section)[2]
    scope = {} if section.scope is None else {"scope": section.scope}
    rule = rule_of(chosen.make("placements", **scope))
    whole = "nodes" in machine.resources
    if isinstance(rule, RackRule) and not whole:
        which = f"placement '{chosen}'" if section.placement else f"the default placement '{chosen}'"
        problem = f"{which} requires whole nodes, but all nodes of machine '{machine.name}' are shared"
        raise UnsuitablePlacementError(problem, remedy='write placement = "first_fit"').at("placement")
    if isinstance(rule, NodeRule) and whole and not _has_shared_nodes(machine):
        problem = f"placement '{chosen}' requires shared nodes, but machine '{machine.name}' has whole nodes only"
        raise UnsuitablePlacementError(problem, remedy='write placement = "racks"').at("placement")


def _has_shared_nodes(machine: Machine) -> bool:
    owners = machine.of_kind(Kind.NODE)
    capacity = machine.capacity[owners]
    return bool((capacity.any(axis=1) & (capacity[:, machine.resource("nodes")] == 0)).any())


def models_of(section: PerformanceSection, seed: int) -> tuple[PerformanceModel, PerformanceModel | None]:
    """Build the performance model and the scheduler's estimate (None if the same), with the cell's seed if they take one."""
    model = _seeded(section.model.make("models"), section.model, seed)
    if section.estimate_model is not None:
        return model, _seeded(section.estimate_model.make("models"), section.estimate_model, seed)
    fields = getattr(model, "__dataclass_fields__", {})
    if section.estimate == "own":
        return model, None
    if "expect" in fields:
        return model, replace(model, expect=section.estimate)
    if section.estimate == "none":
        return model, Ideal()
    raise InputError(
        f"model '{section.model.name}' has no mean estimate", field="estimate", remedy='set estimate = "own" or "none"'
    )


def _seeded(model: Any, component: Component, seed: int) -> Any:
    """Give a model and its nested `models` the cell's seed, if they take a seed and none is configured."""
    fields = getattr(model, "__dataclass_fields__", {})
    if "models" in fields and "models" in component.settings:
        parts = [Component.model_validate(part) for part in component.settings["models"]]
        model = replace(model, models=tuple(_seeded(*each, seed) for each in zip(model.models, parts, strict=True)))
    return replace(model, seed=seed) if "seed" in fields and "seed" not in component.settings else model
