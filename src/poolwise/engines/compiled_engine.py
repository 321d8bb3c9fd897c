"""Compiled engines: kinds of scheduling that kernels replay with the same result as the reference engine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from poolwise.arrays import IntArray
from poolwise.engines.compile_lock import compile_lock
from poolwise.engines.progress import Obstacle, ProgressListener
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.interfaces.user_class import statement_holds
from poolwise.loop import Observer
from poolwise.model import Initial, Machine, Schedule, Workload
from poolwise.model.eligibility import NO_PARTITION, has_tiers, taking_partitions
from poolwise.model.licenses import license_requests
from poolwise.platforms.simulated import Disturbance

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class RunSpec:
    """Specification of one run, with the defaults of `simulate`."""

    workload: Workload
    machine: Machine
    scheduler: Scheduler
    model: PerformanceModel
    estimate: PerformanceModel
    seed: int = 0
    disturbances: Sequence[Disturbance] = ()
    requeue: bool = True
    pass_per_event: bool = False
    observer: Observer | None = None
    watch: ProgressListener | None = None
    initial: Initial | None = None


class Sampler(Protocol):
    """Replays variants of a run from an initial state: the same jobs with other durations and submit times."""

    def starts(self, workload: Workload) -> IntArray:
        """Return the start times (ns) of the awaited jobs, (k,), `NEVER` for those that have not started when the replay stops.

        The workload may differ from that of the run only in the durations and submit times of its rows.
        """
        ...


@dataclass(frozen=True)
class CompiledEngine:
    """A compiled engine.

    Attributes
    ----------
    name : name in messages
    unsupported : returns why the engine does not support a run (`foreign` for a scheduler of another engine); None if it does
    replay : replays a supported run; returns the schedule, and the elapsed seconds without compiling and loading
    load : loads the kernels that runs like the given one may need; kernels that are not cached on this computer are compiled,
        which is logged
    sampler : creates a sampler of variants of a supported run with an initial state; None if the engine has none
    """

    name: str
    unsupported: Callable[[RunSpec], Obstacle | None]
    replay: Callable[[RunSpec], tuple[Schedule, float]]
    load: Callable[[RunSpec], None]
    sampler: Callable[[RunSpec, IntArray, int], Sampler] | None = None


def no_engine_for(scheduler: Scheduler) -> Obstacle:
    """Return the obstacle to report for a scheduler that an engine does not implement."""
    if statement_holds(type(scheduler), "preempts") and scheduler.preempts:
        return Obstacle("the scheduler preempts running jobs", "supported without preemption")
    return Obstacle(
        f"scheduler {type(scheduler).__name__} has no kernel",
        "list scheduling, task dispatch and composed devices have kernels",
    )


def unsupported_by_all(
    spec: RunSpec,
    *,
    follows: bool = False,
    changes: bool = False,
    restricted: bool = False,
    dependent: bool = False,
    counts: bool = False,
) -> Obstacle | None:
    """Return the feature of a run that no kernel supports, regardless of its scheduler; None if there is none.

    The flags state what an engine supports. With `follows`, it supports node outages and access restrictions and checks them
    itself; with `changes`, it does so for changes of capacity only. With `restricted`, it runs jobs on node sets, but without
    windows, tiers and QOS. With `dependent`, it runs task graphs. With `counts`, it checks limits of licenses and QOS itself.
    """
    if len(spec.disturbances) and not (follows or changes):
        return Obstacle("capacity changes during the run", "supported without disturbances")
    if spec.workload.closed_loop:
        return Obstacle("jobs are submitted in a closed loop", "supported without closed_loop")
    if spec.workload.task_graph is not None and not dependent:
        return Obstacle("jobs wait for others (predecessors)", "supported by task dispatch, and without predecessors")
    if spec.workload.memory_use is not None:
        return Obstacle("the memory use of jobs varies over time", "supported without memory_use")
    if not counts and (limit := limit_of_use(spec)) is not None:
        return limit
    if (restriction := _unsupported_restriction(spec, follows, restricted)) is not None:
        return restriction
    if spec.observer is not None:
        return Obstacle("an observer is called after each pass", "supported without an observer")
    return None


def limit_of_use(spec: RunSpec) -> Obstacle | None:
    """Return the limits of concurrent use that apply to a run (QOS, associations or licenses), as an obstacle; None if none."""
    how = "on shared nodes without conservative backfilling, memory pools or failing nodes"
    if any(qos.per_user or qos.total for qos in spec.machine.qos):
        return Obstacle("QOS limits apply", f"supported without per_user and total of [[qos]], or {how}")
    if any(each.per_user or each.total for each in spec.machine.associations):
        return Obstacle("limits of associations apply", f"supported without per_user and total of [[association]], or {how}")
    if licenses := license_requests(spec.machine, spec.workload.table):
        return Obstacle(f"jobs request licenses ({', '.join(licenses)})", f"supported without [licenses], or {how}")
    return None


def _unsupported_restriction(spec: RunSpec, follows: bool, restricted: bool) -> Obstacle | None:
    """Return the access restriction of a machine that no kernel supports; None if there is none."""
    machine, table = spec.machine, spec.workload.table
    if follows:
        return None
    if machine.qos:
        return Obstacle("QOS limits apply", "supported on shared nodes, and without [[qos]]")
    if machine.associations:
        return Obstacle("limits of associations apply", "supported on shared nodes, and without [[association]]")
    if machine.windows:
        return Obstacle("the machine has reserved windows", "supported without windows")
    if has_tiers(machine):
        return Obstacle("partitions have different priority tiers", "supported with partitions of one tier")
    if restricted:
        return None
    if machine.node_sets and "nodes" in machine.resources:
        return Obstacle("node sets restrict jobs to some racks", "supported on shared nodes")
    if machine.partitions and bool((taking_partitions(machine, table, slice(0, len(table))) == NO_PARTITION).any()):
        return Obstacle("a job exceeds the limits of its partitions", "supported without that job")
    return None


def load(folder: str, kind: str, name: str, about_s: float, smallest: Callable[[], object]) -> None:
    """Load kernels of one kind by a minimal run that reaches them; log a warning if they must be compiled.

    Only one process compiles them; others that need them at the same time wait for it. `about_s` is the time that compiling
    takes on the reference computer (s); the warning scales it by the measured speed of this computer.
    """
    from poolwise.kernels.jit import is_compiled, mark_compiled

    if is_compiled(folder, kind):
        smallest()
        return
    with compile_lock(folder, kind, lambda: log.warning("waiting for another process to compile kernels (%s)", name)):
        cached, begun = is_compiled(folder, kind), time.perf_counter()
        if not cached:
            log.warning(
                "compiling kernels (%s), once for this version on this computer: takes about %.0f s", name, about_s * slowness()
            )
        smallest()
        if not cached:
            mark_compiled(folder, kind)
            log.warning("kernels compiled in %.0f s", time.perf_counter() - begun)


REFERENCE_LOOP_S = 0.008
"""Seconds that the loop in `slowness` takes on the reference computer."""


@cache
def slowness() -> float:
    """Run a fixed loop three times; return the shortest time as a multiple of that on the reference computer."""
    times = []
    for _ in range(3):
        begun, total = time.perf_counter(), 0
        for k in range(200_000):
            total += k & 7
        times.append(time.perf_counter() - begun)
    return min(times) / REFERENCE_LOOP_S
