"""The compiled family of list scheduling: rigid jobs on racks with memory pools, with the reference's result.

`unsupported` says what it cannot run; it turns the study into arrays (`columns`), lets the kernels replay them, and turns the
record back into a `Schedule`, byte for byte that of `engines.simulate` with the reference engine.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines import family
from poolwise.engines.family import Parts, foreign, interrupted
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.list_scheduling.asking import Asker
from poolwise.engines.list_scheduling.columns import RunColumns
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel, Scheduler, rule_of
from poolwise.model import Machine, Outcome, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.units import SECOND

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import RunArrays

MODELS = (Ideal, RemoteMemory)
FOLDER = "list_scheduling"
"""Folder of the kernels."""


def unsupported(parts: Parts) -> str:
    """Say why there is no kernel for a run; empty if there is one.

    A subclass of the scheduler, of the placement or of a model is not taken for it: it may do something else. Any queue
    order will do, and any backfill that states a rule.
    """
    scheduler = parts.scheduler
    then = _listed(scheduler)
    if then is None:
        return foreign(scheduler)
    if why := interrupted(parts):
        return why
    if isinstance(scheduler, WarmUp) and scheduler != WarmUp.before(then, scheduler.jobs):
        return "the warm-up is not FCFS without backfilling before a list scheduler of the same placement"
    if rule_of(then.backfill) is None:
        return f"backfill {then.backfill!r} has no kernel"
    if type(then.placement) is not RackPlacement:
        return f"placement {type(then.placement).__name__} has no kernel"
    return _unknown(parts.truth) or _unknown(parts.estimate) or _no_racks(parts.machine) or _unsuitable(parts.workload)


def _listed(scheduler: Scheduler) -> ListScheduler | None:
    """The list scheduler of a run, by itself or after a warm-up; None if it has none."""
    then = scheduler.then if type(scheduler) is WarmUp else scheduler
    return then if type(then) is ListScheduler else None


def warm_up_of(scheduler: Scheduler) -> int:
    """Jobs that fill the machine before a list scheduler takes over; 0 without a warm-up."""
    return scheduler.jobs if isinstance(scheduler, WarmUp) else 0


def _unknown(model: PerformanceModel) -> str:
    """Say why the kernels cannot count with a performance model; empty if they can."""
    if type(model) not in MODELS:
        return f"performance model {type(model).__name__} has no kernel"
    if isinstance(model, RemoteMemory) and min(model.near_ns, model.far_ns) < 0:
        return "a latency is negative"
    if isinstance(model, RemoteMemory) and max(model.near_ns, model.far_ns) > 10_000:
        return "a latency is above 10 us"
    return ""


def _no_racks(machine: Machine) -> str:
    """Say why a machine is not one of racks; empty if it is."""
    try:
        layout = machine.racks
    except InputError as problem:
        return problem.message
    return "" if len(layout.nodes) else "the machine has no whole nodes"


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


def replay(parts: Parts) -> tuple[Schedule, float]:
    """Run what `unsupported` has no objection to; returns the schedule and the seconds without compiling or loading."""
    load()
    begun = time.perf_counter()
    schedule = _replay(parts)
    return schedule, time.perf_counter() - begun


def _replay(parts: Parts) -> Schedule:
    from poolwise.kernels.list_scheduling import state
    from poolwise.kernels.list_scheduling.index import lay_out
    from poolwise.kernels.list_scheduling.replay import replay as go_on

    then = _listed(parts.scheduler)
    assert then is not None
    warm_up = warm_up_of(parts.scheduler)
    columns = RunColumns(parts.machine, parts.workload, then, parts.truth, parts.estimate)
    arrays = columns.arrays(warm_up, parts.pass_per_event)
    asker = Asker(columns)
    while (wanted := go_on(*arrays)) != state.DONE:
        if wanted == state.ASK:
            asker.answer(arrays.order.key, arrays.queue, arrays.runs, arrays.now)
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
    """Load the kernels, compiling them where this has not been done before on this computer; says so in the log."""
    second = np.full(2, SECOND, dtype=np.int64)
    two = Parts(Machine.flat(1), Workload.of(second, second), ListScheduler(), Ideal(), Ideal())  # reaches all kernels
    family.load(FOLDER, "list scheduling", "about half a minute", lambda: _replay(two))


def _enlarged(runs: RunArrays, now: IntArray) -> RunArrays:
    """Return the record with room for the rows that it needs, and as many again as it had."""
    from poolwise.kernels.list_scheduling import state

    used, larger = int(runs.offset[now[state.STARTED]]), {}
    for name in ("owner", "resource", "amount"):
        larger[name] = blank(max(int(now[state.ROWS]), 2 * len(runs.owner)))  # rows that are not written take no memory
        larger[name][:used] = getattr(runs, name)[:used]
    return runs._replace(**larger)


def _schedule(columns: RunColumns, runs: RunArrays, where: IntArray, now: IntArray) -> Schedule:
    """Build the schedule from the record and from what was left over."""
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
