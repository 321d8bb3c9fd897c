"""One run from its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from poolwise.engines.families import family_of
from poolwise.engines.family import Parts
from poolwise.errors import InputError, UnknownNameError
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.loop import Observer, run_loop
from poolwise.model import Machine, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Disturbance, Simulation

Engine = Literal["auto", "reference", "compiled"]


@dataclass(frozen=True)
class Result:
    """A schedule, the engine that made it, and the seconds the simulation alone took (no reading, no compiling)."""

    schedule: Schedule
    engine: str
    wall_s: float


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
        See `Simulation` and `loop.run_loop`.
    """
    truth = truth if truth is not None else Ideal()
    for part in (scheduler, truth, estimate):
        if part is not None:
            part.check(machine, workload.table)
    if machine.restricted and not scheduler.knows_restrictions:
        raise InputError(
            f"machine '{machine.name}' says which jobs may use which nodes, and {type(scheduler).__name__} does not keep to it",
            field="scheduler",
            remedy="choose list scheduling that places by nodes or racks, or a machine without partitions, features and windows",
        )
    if engine not in get_args(Engine):
        raise UnknownNameError.of("engine", engine, get_args(Engine), field="engine")
    if engine != "reference":
        believed = estimate if estimate is not None else truth
        parts = Parts(machine, workload, scheduler, truth, believed, seed, disturbances, requeue, pass_per_event, observer)
        family, why = family_of(parts)
        if family is not None:
            schedule, wall = family.replay(parts)
            return Result(schedule, "compiled", wall)
        if engine == "compiled":
            raise InputError(f"no kernel runs this: {why}", field="engine", remedy='take the engine "reference" or "auto"')
    simulation = Simulation(
        machine,
        workload,
        truth,
        estimate,
        disturbances=disturbances,
        requeue=requeue,
        pass_per_event=pass_per_event,
    )
    begun = time.perf_counter()
    loop = run_loop(simulation, scheduler, seed, observer=observer)
    wall = time.perf_counter() - begun
    return Result(simulation.recorder.schedule(machine, workload, loop), "reference", wall)
