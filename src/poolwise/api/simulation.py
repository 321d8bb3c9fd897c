"""Simulations: a scheduler from names, and one run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from poolwise import catalog, engines, registry
from poolwise.api.simulated_run import SimulatedRun, measured
from poolwise.engines.order_contract import check_order_contract
from poolwise.interfaces import BackfillPolicy, PerformanceModel, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.metrics import Measure
from poolwise.model import Kind, Machine, Schedule, Workload
from poolwise.model.argument_order import check_workload_and_machine
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
        Policies, or their names: registered ("fm"), "module:Name" or "file.py:Name". Without a placement, it is
        "first_fit" on a machine whose nodes are all shared, and "racks" on any other and where no machine is given.
    scope
        Setting of the placement: "rack" (a node uses the pool of its own rack) or "system" (any pool).
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
        A file cannot be imported, or a class in it lacks what its kind of policy needs.

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

    Raises InputError, for a file naming line and field.
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

    It is the one given, as an object or a reference to a file; else a list scheduler of the parts given, by default FCFS, EASY
    and the default placement of the machine. Without any of these, it is the scheduler that the state names (`known`).
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
    """Return the performance model for a machine if none is given: remote memory where racks have pools, else ideal."""
    return RemoteMemory(seed=seed) if default_model_name(machine) == "remote_memory" else Ideal()


def default_model_name(machine: Machine) -> Literal["remote_memory", "ideal"]:
    """Return the name of the model that `default_model` chooses."""
    has_pools = bool(len(machine.of_kind(Kind.POOL))) and "nodes" in machine.resources
    return "remote_memory" if has_pools else "ideal"


def simulate(
    workload: Workload,
    machine: Machine,
    order: str | QueuePolicy = "fcfs",
    backfill: str | BackfillPolicy = "easy",
    placement: str | PlacementPolicy | None = None,
    scope: str | None = None,
    *,
    scheduler: str | Path | Scheduler | None = None,
    truth: str | PerformanceModel | None = None,
    estimate: str | PerformanceModel | None = None,
    seed: int = 0,
    engine: engines.Engine = "auto",
    pass_per_event: bool = False,
    baseline: Schedule | None = None,
    metrics: Sequence[str | Measure] = (),
    engine_name: engines.Engine | None = None,
) -> SimulatedRun:
    """Run a workload on a machine under a scheduler, and measure all jobs that finished.

    Parameters
    ----------
    workload
        Jobs, from `read`, `generate` or `Workload.of`.
    machine
        Machine, from `load_machine`, `Machine.of_racks`, `Machine.flat` or a `MachineBuilder`.
    order, backfill, placement
        Parts of a list scheduler: policies, or their names (registered, "module:Name" or "file.py:Name"). Without a
        placement, it is "racks" on a machine with whole nodes and "first_fit" on one whose nodes are all shared.
    scope
        Setting of the placement "racks": "rack" (a node uses the pool of its own rack) or "system" (any pool).
    scheduler
        Scheduler that replaces order, backfill, placement and scope: an object, SCHEDULER.toml, "catalog:NAME", a registered
        name, "module:Name" or "file.py:Name".
    truth
        Performance model that decides how long runs take: an object or a name. By default `RemoteMemory` where racks have
        memory pools, else `Ideal`.
    estimate
        Performance model that the scheduler believes: an object or a name; `truth` if not given.
    seed
        Random seed: sensitivities of jobs to remote memory, failures, and draws of the scheduler.
    engine
        "reference" (readable, runs any scheduler), "compiled" (kernels with the same results, an InputError where none runs
        this) or "auto" (the fastest engine that can run this).
    pass_per_event
        Make a scheduling pass after each event, not once after all events of an instant.
    baseline
        Schedule of the same workload under FCFS without backfilling, against which fairness is measured.
    metrics
        Metrics in addition to those that are registered, as objects or names.
    engine_name
        Deprecated name of `engine`.

    Returns
    -------
    SimulatedRun

    Raises
    ------
    TypeError
        The workload is not a Workload or the machine is not a Machine; the message says if they are swapped.
    UnknownNameError
        A policy, setting, metric or engine has an unknown name.
    InputError
        The scheduler cannot work on this machine, or the compiled engine cannot run this.
    PolicyError
        A policy, scheduler or model broke its contract.

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(2, 4, local="64 GiB", pool="256 GiB")
    >>> workload = poolwise.Workload.of(
    ...     submit=["0 s", "0 s", "5 min"],
    ...     duration=["1 h", "30 min", "10 min"],
    ...     requests={"nodes": [8, 4, 2], "memory": ["32 GiB", "80 GiB", "8 GiB"]},
    ... )
    >>> run = poolwise.simulate(workload, machine, order="sjf", engine="reference")
    >>> run.jobs
    3
    >>> run.frame().select("id", "nodes", "wait_s").rows()[1]
    (2, 4, 0.0)
    """
    if engine_name is not None:
        warnings.warn("simulate(engine_name=...) is deprecated: write engine=...", DeprecationWarning, stacklevel=2)
        engine = engine_name
    check_workload_and_machine("simulate", workload, machine)
    chosen: Scheduler
    if scheduler is None:
        chosen = list_scheduler(order, backfill, placement, scope, machine)
    else:
        chosen = read_scheduler(scheduler) if isinstance(scheduler, str | Path) else scheduler
    model = _model(truth) if truth is not None else default_model(machine, seed)
    promises = check_order_contract(chosen, machine, workload)
    result = engines.simulate(
        machine,
        workload,
        chosen,
        truth=model,
        estimate=None if estimate is None else _model(estimate),
        seed=seed,
        engine=engine,
        pass_per_event=pass_per_event,
    )
    extra = [registry.make("metrics", name) if isinstance(name, str) else name for name in metrics]
    return measured(
        result.schedule, result.engine, result.wall_s, baseline, extra, (*result.notes(), *promises), scheduler=chosen
    )


def _model(model: str | PerformanceModel) -> PerformanceModel:
    """Return a performance model, made from its name if necessary."""
    if isinstance(model, str):
        made: PerformanceModel = registry.make("models", model)
        return made
    return model
