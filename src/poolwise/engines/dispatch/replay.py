"""Compiled engine of task dispatch: tasks on idle units under tiered policies, with the result of the reference engine.

`unsupported` lists what the engine cannot run. The engine converts the run to arrays (`columns`), replays them in the kernel,
and converts the record to a `Schedule` that equals that of the reference engine byte for byte.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import RunSpec, no_engine_for, unsupported_by_all
from poolwise.engines.dispatch.columns import arrays, graph_arrays
from poolwise.engines.dispatch.star import StarNetwork
from poolwise.engines.progress import Obstacle
from poolwise.interfaces import PerformanceModel
from poolwise.kernels.dispatch.state import LATE, DispatchState
from poolwise.model import Kind, Machine, MachineBuilder, Outcome, Schedule, Workload
from poolwise.model.snapshot import model_parts
from poolwise.model.task_graph import PREDECESSORS
from poolwise.performance.affinity import Affinity
from poolwise.performance.ideal import Ideal
from poolwise.performance.transfer import Transfer, places
from poolwise.platforms.simulated import beyond_horizon
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.units.layout import UnitLayout
from poolwise.policies.placement.units.policies import High
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.task_queues import keeps_arrivals

FOLDER = "dispatch"
"""Folder of the kernel package."""


def unsupported(spec: RunSpec) -> Obstacle | None:
    """Return why the kernel does not support a run; None if it does. The scheduler's estimate does not matter here.

    Subclasses of the scheduler or of a model are not supported, because they may behave differently. Any order that keeps tasks
    in arrival order is supported. In a task graph, where tasks arrive when they become ready, only `fcfs` is supported.
    """
    if type(spec.scheduler) is not Dispatch:
        return no_engine_for(spec.scheduler)
    if obstacle := unsupported_by_all(spec, dependent=True):
        return obstacle
    why = _reason(spec, spec.scheduler)
    return (
        Obstacle(why, "supported: high, low and flat placement in arrival order, with models affinity and transfer")
        if why
        else None
    )


def _reason(spec: RunSpec, scheduler: Dispatch) -> str:
    """Return why the kernel does not support a run under a dispatcher; empty if it does."""
    machine, workload, policy, order = spec.machine, spec.workload, scheduler.placement, scheduler.order
    if spec.pass_per_event:
        return "pass_per_event is set"
    if not isinstance(policy, TieredPolicy) or type(policy).choose is not TieredPolicy.choose:
        return f"placement {type(policy).__name__} has no kernel"
    if not len(workload):
        return "the workload is empty"
    if why := _unsupported_model(spec.model):
        return why
    if int(machine.capacity[machine.kind == Kind.NODE, UnitLayout.of(machine).column].max()) > 1:
        return "a unit has several slots"
    if why := _unsupported_network(workload, machine, spec.model):
        return why
    if workload.task_graph is not None:
        return "" if type(order) is FCFS else f"order {type(order).__name__} has no kernel for task graphs"
    if order.kind != "static" or not keeps_arrivals(order, machine, workload.table):
        return f"order {type(order).__name__} has no kernel: it is not arrival order"
    return ""


def _unsupported_model(model: PerformanceModel) -> str:
    """Return why the kernel does not support a performance model; empty if it does."""
    models = model_parts(model)
    for kind in {type(part) for part in models} - {Affinity, Transfer}:
        return f"performance model {kind.__name__} has no kernel"
    return "a performance model is given twice" if len({type(part) for part in models}) < len(models) else ""


def _unsupported_network(workload: Workload, machine: Machine, model: PerformanceModel) -> str:
    """Return why transfer times depend on more than whether data leaves its position or rack; empty if they do not."""
    if not any(isinstance(part, Transfer) for part in model_parts(model)):
        return ""
    size = workload.attributes.get("data_size")
    if size is None or not bool(size.astype(np.int64).any()):
        return ""
    if StarNetwork.of(machine) is None:
        return "the network is not a star of equal ports and equal uplinks"
    positions = places(machine)
    travels = np.flatnonzero(size.astype(np.int64) > 0)
    data = np.stack([workload.attributes["data_x"][travels], workload.attributes["data_y"][travels]], axis=1).astype(np.int64)
    if any((x, y) not in positions for x, y in np.unique(data, axis=0).tolist()):
        return "the position of some data is not on the network"
    return ""


def replay(spec: RunSpec) -> tuple[Schedule, float]:
    """Replay a supported run; return the schedule, and the elapsed seconds without compiling and loading.

    Raises InputError as the reference engine does for tasks that no unit can run, and for a run beyond 290 years.
    """
    load_for(spec)
    begun = time.perf_counter()
    schedule = _replay(spec)
    return schedule, time.perf_counter() - begun


def _replay(spec: RunSpec) -> Schedule:
    machine, workload, scheduler = spec.machine, spec.workload, spec.scheduler
    assert isinstance(scheduler, Dispatch)
    scheduler.check(machine, workload.table)  # raises for tasks that no unit can run
    built = arrays(workload, machine, scheduler, spec.model, spec.seed)
    if _run_kernel(built, workload) == LATE:
        raise beyond_horizon()
    layout, runs, count = UnitLayout.of(machine), built.runs, len(built.runs.job)
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
        passes=int(built.now.passes),
        refused={},
    )


def _run_kernel(built: DispatchState, workload: Workload) -> int:
    """Run the kernel of independent tasks, or that of task graphs."""
    if workload.task_graph is None:
        from poolwise.kernels.dispatch.replay import replay as run_tasks

        return run_tasks(built)
    from poolwise.kernels.dispatch.task_graph import replay_graph

    return replay_graph(built, graph_arrays(workload, len(built.units.kind)))


@cache
def load() -> None:
    """Load the kernel of independent tasks; if it is not cached on this computer, compile it and log that."""
    ones = np.ones(1, dtype=np.int64)
    compiled_engine.load(FOLDER, "all", "dispatch", 2.0, lambda: _replay(_on_one_unit(Workload.of(ones, ones))))


@cache
def load_graph() -> None:
    """Load the kernel of task graphs, as `load` does."""
    two = np.ones(2, dtype=np.int64)
    pair = Workload.of(two, two, attributes={PREDECESSORS: ["", "1"]})
    compiled_engine.load(FOLDER, "graph", "dispatch of task graphs", 2.0, lambda: _replay(_on_one_unit(pair)))


def load_for(spec: RunSpec) -> None:
    """Load the kernel of a run."""
    load() if spec.workload.task_graph is None else load_graph()


def _on_one_unit(workload: Workload) -> RunSpec:
    """Return a minimal run, which reaches all steps of its kernel."""
    build = MachineBuilder("one unit")
    build.node("unit", type="unit", slots=1)
    unit = Machine.of(build)
    return RunSpec(workload, unit, Dispatch(High()), Ideal(), Ideal())
