"""The compiled family of task dispatch: tasks on idle units under policies of tiers, with the reference's result.

`unsupported` says what it cannot run; it turns the study into arrays (`columns`), lets the kernels replay them, and turns the
record back into a `Schedule`, byte for byte that of `engines.simulate` with the reference engine.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import Parts, foreign, interrupted
from poolwise.engines.dispatch.columns import arrays
from poolwise.engines.dispatch.star import StarNetwork
from poolwise.engines.progress import Obstacle
from poolwise.interfaces import PerformanceModel, QueuePolicy
from poolwise.model import Kind, Machine, MachineBuilder, Outcome, Schedule, Workload
from poolwise.model.snapshot import model_parts
from poolwise.performance.affinity import Affinity
from poolwise.performance.ideal import Ideal
from poolwise.performance.transfer import Transfer, places
from poolwise.platforms.simulated import too_late
from poolwise.policies.placement.units.high import High
from poolwise.policies.placement.units.layout import UnitLayout
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.task_queues import keeps_arrivals

FOLDER = "dispatch"
"""Folder of the kernels."""


def unsupported(parts: Parts) -> Obstacle | None:
    """Say why there is no kernel for a run; None if there is one. What the scheduler believes does not matter here.

    A subclass of the scheduler or of a model is not taken for it: it may do something else. Any order will do under which
    tasks come as they arrive.
    """
    if type(parts.scheduler) is not Dispatch:
        return foreign(parts.scheduler)
    if obstacle := interrupted(parts):
        return obstacle
    why = _why(parts, parts.scheduler)
    return (
        Obstacle(why, "high, low and flat placement in order of arrival have, with models affinity and transfer")
        if why
        else None
    )


def _why(parts: Parts, scheduler: Dispatch) -> str:
    """Say why there is no kernel for tasks under a dispatcher; empty if there is one."""
    if parts.pass_per_event:
        return "a pass after each event"
    policy = scheduler.placement
    if not isinstance(policy, TieredPolicy) or type(policy).choose is not TieredPolicy.choose:
        return f"placement {type(policy).__name__} has no kernel"
    if not len(parts.workload):
        return "the workload is empty"
    return (
        _unknown(parts.truth)
        or _unsuitable(parts.machine, parts.workload)
        or _no_distances(parts.machine, parts.workload, parts.truth)
        or _out_of_turn(parts.machine, parts.workload, scheduler.order)
    )


def _unknown(truth: PerformanceModel) -> str:
    """Say why the kernels cannot count with a performance model; empty if they can."""
    models = model_parts(truth)
    for kind in {type(model) for model in models} - {Affinity, Transfer}:
        return f"performance model {kind.__name__} has no kernel"
    return "a performance model counts twice" if len({type(model) for model in models}) < len(models) else ""


def _unsuitable(machine: Machine, workload: Workload) -> str:
    """Say what in a study the kernels cannot count with; empty if nothing."""
    if int(machine.capacity[machine.kind == Kind.NODE, UnitLayout.of(machine).column].max()) > 1:
        return "a unit has several slots"
    return ""


def _out_of_turn(machine: Machine, workload: Workload, order: QueuePolicy) -> str:
    """Say why an order is not that of arrival, the only one that the kernels know; empty if it is."""
    why = f"order {type(order).__name__} has no kernel: it is not that of arrival"
    return "" if order.kind == "static" and keeps_arrivals(order, machine, workload.table) else why


def _no_distances(machine: Machine, workload: Workload, truth: PerformanceModel) -> str:
    """Say why transfers do not depend on place, rack and beyond alone; empty if they do."""
    if not any(isinstance(model, Transfer) for model in model_parts(truth)):
        return ""
    size = workload.attributes.get("data_size")
    if size is None or not bool(size.astype(np.int64).any()):
        return ""
    if StarNetwork.of(machine) is None:
        return "the network is not one of equal ports and equal uplinks"
    known = places(machine)
    travels = np.flatnonzero(size.astype(np.int64) > 0)
    data = np.stack([workload.attributes["data_x"][travels], workload.attributes["data_y"][travels]], axis=1).astype(np.int64)
    if any((x, y) not in known for x, y in np.unique(data, axis=0).tolist()):
        return "data lie where nothing is on the network"
    return ""


def replay(parts: Parts) -> tuple[Schedule, float]:
    """Run what `unsupported` has no objection to; returns the schedule and the seconds without compiling or loading.

    Raises InputError as the reference does for tasks that nothing may run, and for a run beyond 290 years.
    """
    load()
    begun = time.perf_counter()
    schedule = _replay(parts)
    return schedule, time.perf_counter() - begun


def _replay(parts: Parts) -> Schedule:
    from poolwise.kernels.dispatch import state
    from poolwise.kernels.dispatch.replay import replay as go_on

    machine, workload, scheduler = parts.machine, parts.workload, parts.scheduler
    assert isinstance(scheduler, Dispatch)
    scheduler.check(machine, workload.table)  # refuses what nothing may run
    given = arrays(machine, workload, scheduler, parts.truth, parts.seed)
    if go_on(*given) == state.LATE:
        raise too_late()
    layout, runs, count = UnitLayout.of(machine), given.runs, len(given.runs.job)
    return Schedule(
        machine=machine,
        workload=workload,
        job=runs.job,
        start=runs.start,
        end=runs.end,
        tasks=np.ones(count, dtype=np.int64),
        outcome=(Outcome.FINISHED,) * count,
        offset=np.arange(count + 1),
        owner=layout.owner[runs.unit],
        resource=np.full(count, layout.column),
        amount=np.ones(count, dtype=np.int64),
        rejected={},
        waiting=(),
        passes=int(given.now[state.PASSES]),
        refused={},
    )


@cache
def load() -> None:
    """Load the kernels, compiling them where this has not been done before on this computer; says so in the log."""
    one = np.ones(1, dtype=np.int64)
    build = MachineBuilder("one unit")
    build.node("unit", type="unit", slots=1)
    unit = Machine.of(build)
    task = Parts(unit, Workload.of(one, one), Dispatch(High()), Ideal(), Ideal())  # reaches all kernels
    compiled_engine.load(FOLDER, "all", "dispatch", "a few seconds", lambda: _replay(task))
