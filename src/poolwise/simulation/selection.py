"""Schedulers from names, and the default placement and performance model of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from poolwise import catalog, registry
from poolwise.interfaces import BackfillPolicy, PerformanceModel, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Kind, Machine
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.schedulers.list import ListScheduler


def list_scheduler(
    order: str | QueuePolicy = "fcfs",
    backfill: str | BackfillPolicy = "easy",
    placement: str | PlacementPolicy | None = None,
    scope: str | None = None,
    machine: Machine | None = None,
) -> ListScheduler:
    """Make a list scheduler from a queue order, a backfill and a placement.

    Parameters
    ----------
    order, backfill, placement
        Policies, or their names: registered ("fm"), "module:Name" or "file.py:Name". Without a placement, "first_fit" is used
        on a machine whose nodes are all shared, and "racks" on any other machine or if no machine is given.
    scope
        Setting of the placement: "rack" (a node uses only the pool of its own rack) or "system" (any pool).
    machine
        Machine that the default placement must suit.

    Returns
    -------
    ListScheduler

    Raises
    ------
    UnknownNameError
        A name is not registered, or a policy does not have a setting.
    InputError
        A file cannot be imported, or a class in it lacks methods that its kind of policy needs.

    Examples
    --------
    >>> import poolwise
    >>> poolwise.list_scheduler("sjf", "none").order
    SJF()
    """
    if placement is None:
        placement = "racks" if machine is None else default_placement_name(machine)
    settings = {} if scope is None else {"scope": scope}
    return ListScheduler(
        order=registry.make("orders", order) if isinstance(order, str) else order,
        backfill=registry.make("backfills", backfill) if isinstance(backfill, str) else backfill,
        placement=registry.make("placements", placement, **settings) if isinstance(placement, str) else placement,
    )


def read_scheduler(reference: str | Path) -> Scheduler:
    """Make the scheduler of a reference: SCHEDULER.toml, "catalog:NAME", a registered name, "module:Name" or "file.py:Name".

    Raises InputError; for a file, it names the line and field.
    """
    name = str(reference)
    in_file = name.startswith(catalog.PREFIX) or Path(name).exists()
    if not in_file and (":" in name or name in registry.names("schedulers")):
        made: Scheduler = registry.make("schedulers", name)
        return made
    from poolwise.files.factory import scheduler_of  # files are slow to import, and a simulation may need none
    from poolwise.files.scheduler import load_scheduler

    return scheduler_of(load_scheduler(catalog.resolve("schedulers", reference)))


def choose_scheduler(
    machine: Machine,
    scheduler: str | Path | Scheduler | None = None,
    order: str | QueuePolicy | None = None,
    backfill: str | BackfillPolicy | None = None,
    placement: str | PlacementPolicy | None = None,
    known: str = "",
) -> tuple[Scheduler, str]:
    """Return a scheduler for the machine of a state, and its name.

    A given scheduler (an object or a reference to a file) is used unchanged. Otherwise, given parts form a list scheduler;
    missing parts are FCFS, EASY and the default placement of the machine. Without either, the scheduler that the state names
    (`known`) is used.
    """
    parts = (order, backfill, placement)
    if scheduler is None and known and not any(parts):
        scheduler = known
    if isinstance(scheduler, str | Path):
        return read_scheduler(scheduler), str(scheduler)
    if scheduler is not None:
        return scheduler, type(scheduler).__name__
    order, backfill = order or "fcfs", backfill or "easy"
    names = [part if isinstance(part, str) else type(part).__name__ for part in (order, backfill)]
    return list_scheduler(order, backfill, placement, machine=machine), " with ".join(names)


def default_placement_name(machine: Machine) -> Literal["racks", "first_fit"]:
    """Return the placement for a machine if none is named: "racks" for whole nodes, else "first_fit" for shared nodes."""
    return "racks" if "nodes" in machine.resources else "first_fit"


def default_model(machine: Machine, seed: int) -> PerformanceModel:
    """Return the performance model for a machine if none is given: remote memory if racks have pools, else ideal."""
    return RemoteMemory(seed=seed) if default_model_name(machine) == "remote_memory" else Ideal()


def default_model_name(machine: Machine) -> Literal["remote_memory", "ideal"]:
    """Return the name of the model that `default_model` chooses."""
    has_pools = bool(len(machine.of_kind(Kind.POOL))) and "nodes" in machine.resources
    return "remote_memory" if has_pools else "ideal"
