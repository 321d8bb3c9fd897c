"""What a family of compiled runs is: a kind of scheduling that kernels replay with the reference's result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.loop import Observer
from poolwise.model import Machine, Schedule, Workload
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


@dataclass(frozen=True)
class Family:
    """A family of compiled runs.

    Attributes
    ----------
    name : what messages call it
    unsupported : says why there is no kernel for a run (`foreign` if its scheduler is none of this family); empty if there is
    replay : runs what `unsupported` has no objection to; returns the schedule and the seconds without compiling or loading
    load : loads the kernels, compiling them where this has not been done before on this computer; says so in the log
    """

    name: str
    unsupported: Callable[[Parts], str]
    replay: Callable[[Parts], tuple[Schedule, float]]
    load: Callable[[], None]


def foreign(scheduler: Scheduler) -> str:
    """Say that a family knows nothing of a scheduler."""
    return f"scheduler {type(scheduler).__name__} has no kernel"


def interrupted(parts: Parts) -> str:
    """Say what no kernel can do for a run, whatever its scheduler; empty if nothing."""
    if len(parts.disturbances):
        return "capacity changes during the run"
    if why := _restricted(parts):
        return why
    if parts.observer is not None:
        return "an observer wants to see each pass"
    return ""


def _restricted(parts: Parts) -> str:
    """Say what a machine allows and forbids that no kernel knows of; empty if nothing."""
    machine, table = parts.machine, parts.workload.table
    if machine.windows:
        return "windows are kept free"
    if machine.qos:
        return "QOS have limits"
    if machine.node_sets and "nodes" in machine.resources:
        return "jobs may use some of the racks only"
    if has_tiers(machine):
        return "partitions have different tiers"
    if machine.partitions and bool((taking_partitions(machine, table, slice(0, len(table))) == NO_PARTITION).any()):
        return "a job is beyond the limits of its partitions"
    return ""


def load(folder: str, name: str, about: str, smallest: Callable[[], object]) -> None:
    """Load the kernels of a folder by a smallest run that reaches all of them; says in the log if they must be compiled.

    One process does this before others start; two that compile at once do no harm.
    """
    from poolwise.kernels.jit import is_compiled, mark_compiled

    known, begun = is_compiled(folder), time.perf_counter()
    if not known:
        log.warning("compiling the %s kernels, once for this version on this computer: %s", name, about)
    smallest()
    if not known:
        mark_compiled(folder)
        log.warning("kernels compiled in %.0f s", time.perf_counter() - begun)
