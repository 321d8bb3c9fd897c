"""Run one simulation with the fastest engine that supports it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.progress import LONG_S, Meter, Obstacle, ProgressListener
from poolwise.engines.select import find_engine
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.interfaces.user_class import rule_of
from poolwise.loop import Observer, run_loop
from poolwise.model import Initial, Machine, Schedule, Workload
from poolwise.model.exclusive import exclusive_nodes
from poolwise.model.licenses import license_requests
from poolwise.model.task_graph import PREDECESSORS
from poolwise.performance.ideal import Ideal
from poolwise.platforms.closed_loop import ClosedLoop
from poolwise.platforms.dependent_tasks import DependentTasks
from poolwise.platforms.failures import draw_failures
from poolwise.platforms.memory_usage import MemoryUsageMachine
from poolwise.platforms.simulated import Disturbance, Simulation
from poolwise.quantities import format_time

Engine = Literal["auto", "reference", "compiled"]


@dataclass(frozen=True)
class Result:
    """Schedule, the engine that produced it, and the duration of the simulation alone (without reading and compiling).

    Attributes
    ----------
    schedule : the schedule
    engine : "compiled" or "reference"
    wall_s : duration of the simulation, seconds
    obstacle : why no kernel supported the run, if `simulate` chose the engine; None if one did
    """

    schedule: Schedule
    engine: str
    wall_s: float
    obstacle: Obstacle | None = None

    def notes(self) -> tuple[str, ...]:
        """Return notes on the engine of a long run: why it was slow, and how to make it faster."""
        if self.obstacle is None or self.wall_s < LONG_S:
            return ()
        return (f"the reference engine ran this, in {format_time(self.wall_s)}: {self.obstacle}",)


def simulate(
    workload: Workload,
    machine: Machine,
    scheduler: Scheduler,
    *,
    model: PerformanceModel | None = None,
    estimate: PerformanceModel | None = None,
    seed: int = 0,
    engine: Engine = "auto",
    disturbances: Sequence[Disturbance] = (),
    requeue: bool = True,
    pass_per_event: bool = False,
    observer: Observer | None = None,
    watch: ProgressListener | None = None,
    initial: Initial | None = None,
) -> Result:
    """Run a workload on a machine under a scheduler.

    Parameters
    ----------
    workload, machine, scheduler
        The jobs, the machine, and the scheduler that starts them.
    model, estimate
        Performance models of the true runtimes and of the scheduler's estimates (`model` if not given).
    seed
        Random seed.
    engine
        "reference" is the readable simulator that supports any scheduler. "compiled" replays list scheduling and task
        dispatch in kernels, with the same result. "auto" uses kernels if they support the run.
    disturbances, requeue, pass_per_event, observer
        See `Simulation` and `loop.run_loop`. Failures of the machine are added to `disturbances` and set `requeue`.
    watch
        Receives the progress of the run.
    initial
        Initial runs, and the time of this state; these runs come first in the schedule.

    Returns
    -------
    Result
        The schedule, the engine and the duration of the simulation.

    Raises
    ------
    InputError
        If the machine, the workload and the scheduler do not fit together, or if no kernel supports the run and `engine` is
        "compiled".
    PolicyError
        If the scheduler makes an invalid decision.
    """
    model = model if model is not None else Ideal()
    for part in (scheduler, model, estimate):
        if part is not None:
            part.check(machine, workload.table)
    _check_restrictions(workload, machine, scheduler)
    if initial is not None:
        _check_initial(workload, machine, scheduler)
    alone = exclusive_nodes(workload, machine, initial)
    if alone is not None:
        workload, machine, initial = alone.workload, alone.machine, alone.initial
    if machine.failures is not None:
        machine, failing, requeue = draw_failures(workload, machine, seed)
        disturbances = (*disturbances, *failing)
    if engine not in get_args(Engine):
        raise UnknownNameError.of("engine", engine, get_args(Engine), field="engine")
    obstacle: Obstacle | None = None
    if engine != "reference":
        believed = estimate if estimate is not None else model
        spec = RunSpec(
            workload, machine, scheduler, model, believed, seed, disturbances, requeue, pass_per_event, observer, watch, initial
        )
        compiled, obstacle = find_engine(spec)
        if compiled is not None:
            schedule, wall = compiled.replay(spec)
            return Result(schedule if alone is None else alone.schedule(schedule), "compiled", wall)
        if engine == "compiled":
            raise InputError(f"no kernel runs this: {obstacle}", field="engine", remedy='use the engine "reference" or "auto"')
    simulation = platform_of(workload)(
        workload,
        machine,
        model,
        estimate,
        disturbances=disturbances,
        requeue=requeue,
        pass_per_event=pass_per_event,
        initial=initial,
    )
    if watch is not None:
        watch.begin(obstacle)
        observer = Meter(watch, len(workload), observer)
    begun = time.perf_counter()
    loop = run_loop(simulation, scheduler, seed, observer=observer)
    wall = time.perf_counter() - begun
    schedule = simulation.schedule(workload, machine, loop)
    return Result(schedule if alone is None else alone.schedule(schedule), "reference", wall, obstacle)


def platform_of(workload: Workload) -> type[Simulation]:
    """Return the simulation class that a workload needs; raise InputError if it needs two, or if its task graph is invalid."""
    needs = {
        "memory_use": (workload.memory_use is not None, MemoryUsageMachine),
        "closed_loop": (workload.closed_loop, ClosedLoop),
        PREDECESSORS: (workload.task_graph is not None, DependentTasks),
    }
    named = {name: kind for name, (needed, kind) in needs.items() if needed}
    if len(named) > 1:
        first, second, *_ = named
        problem = f"{first} cannot be combined with {second}"
        raise InputError(problem, field=first, remedy=f"remove {first} or {second}")
    return next(iter(named.values()), Simulation)


def _check_restrictions(workload: Workload, machine: Machine, scheduler: Scheduler) -> None:
    """Raise InputError if the machine has licenses, partitions or other restrictions that the scheduler does not enforce."""
    if machine.restricted and not scheduler.supports_partitions:
        raise InputError(
            f"machine '{machine.name}' restricts which nodes jobs may use, which {type(scheduler).__name__} does not enforce",
            field="scheduler",
            remedy="use list scheduling by nodes or racks, or a machine without partitions, features, limits and windows",
        )
    if (licenses := license_requests(machine, workload.table)) and not scheduler.supports_partitions:
        raise InputError(
            f"jobs request licenses ({', '.join(licenses)}), which {type(scheduler).__name__} does not enforce",
            field="scheduler",
            remedy="use list scheduling by nodes or racks, or a machine without licenses",
        )


def _check_initial(workload: Workload, machine: Machine, scheduler: Scheduler) -> None:
    """Raise InputError for settings that cannot be combined with an initial state."""
    rule = rule_of(scheduler)
    if machine.failures is not None:
        raise InputError(
            "failures cannot be combined with an initial state", field="failures", remedy="remove [failures] from the machine"
        )
    if workload.closed_loop:
        raise InputError(
            "a closed loop cannot be combined with an initial state", field="closed_loop", remedy="remove closed_loop"
        )
    if workload.task_graph is not None:
        problem = "predecessors cannot be combined with an initial state"
        raise InputError(problem, field=PREDECESSORS, remedy="remove the column predecessors")
    if rule is not None and rule.warm_up:
        raise InputError("a warm-up cannot be combined with an initial state", field="scheduler", remedy="remove the warm-up")
