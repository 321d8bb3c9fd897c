"""One run from its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from poolwise.engines.compiled_engine import Parts
from poolwise.engines.progress import LONG_S, Meter, Obstacle, Watch
from poolwise.engines.select import family_of
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import PerformanceModel, Scheduler, rule_of
from poolwise.loop import Observer, run_loop
from poolwise.model import Initial, Machine, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.closed_loop import ClosedLoop
from poolwise.platforms.failures import trouble_of
from poolwise.platforms.memory_usage import MemoryUsageMachine
from poolwise.platforms.simulated import Disturbance, Simulation
from poolwise.units import format_time

Engine = Literal["auto", "reference", "compiled"]


@dataclass(frozen=True)
class Result:
    """A schedule, the engine that made it, and the seconds the simulation alone took (no reading, no compiling).

    Attributes
    ----------
    obstacle : why no kernel made it, where the choice was left to `simulate`; None where one did
    """

    schedule: Schedule
    engine: str
    wall_s: float
    obstacle: Obstacle | None = None

    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the engine: why it took so long, and what would have been faster."""
        if self.obstacle is None or self.wall_s < LONG_S:
            return ()
        return (f"the reference engine ran this, in {format_time(self.wall_s)}: {self.obstacle}",)


def simulate(
    machine: Machine,
    workload: Workload,
    scheduler: Scheduler,
    *,
    truth: PerformanceModel | None = None,
    estimate: PerformanceModel | None = None,
    seed: int = 0,
    engine: Engine = "auto",
    disturbances: Sequence[Disturbance] = (),
    requeue: bool = True,
    pass_per_event: bool = False,
    observer: Observer | None = None,
    watch: Watch | None = None,
    initial: Initial | None = None,
) -> Result:
    """Run a workload on a machine under a scheduler.

    Parameters
    ----------
    truth, estimate
        How long runs take, and what the scheduler believes (the truth if not given).
    engine
        "reference" is the readable simulator that takes any scheduler; "compiled" replays list scheduling on racks and task
        dispatch in kernels, with the same result, and raises InputError where it cannot; "auto" takes the fastest that can.
    disturbances, requeue, pass_per_event, observer
        See `Simulation` and `loop.run_loop`. What the machine says of its failures comes on top, and decides on `requeue`.
    watch
        Is told how far the run is.
    initial
        What runs already when it begins, and when that is; the schedule has these runs first.
    """
    truth = truth if truth is not None else Ideal()
    for part in (scheduler, truth, estimate):
        if part is not None:
            part.check(machine, workload.table)
    _check_restrictions(machine, scheduler)
    if initial is not None:
        _check_initial(machine, workload, scheduler)
    if machine.failures is not None:
        machine, failing, requeue = trouble_of(machine, workload, seed)
        disturbances = (*disturbances, *failing)
    if engine not in get_args(Engine):
        raise UnknownNameError.of("engine", engine, get_args(Engine), field="engine")
    obstacle: Obstacle | None = None
    if engine != "reference":
        believed = estimate if estimate is not None else truth
        parts = Parts(
            machine, workload, scheduler, truth, believed, seed, disturbances, requeue, pass_per_event, observer, watch, initial
        )
        family, obstacle = family_of(parts)
        if family is not None:
            schedule, wall = family.replay(parts)
            return Result(schedule, "compiled", wall)
        if engine == "compiled":
            raise InputError(f"no kernel runs this: {obstacle}", field="engine", remedy='take the engine "reference" or "auto"')
    simulation = platform_of(workload)(
        machine,
        workload,
        truth,
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
    return Result(simulation.schedule(machine, workload, loop), "reference", wall, obstacle)


def platform_of(workload: Workload) -> type[Simulation]:
    """Kind of simulated machine that a workload needs; raises InputError where it needs two."""
    if workload.memory_use is None:
        return ClosedLoop if workload.closed_loop else Simulation
    if workload.closed_loop:
        problem = "a closed loop of jobs that say what memory they use is not simulated"
        raise InputError(problem, field="memory_use", remedy="leave memory_use or closed_loop out")
    return MemoryUsageMachine


def _check_restrictions(machine: Machine, scheduler: Scheduler) -> None:
    """Raise InputError for a scheduler that would not keep to what the machine says about partitions and the like."""
    if machine.restricted and not scheduler.knows_restrictions:
        raise InputError(
            f"machine '{machine.name}' restricts which nodes jobs may use, and {type(scheduler).__name__} does not keep to it",
            field="scheduler",
            remedy="choose list scheduling by nodes or racks, or a machine without partitions, features, QOS and windows",
        )


def _check_initial(machine: Machine, workload: Workload, scheduler: Scheduler) -> None:
    """Raise InputError for what only a run from the beginning can have."""
    rule = rule_of(scheduler)
    if machine.failures is not None:
        raise InputError("what breaks is drawn from the beginning of a run", field="failures", remedy="leave [failures] out")
    if workload.closed_loop:
        raise InputError("a closed loop begins with its first job", field="closed_loop", remedy="leave it out")
    if rule is not None and rule.warm_up:
        raise InputError("a run that goes on from a state has no warm-up", field="scheduler", remedy="leave the warm-up out")
