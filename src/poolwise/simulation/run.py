"""Simulation of a workload on a machine, with defaults for omitted arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from poolwise import engines, registry
from poolwise.engines.order_contract import check_order_contract
from poolwise.interfaces import BackfillPolicy, PerformanceModel, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.metrics import Measure
from poolwise.model import Machine, Schedule, Workload
from poolwise.simulation.selection import default_model, list_scheduler, read_scheduler
from poolwise.simulation.simulated_run import SimulatedRun, measured


def simulate(
    workload: Workload,
    machine: Machine,
    order: str | QueuePolicy = "fcfs",
    backfill: str | BackfillPolicy = "easy",
    placement: str | PlacementPolicy | None = None,
    scope: str | None = None,
    *,
    scheduler: str | Path | Scheduler | None = None,
    model: str | PerformanceModel | None = None,
    estimate: str | PerformanceModel | None = None,
    seed: int = 0,
    engine: engines.Engine = "auto",
    pass_per_event: bool = False,
    baseline: Schedule | None = None,
    metrics: Sequence[str | Measure] = (),
) -> SimulatedRun:
    """Run a workload on a machine under a scheduler, and measure all jobs that finished.

    Parameters
    ----------
    workload
        Jobs, from `read`, `generate` or `Workload.of`.
    machine
        Machine, from `load_machine`, `Machine.of_racks`, `Machine.flat` or a `MachineBuilder`.
    order, backfill, placement
        Parts of a list scheduler: policies, or their names (registered, "module:Name" or "file.py:Name"). Without a placement,
        `simulate` uses "racks" on a machine with whole nodes and "first_fit" on one whose nodes are all shared.
    scope
        Setting of the placement "racks": "rack" (a node uses only the pool of its own rack) or "system" (any pool).
    scheduler
        Scheduler that replaces order, backfill, placement and scope: an object, SCHEDULER.toml, "catalog:NAME", a registered
        name, "module:Name" or "file.py:Name".
    model
        Performance model that decides how long runs take: an object or a name. By default `RemoteMemory` if racks have memory
        pools, else `Ideal`.
    estimate
        Performance model by which the scheduler estimates run times: an object or a name; `model` if not given.
    seed
        Random seed of sensitivities of jobs to remote memory, of failures, and of the scheduler's draws.
    engine
        "reference" (readable, runs any scheduler), "compiled" (kernels with the same results; raises InputError if none
        supports this run) or "auto" (the fastest engine that supports this run).
    pass_per_event
        Run a scheduling pass after each event instead of once after all events of an instant.
    baseline
        Schedule of the same workload under FCFS without backfilling, the reference for fairness.
    metrics
        Metrics in addition to the registered ones, as objects or names.

    Returns
    -------
    SimulatedRun

    Raises
    ------
    UnknownNameError
        A policy, setting, metric or engine has an unknown name.
    InputError
        The scheduler does not support this machine, or the compiled engine does not support this run.
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
    chosen: Scheduler
    if scheduler is None:
        chosen = list_scheduler(order, backfill, placement, scope, machine)
    else:
        chosen = read_scheduler(scheduler) if isinstance(scheduler, str | Path) else scheduler
    model = _model(model) if model is not None else default_model(machine, seed)
    promises = check_order_contract(workload, machine, chosen)
    result = engines.simulate(
        workload,
        machine,
        chosen,
        model=model,
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
