"""Nodes that fail and are repaired, and the jobs that this affects.

While a later repair is scheduled no job is rejected. A job that would not fit the machine at its current capacity, even if
nothing ran, is deferred and does not block the queue. Source: `platforms.simulated`, `schedulers.list`.
"""

from __future__ import annotations

from poolwise.kernels.common.events import abort_run, defer, reject, time_at
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import missing_nodes
from poolwise.kernels.shared_nodes.nodes import note_released, set_free
from poolwise.kernels.shared_nodes.runs import release
from poolwise.kernels.shared_nodes.state import KindArrays, NodeArrays, OutageArrays, SharedNow, SharedState
from poolwise.kernels.shared_nodes.timeline import touch
from poolwise.kernels.shared_nodes.waiting import join, leave


@step
def apply_changes(state: SharedState, empty: NodeArrays, outages: OutageArrays) -> None:
    """Apply the failures and repairs of this instant."""
    nodes, timeline, now = state.nodes, state.timeline, state.now
    while time_at(outages.time, now.changes) == now.time:
        n, up = outages.node[now.changes], outages.up[now.changes]
        now.changes += 1
        while not up and timeline.size[n] > 0:
            _abort(timeline.run_of[n, 0], state, outages)
        set_free(n, outages.free[n], up, nodes)
        set_free(n, outages.free[n], up, empty)
        touch(n, timeline, now)
        if up:
            note_released(n, nodes, now)
    now.shadow_kind, now.settled = -1, 0
    now.version += 1
    _defer_infeasible(state, empty, outages)
    _readmit(state, empty, outages)


@step
def _abort(k: int, state: SharedState, outages: OutageArrays) -> None:
    """Abort a run; its job is requeued or lost."""
    abort_run(k, state)
    outages.lost[k] = True
    release(k, state)
    if outages.requeues[0]:
        join(state.runs.job[k], state)


@step
def defer_if_unfit(job: int, state: SharedState, empty: NodeArrays, outages: OutageArrays) -> bool:
    """Defer an arriving job if the machine could not hold it now but may after a repair; return whether it was deferred."""
    now = state.now
    if now.changes >= now.last_gain or _fits_empty(state.jobs.kind[job], state.kinds, empty, outages, now):
        return False
    defer(job, outages.deferred, now)
    now.quiet = 0
    return True


@inlined
def _fits_empty(kind: int, kinds: KindArrays, empty: NodeArrays, outages: OutageArrays, now: SharedNow) -> bool:
    """Return whether a job of a kind would fit the machine at its current capacity if nothing ran."""
    if outages.checked_at[kind] != now.changes:
        outages.checked_at[kind] = now.changes
        outages.fits_empty[kind] = missing_nodes(kind, kinds, empty) == 0
    return bool(outages.fits_empty[kind])


@inlined
def _defer_infeasible(state: SharedState, empty: NodeArrays, outages: OutageArrays) -> None:
    """Defer the waiting jobs that the machine could not hold."""
    now = state.now
    for k in range(now.waiting - 1, -1, -1):  # `leave` moves the last job to the gap, and that job was checked before
        job = state.queue.job[k]
        if not _fits_empty(state.jobs.kind[job], state.kinds, empty, outages, now):
            leave(job, state)
            defer(job, outages.deferred, now)


@inlined
def _readmit(state: SharedState, empty: NodeArrays, outages: OutageArrays) -> None:
    """Readmit deferred jobs that the machine could hold; reject the others after the last repair."""
    now = state.now
    count = now.deferred
    now.deferred = 0
    for k in range(count):
        job = outages.deferred[k]
        if _fits_empty(state.jobs.kind[job], state.kinds, empty, outages, now):
            join(job, state)
        elif now.changes < now.last_gain:
            defer(job, outages.deferred, now)
        else:  # in arrival order: these jobs have never been anywhere else
            reject(job, state)


@inlined
def has_run_rows(state: SharedState, outages: OutageArrays) -> bool:
    """Return whether there is a row for each run that a pass may start, and for each of its parts."""
    rules, now = state.rules, state.now
    parts = state.parts.first[now.started] + min(now.waiting * rules.parts, rules.cores)
    return bool(now.started + now.waiting <= outages.lost.size and parts <= state.parts.node.size)
