"""What a family of compiled runs is: a kind of scheduling that kernels replay with the reference's result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from poolwise.arrays import IntArray
from poolwise.engines.compile_lock import sole_compiler
from poolwise.engines.progress import Obstacle, Watch
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.loop import Observer
from poolwise.model import Initial, Machine, Schedule, Workload
from poolwise.model.eligibility import NO_PARTITION, has_tiers, taking_partitions
from poolwise.platforms.simulated import Disturbance

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Parts:
    """Everything that one run is made of; what it may leave out has the defaults of `simulate`."""

    machine: Machine
    workload: Workload
    scheduler: Scheduler
    truth: PerformanceModel
    estimate: PerformanceModel
    seed: int = 0
    disturbances: Sequence[Disturbance] = ()
    requeue: bool = True
    pass_per_event: bool = False
    observer: Observer | None = None
    watch: Watch | None = None
    initial: Initial | None = None


class Sampler(Protocol):
    """Replays versions of a run that goes on from others: the same jobs, which last and come otherwise."""

    def starts(self, workload: Workload) -> IntArray:
        """(k,) ns at which the sought jobs start, `NEVER` for those that have not started when nothing more is replayed.

        The workload differs from the run's in durations and submissions alone, row by row.
        """
        ...


@dataclass(frozen=True)
class CompiledEngine:
    """A family of compiled runs.

    Attributes
    ----------
    name : what messages call it
    unsupported : says why there is no kernel for a run (`foreign` if its scheduler is none of this family); None if there is
    replay : runs what `unsupported` has no objection to; returns the schedule and the seconds without compiling or loading
    sampler : makes what replays many versions of a run that goes on from others, for what `unsupported` has no objection to;
        None for a family that has none
    load : loads the kernels, compiling them where this has not been done before on this computer; says so in the log
    """

    name: str
    unsupported: Callable[[Parts], Obstacle | None]
    replay: Callable[[Parts], tuple[Schedule, float]]
    load: Callable[[], None]
    sampler: Callable[[Parts, IntArray, int], Sampler] | None = None


def foreign(scheduler: Scheduler) -> Obstacle:
    """Say that a family knows nothing of a scheduler."""
    return Obstacle(f"scheduler {type(scheduler).__name__} has no kernel", "list scheduling and task dispatch have")


def interrupted(parts: Parts, *, follows: bool = False, changes: bool = False) -> Obstacle | None:
    """Say what no kernel can do for a run, whatever its scheduler; None if nothing.

    A family that `follows` what happens to nodes and who may use them says itself what of that it cannot, and so does one
    that knows `changes` of capacity alone.
    """
    if len(parts.disturbances) and not (follows or changes):
        return Obstacle("capacity changes during the run", "without disturbances it runs in kernels")
    if parts.workload.closed_loop:
        return Obstacle("submissions follow from the schedule", "without a closed loop it runs in kernels")
    if parts.workload.memory_use is not None:
        return Obstacle("the memory that jobs use changes", "without memory_use it runs in kernels")
    if (restricted := _restricted(parts, follows)) is not None:
        return restricted
    if parts.observer is not None:
        return Obstacle("an observer wants to see each pass", "without an observer it runs in kernels")
    return None


def _restricted(parts: Parts, follows: bool) -> Obstacle | None:
    """Say what a machine allows and forbids that no kernel knows of; None if nothing."""
    machine, table = parts.machine, parts.workload.table
    if any(qos.per_user or qos.total or not follows for qos in machine.qos):
        return Obstacle("QOS have limits", "without [[qos]] it runs in kernels")
    if follows:
        return None
    if machine.windows:
        return Obstacle("windows are kept free", "without windows it runs in kernels")
    if machine.node_sets and "nodes" in machine.resources:
        return Obstacle("jobs may use some of the racks only", "nodes that jobs share have kernels for that")
    if has_tiers(machine):
        return Obstacle("jobs are of different tiers", "with partitions of one tier it runs in kernels")
    if machine.partitions and bool((taking_partitions(machine, table, slice(0, len(table))) == NO_PARTITION).any()):
        return Obstacle("a job is beyond the limits of its partitions", "without that job it runs in kernels")
    return None


def load(folder: str, kind: str, name: str, about: str, smallest: Callable[[], object]) -> None:
    """Load kernels of one kind in a folder by a smallest run that reaches them; says in the log if they must be compiled.

    One process compiles them: another that needs them at the same time waits until it has.
    """
    from poolwise.kernels.jit import is_compiled, mark_compiled

    if is_compiled(folder, kind):
        smallest()
        return
    with sole_compiler(folder, kind, lambda: log.warning("waiting for kernels (%s) that another process compiles", name)):
        known, begun = is_compiled(folder, kind), time.perf_counter()
        if not known:
            log.warning("compiling kernels (%s), once for this version on this computer: %s", name, about)
        smallest()
        if not known:
            mark_compiled(folder, kind)
            log.warning("kernels compiled in %.0f s", time.perf_counter() - begun)
