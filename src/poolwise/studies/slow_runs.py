"""Runs of a study that no kernel supports: the reason, an estimate of their duration, and how to make them fast."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.progress import Obstacle
from poolwise.engines.select import find_engine
from poolwise.engines.simulate import simulate
from poolwise.errors import PoolwiseError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.hashing import canonical
from poolwise.model import Workload
from poolwise.platforms.failures import draw_failures
from poolwise.quantities import format_time
from poolwise.studies.cells import Cell, initial_of, workload_of
from poolwise.traces import excerpt

MANY = 1000
"""Number of jobs above which a run on the reference engine is reported in advance."""
MOST_KINDS = 64
"""Maximum number of different settings that are tested."""
SAMPLE_S = 1.0
"""Minimum seconds for which a sample of the first jobs must run to serve as a basis for an estimate."""


@dataclass(frozen=True)
class SlowRuns:
    """Runs that use the reference engine for one reason.

    Attributes
    ----------
    obstacle : why no kernel supports them, and what would change that
    runs, jobs : number of runs, and of jobs in the longest log
    seconds : low estimate of the duration of each run (s), from a sample of its first jobs
    """

    obstacle: Obstacle
    runs: int
    jobs: int
    seconds: float

    @property
    def text(self) -> str:
        """The reason, the estimated time and the remedy in one line."""
        runs = "1 run" if self.runs == 1 else f"{self.runs:,} runs"
        each = "" if self.runs == 1 else " each"
        return (
            f"the reference engine simulates {runs} of {self.jobs:,} jobs{each}, which takes at least about "
            f"{format_time(max(1, round(self.seconds)))}{each}: {self.obstacle}"
        )


def slow_runs(cells: Iterable[Cell]) -> list[SlowRuns]:
    """Return the runs of more than `MANY` jobs that no kernel supports, by obstacle.

    Cells that cannot run are skipped, since their run reports the problem.
    """
    kinds: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        settings = cell.scheduler.model_dump_json(), cell.performance.model_dump_json(), str(cell.memory_use)
        kinds.setdefault((canonical(cell.workload.content()), id(cell.machine), cell.warm_up, *settings), []).append(cell)
    by_obstacle: dict[Obstacle, list[tuple[Cell, int]]] = {}
    for alike in list(kinds.values())[:MOST_KINDS]:
        obstacle, jobs = _obstacle(alike[0])
        if obstacle is not None:
            by_obstacle.setdefault(obstacle, []).extend((cell, jobs) for cell in alike)
    return [_slow(obstacle, slow) for obstacle, slow in by_obstacle.items()]


def _slow(obstacle: Obstacle, runs: list[tuple[Cell, int]]) -> SlowRuns:
    longest, jobs = max(runs, key=lambda run: run[1])
    return SlowRuns(obstacle, len({cell.key for cell, _ in runs}), jobs, _estimated_seconds(longest))


def _obstacle(cell: Cell) -> tuple[Obstacle | None, int]:
    """Return why no kernel supports a cell, and its number of jobs; the reason is None for short or supported cells."""
    try:
        with warnings.catch_warnings(action="ignore"):  # the run warns
            workload = workload_of(cell)
            jobs = len(workload)
            return (find_engine(_spec(cell, workload))[1] if jobs > MANY else None), jobs
    except PoolwiseError:
        return None, 0


def _spec(cell: Cell, workload: Workload) -> RunSpec:
    model, estimate = models_of(cell.performance, cell.seed)
    believed = estimate if estimate is not None else model
    scheduler, initial = scheduler_of(cell.scheduler, cell.warm_up), initial_of(cell)
    spec = RunSpec(workload, cell.machine, scheduler, model, believed, cell.seed, initial=initial)
    spec = replace(spec, pass_per_event=cell.scheduler.pass_per_event)
    if cell.machine.failures is None:
        return spec
    machine, failing, requeue = draw_failures(workload, cell.machine, cell.seed)
    return replace(spec, machine=machine, disturbances=failing, requeue=requeue)


def _estimated_seconds(cell: Cell) -> float:
    """Return the seconds of a run on the reference engine, estimated from its first jobs.

    Passes take longer as the queue grows.
    """
    workload, scheduler = workload_of(cell), scheduler_of(cell.scheduler, 0)
    model, estimate = models_of(cell.performance, cell.seed)
    jobs, spent = min(50, len(workload)), list[tuple[int, float]]()
    while not spent or (spent[-1][1] < SAMPLE_S and jobs <= len(workload)):
        begun = time.perf_counter()
        try:
            with warnings.catch_warnings(action="ignore"):
                sample = excerpt(workload, 0, jobs)
                simulate(sample, cell.machine, scheduler, model=model, estimate=estimate, seed=cell.seed, engine="reference")
        except PoolwiseError:
            break
        spent.append((jobs, time.perf_counter() - begun))
        jobs *= 2
    return extrapolate(spent, len(workload))


def extrapolate(spent: list[tuple[int, float]], jobs: int) -> float:
    """Return the estimated seconds for a number of jobs, extrapolated from samples (jobs, seconds) that double in size."""
    if not spent:
        return 0.0
    exponent = 1.0
    if len(spent) > 1:
        (few, short), (more, long) = spent[-2:]
        exponent = min(2.0, max(1.0, math.log(long / short) / math.log(more / few)))
    return spent[-1][1] * float((jobs / spent[-1][0]) ** exponent)
