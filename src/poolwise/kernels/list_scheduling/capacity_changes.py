"""Capacity that racks lose and regain while jobs run: nodes fail and are repaired, pools shrink and grow.

While a later change can still add capacity, no job is rejected. A job that would not fit the machine at its current capacity,
even if nothing ran, is deferred and does not block the queue. Source: `platforms.simulated`, `schedulers.list`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.events import abort_run, defer, reject, time_at
from poolwise.kernels.common.state import NONE, Tree
from poolwise.kernels.common.tournament import insert, remove
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.runs import release, remove_due
from poolwise.kernels.list_scheduling.state import ChangeArrays, JobArrays, RackState, Rules
from poolwise.kernels.list_scheduling.waiting import join, leave


@step
def apply_changes(state: RackState, changes: ChangeArrays) -> None:
    """Apply the changes of this instant; if capacity in use is lost, abort the latest runs of the rack or pool."""
    racks, now = state.racks, state.now
    while time_at(changes.time, now.changes) == now.time:
        c = now.changes
        r, of_pool = changes.rack[c], changes.of_pool[c]
        have, free = (changes.memory, racks.pool) if of_pool else (changes.nodes, racks.free)
        amount = max(changes.amount[c], -have[r])
        have[r] += amount
        free[r] += amount
        while free[r] < 0:
            _abort(_latest_run_on(r, of_pool, state), state, changes)
        now.changes += 1
    now.head = -1
    now.shadow_tracked = now.profile_valid = 0


@inlined
def _latest_run_on(r: int, of_pool: bool, state: RackState) -> int:
    """Return the most recently started run that holds nodes of a rack, or memory of its pool."""
    racks, runs = state.racks, state.runs
    last, owner = -1, racks.pool_owner[r] if of_pool else racks.node_owner[r]
    for at in range(state.now.running):
        k = runs.ending[at]
        for row in range(runs.offset[k], runs.offset[k + 1]):
            if runs.owner[row] == owner and k > last:
                last = k
    return int(last)


@inlined
def _abort(k: int, state: RackState, changes: ChangeArrays) -> None:
    """Abort a run; its job is requeued or lost."""
    racks, now = state.racks, state.now
    abort_run(k, state)
    changes.lost[k] = True
    release(k, 1, racks.free, racks.pool, state)
    if state.rules.backfill != NONE:
        remove_due(k, state)
    now.running -= 1
    if changes.requeues[0]:
        defer(state.runs.job[k], changes.deferred, now)


@inlined
def _fits_empty(job: int, jobs: JobArrays, rules: Rules, changes: ChangeArrays) -> bool:
    """Return whether a job would fit the machine at its current capacity if nothing ran."""
    n, remote = jobs.nodes[job], jobs.remote[job]
    return bool(jobs.able[job] and fits(job, n, remote, rules.anywhere, jobs.mixed, changes.nodes, changes.memory))


@step
def readmit(first: int, state: RackState, changes: ChangeArrays, tree: Tree | None) -> None:
    """Readmit the deferred jobs, from position `first` on, that the machine could hold if it were empty.

    The others stay deferred while a later change can still add capacity, and are rejected otherwise.
    """
    now = state.now
    count, now.deferred = now.deferred, first
    for k in range(first, count):
        job = changes.deferred[k]
        if _fits_empty(job, state.jobs, state.rules, changes):
            join(job, state)
            if tree is not None and now.indexed:
                insert(job, now.time, state.order, tree)
        elif now.changes < now.last_gain:
            defer(job, changes.deferred, now)
        else:
            changes.rejected_after[now.rejected] = now.changes
            reject(job, state)
            continue
        now.quiet = 0


@step
def defer_infeasible(state: RackState, changes: ChangeArrays, tree: Tree | None) -> None:
    """Defer waiting jobs that no longer fit the empty machine after a change, and sort the deferred jobs by submit time."""
    jobs, rules, now = state.jobs, state.rules, state.now
    largest, remote = changes.max_request[0], changes.max_request[1]
    if not fits(0, largest, remote, rules.anywhere, None, changes.nodes, changes.memory):
        for k in range(now.waiting - 1, -1, -1):  # `leave` moves the last job, which has been checked already, to the gap
            job = state.queue.job[k]
            if not _fits_empty(job, jobs, rules, changes):
                if tree is not None and now.indexed:
                    remove(job, now.time, state.order, tree)
                leave(job, state)
                defer(job, changes.deferred, now)
    heap.sort(changes.deferred, now.deferred, jobs.submit)
