"""The compiled engine: replays list scheduling of rigid jobs on racks with memory pools, with the reference's result.

What it runs is said by `unsupported`; it turns the study into arrays (`engine.columns`), lets the kernels replay them, and
turns the record back into a `Schedule`, byte for byte that of `engine.simulated`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.list_scheduling.asking import Asker
from poolwise.engines.list_scheduling.columns import Columns, blank
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.loop import Observer
from poolwise.model import Machine, Outcome, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy, EasyNoExtra
from poolwise.policies.backfill.easy_nodes_only import EasyNodesOnly
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.units import SECOND

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import Runs

log = logging.getLogger(__name__)

BACKFILLS = (NoBackfill, Easy, EasyNoExtra, EasyNodesOnly, Conservative)
MODELS = (Ideal, RemoteMemory)
FAMILY = "list_scheduling"  # of kernels


def unsupported(
    machine: Machine,
    workload: Workload,
    scheduler: Scheduler,
    truth: PerformanceModel,
    estimate: PerformanceModel | None = None,
    *,
    disturbances: Sequence[Disturbance] = (),
    observer: Observer | None = None,
) -> str:
    """Say why there is no kernel for a run; empty if there is one.

    A subclass of a policy is not taken for it: it may do something else. Any queue order will do.
    """
    if len(disturbances):
        return "capacity changes during the run"
    if observer is not None:
        return "an observer wants to see each pass"
    if type(scheduler) is WarmUp:
        if not isinstance(scheduler.then, ListScheduler) or scheduler != WarmUp.before(scheduler.then, scheduler.jobs):
            return "the warm-up is not FCFS without backfilling before a list scheduler of the same placement"
        scheduler = scheduler.then
    if type(scheduler) is not ListScheduler:
        return f"scheduler {type(scheduler).__name__} is not a list scheduler"
    if type(scheduler.backfill) not in BACKFILLS:
        return f"backfill {type(scheduler.backfill).__name__} has no kernel"
    if type(scheduler.placement) is not RackPlacement:
        return f"placement {type(scheduler.placement).__name__} has no kernel"
    for model in (truth, estimate):
        if model is not None and type(model) not in MODELS:
            return f"performance model {type(model).__name__} has no kernel"
        if isinstance(model, RemoteMemory) and min(model.near_ns, model.far_ns) < 0:
            return "a latency is negative"
        if isinstance(model, RemoteMemory) and max(model.near_ns, model.far_ns) > 10_000:
            return "a latency is above 10 us"
    try:
        layout = machine.racks
    except InputError as problem:
        return problem.message
    if not len(layout.nodes):
        return "the machine has no whole nodes"
    return _unsuitable(workload)


def _unsuitable(workload: Workload) -> str:
    """Say what in the workload the kernels cannot count with; empty if nothing."""
    if not len(workload):
        return "the workload is empty"
    if int(workload.tasks.max()) > 1:
        return "a job has several tasks"
    work = np.maximum(workload.duration, workload.requested)
    if int(work.max()) > 2**53:
        return "a job is longer than float64 counts whole nanoseconds"
    if float(workload.nodes.max()) * float(workload.memory.max()) > 2.0**52:
        return "a job's memory leaves the range in which float64 counts whole MiB"
    return ""


def replay(
    machine: Machine,
    workload: Workload,
    scheduler: Scheduler,
    truth: PerformanceModel,
    estimate: PerformanceModel | None = None,
    *,
    pass_per_event: bool = False,
) -> tuple[Schedule, float]:
    """Run what `unsupported` has no objection to.

    Returns
    -------
    schedule
    wall_s
        Seconds without compiling or loading kernels.
    """
    load()
    begun = time.perf_counter()
    schedule = _replay(machine, workload, scheduler, truth, estimate if estimate is not None else truth, pass_per_event)
    return schedule, time.perf_counter() - begun


def _replay(
    machine: Machine,
    workload: Workload,
    scheduler: Scheduler,
    truth: PerformanceModel,
    estimate: PerformanceModel,
    pass_per_event: bool,
) -> Schedule:
    from poolwise.kernels.list_scheduling import state
    from poolwise.kernels.list_scheduling.index import lay_out
    from poolwise.kernels.list_scheduling.replay import replay as go_on

    warm_up = scheduler.jobs if isinstance(scheduler, WarmUp) else 0
    then = scheduler.then if isinstance(scheduler, WarmUp) else scheduler
    assert isinstance(then, ListScheduler)
    columns = Columns(machine, workload, then, truth, estimate)
    arrays = columns.arrays(warm_up, pass_per_event)
    asker = Asker(columns)
    while (wanted := go_on(*arrays)) != state.DONE:
        if wanted == state.ASK:
            asker.answer(arrays.order.key, arrays.queue, arrays.racks, arrays.runs, arrays.now)
        elif wanted == state.INSTANTS:
            arrays = arrays._replace(profile=columns.profile(2 * int(arrays.now[state.ROWS])))
        elif wanted == state.LATE:
            raise InputError("the simulation runs beyond 146 years, which engines cannot count in nanoseconds", field="submit")
        elif wanted == state.DEEP:
            jobs = arrays.jobs
            arrays = arrays._replace(tree=lay_out(jobs.nodes, jobs.remote, jobs.length, jobs.able))
        else:
            arrays = arrays._replace(runs=_enlarged(arrays.runs, arrays.now))
    return _schedule(columns, arrays.runs, arrays.queue.where, arrays.now)


@cache
def load() -> None:
    """Load the kernels, compiling them where this has not been done before on this computer; says so in the log.

    One process does this before others start; two that compile at once do no harm.
    """
    from poolwise.kernels.jit import is_compiled, mark_compiled

    known, begun = is_compiled(FAMILY), time.perf_counter()
    if not known:
        log.warning("compiling the simulation kernels, once for this version on this computer: about half a minute")
    second = np.full(2, SECOND, dtype=np.int64)
    _replay(Machine.flat(1), Workload.of(second, second), ListScheduler(), Ideal(), Ideal(), False)  # reaches all of them
    if not known:
        mark_compiled(FAMILY)
        log.warning("kernels compiled in %.0f s", time.perf_counter() - begun)


def _enlarged(runs: Runs, now: IntArray) -> Runs:
    """Return the record with room for the rows that it needs, and as many again as it had."""
    from poolwise.kernels.list_scheduling import state

    used, larger = int(runs.offset[now[state.STARTED]]), {}
    for name in ("owner", "resource", "amount"):
        larger[name] = blank(max(int(now[state.ROWS]), 2 * len(runs.owner)))  # of what is not written no memory is taken
        larger[name][:used] = getattr(runs, name)[:used]
    return runs._replace(**larger)


def _schedule(columns: Columns, runs: Runs, where: IntArray, now: IntArray) -> Schedule:
    """Say whose the record is and what was left over."""
    from poolwise.kernels.list_scheduling import state

    count = int(now[state.STARTED])
    rows = int(runs.offset[count])
    return Schedule(
        machine=columns.machine,
        workload=columns.workload,
        job=runs.job[:count],
        start=runs.start[:count],
        end=runs.end[:count],
        tasks=np.ones(count, dtype=np.int64),
        outcome=(Outcome.FINISHED,) * count,
        offset=runs.offset[: count + 1],
        owner=runs.owner[:rows],
        resource=runs.resource[:rows],
        amount=runs.amount[:rows],
        rejected=columns.refusals(runs.rejected[: int(now[state.REJECTED])]),
        waiting=tuple(np.flatnonzero(where >= 0).tolist()),
        passes=int(now[state.PASSES]),
        refused={},
    )
