"""The compiled family of list scheduling: rigid jobs on racks with memory pools, with the reference's result.

`unsupported` says what it cannot run; it turns the study into arrays (`columns`), lets the kernels replay them, and turns the
record back into a `Schedule`, byte for byte that of `engines.simulate` with the reference engine.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.family import Parts, foreign, interrupted
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.list_scheduling.asking import Asker
from poolwise.engines.list_scheduling.columns import RunColumns
from poolwise.engines.list_scheduling.loading import kinds_of, load
from poolwise.errors import InputError
from poolwise.interfaces import fixed_slowdown, rule_of
from poolwise.model import Machine, Outcome, Schedule, Workload
from poolwise.platforms.simulated import too_late

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import RunArrays, Tree


def unsupported(parts: Parts) -> str:
    """Say why there is no kernel for a run; empty if there is one.

    The scheduler, its backfill, its placement and the models must state what they do (`interfaces.rule_of`,
    `interfaces.fixed_slowdown`); any queue order will do.
    """
    rule = rule_of(parts.scheduler)
    if rule is None:
        return foreign(parts.scheduler)
    if why := interrupted(parts):
        return why
    if rule_of(rule.backfill) is None:
        return f"backfill {rule.backfill!r} has no kernel"
    if rule_of(rule.placement) is None:
        return f"placement {type(rule.placement).__name__} has no kernel"
    if why := _no_racks(parts.machine) or _unsuitable(parts.workload):
        return why
    for model in (parts.truth, parts.estimate):
        if fixed_slowdown(model, parts.workload.table, slice(0, 0), parts.machine) is None:
            return f"performance model {type(model).__name__} has no kernel"
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
    if float((workload.nodes * workload.tasks).max()) * float(workload.memory.max()) > 2.0**52:
        return "a job's memory leaves the range in which float64 counts whole MiB"
    return ""


def replay(parts: Parts) -> tuple[Schedule, float]:
    """Run what `unsupported` has no objection to; returns the schedule and the seconds without compiling or loading."""
    from poolwise.kernels.list_scheduling import state
    from poolwise.kernels.list_scheduling.index import lay_out
    from poolwise.kernels.list_scheduling.replay import replay as go_on

    rule = rule_of(parts.scheduler)
    assert rule is not None
    first, *deep = kinds_of(rule)
    load(first)
    begun, loading = time.perf_counter(), 0.0
    columns = RunColumns(parts, rule)
    arrays = columns.arrays()
    asker = Asker(columns)
    tree: Tree | None = None  # laid out once, when it is first needed
    while (wanted := go_on(*arrays)) != state.DONE:
        if wanted == state.ASK:
            asker.answer(arrays.order.key, arrays.queue, arrays.racks, arrays.runs, arrays.now)
        elif wanted == state.INSTANTS:
            arrays = arrays._replace(profile=columns.profile(2 * int(arrays.now[state.ROWS])))
        elif wanted == state.LATE:
            raise too_late()
        elif wanted == state.DEEP:
            if tree is None:
                loading -= time.perf_counter()
                load(*deep)
                loading += time.perf_counter()
                tree = lay_out(arrays.jobs.nodes, arrays.jobs.remote, arrays.jobs.length, arrays.jobs.able)
            arrays = arrays._replace(tree=tree)
        elif wanted == state.SHALLOW:
            arrays = arrays._replace(tree=None)
        else:
            arrays = arrays._replace(runs=_enlarged(arrays.runs, arrays.now))
    schedule = _schedule(columns, arrays.runs, arrays.queue.where, arrays.now)
    return schedule, time.perf_counter() - begun - loading


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
        tasks=columns.workload.tasks[runs.job[:count]],
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
