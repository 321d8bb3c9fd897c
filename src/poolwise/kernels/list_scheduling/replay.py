"""Event loop: apply the events of an instant, then make one pass.

`replay` returns whenever its caller has to act (compute priorities, enlarge an array) and resumes at the same place in the next
call: all its state is in the arrays.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import entry, inlined, step
from poolwise.kernels.list_scheduling.capacity_changes import (
    apply_changes,
    defer,
    defer_infeasible,
    has_run_rows,
    next_change,
    readmit,
)
from poolwise.kernels.list_scheduling.conservative import conservative_pass
from poolwise.kernels.list_scheduling.easy import any_fits, challenge, scan
from poolwise.kernels.list_scheduling.incremental_conservative import incremental_pass
from poolwise.kernels.list_scheduling.indexed import index, search
from poolwise.kernels.list_scheduling.order import front
from poolwise.kernels.list_scheduling.profile import has_instants
from poolwise.kernels.list_scheduling.racks import place
from poolwise.kernels.list_scheduling.runs import end_first, has_rows, start
from poolwise.kernels.list_scheduling.state import (
    APPLY_EVENTS,
    AWAITED,
    CALLBACK,
    COMPUTE_KEYS,
    DEEP,
    DEFERRED,
    DEPTH,
    DONE,
    FIRST,
    FRONT,
    HEAD,
    INDEXED,
    INSTANTS,
    KEYED_PASS,
    LATE,
    MAKE_PASS,
    NEXT,
    PASSES,
    PAUSE,
    PAUSED,
    PHASE,
    QUIET,
    RECHECKED,
    REJECTED,
    RENEW_KEYS,
    RENEWAL,
    ROOM,
    RUNNING,
    SHALLOW,
    STOP,
    TIME,
    WAITING,
    WARM,
    WARM_FIRST,
    WARM_LAST,
    ChangeArrays,
    JobArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    ReservationArrays,
    Rules,
    RunArrays,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import clear
from poolwise.kernels.list_scheduling.waiting import add_to_backlog, join, write_at
from poolwise.units import HORIZON, NEVER


@entry
def replay(
    jobs: JobArrays,
    order: Order,
    backfill_order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    profile: ProfileArrays | None,
    held: ReservationArrays | None,
    changes: ChangeArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Run until the events end (DONE) or the caller has to act.

    COMPUTE_KEYS: write the keys of the waiting jobs. ROOM: give `runs.owner`, `.resource` and `.amount` at least `now[ROWS]`
    rows and, if runs may be lost, all other columns of runs enough rows for the waiting jobs.
    INSTANTS: give the profile at least `now[ROWS]` instants.
    DEEP: the queue is long enough for a tree; create one (`index.lay_out`) and continue with it. SHALLOW: continue without it.
    RENEW_KEYS: write the keys of the waiting jobs and of those that arrive before the next recalculation, and its time.
    LATE: the clock is beyond `HORIZON`. PAUSED: `now[PAUSE]` passes are complete.

    Features whose argument is None are compiled out. There is one kernel for queues that are scanned, one for queues in a
    tree, one for conservative reservations (`profile`), one for those that are held; and, on racks whose capacity changes, one
    for queues in a tree and one for conservative reservations. If backfilling has its own order, `tree` has that order and
    `heads` the order of the queue; otherwise both are the same tree.
    """
    while True:
        if now[PHASE] == APPLY_EVENTS:
            if now[PASSES] >= now[PAUSE]:
                return PAUSED
            if not _apply_events(jobs, order, backfill_order, rules, racks, queue, tree, heads, changes, runs, now):
                return DONE
            if now[TIME] > HORIZON:
                return LATE
            now[PHASE] = MAKE_PASS
        if now[PHASE] == MAKE_PASS:
            if now[TIME] >= now[RENEWAL]:
                return RENEW_KEYS
            if not has_rows(now[WAITING] + now[WARM_LAST] - now[WARM_FIRST], racks, runs, now):
                return ROOM
            if changes is not None and not has_run_rows(changes, now):
                return ROOM
            if now[WARM]:
                _warm_up(jobs, rules, racks, queue, runs, now)
        if not (now[WARM] or now[QUIET]) and now[WAITING] > 0:
            request = _pass(jobs, order, backfill_order, rules, racks, queue, tree, heads, profile, held, runs, now)
            if request != DONE:
                return request
        now[PHASE] = APPLY_EVENTS


@inlined
def _pass(
    jobs: JobArrays,
    order: Order,
    backfill_order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    profile: ProfileArrays | None,
    held: ReservationArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Make a pass as the rules and the queue require; return the request to the caller, or DONE."""
    if rules.capped:
        now[FRONT] = front(rules, now)
    if profile is not None:
        return _reservation_pass(jobs, order, rules, racks, queue, profile, held, runs, now)
    if tree is not None and heads is not None:
        return _search(jobs, order, backfill_order, rules, racks, queue, tree, heads, runs, now)
    if now[WAITING] > now[DEPTH] and order.kind != CALLBACK:
        return DEEP
    if order.kind == CALLBACK and now[PHASE] == MAKE_PASS:
        if not any_fits(rules, racks, queue, now):
            return DONE
        now[PHASE], now[FIRST] = KEYED_PASS, -1
        return COMPUTE_KEYS
    scan(jobs, order, backfill_order, rules, racks, queue, runs, now)
    return DONE


@inlined
def _search(
    jobs: JobArrays,
    order: Order,
    backfill_order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree,
    heads: Tree,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Make a pass over a queue in a tree; return SHALLOW if it has become too short for one."""
    if not now[INDEXED]:
        for k in range(now[WAITING]):
            index(queue.job[k], jobs, order, backfill_order, rules, tree, heads, now)
        now[INDEXED] = 1
    elif now[WAITING] < now[DEPTH] // 4:
        clear(tree)
        clear(heads)
        now[INDEXED], now[FIRST] = 0, -1
        return SHALLOW
    search(jobs, order, backfill_order, rules, racks, queue, tree, heads, runs, now)
    return DONE


@inlined
def _reservation_pass(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    held: ReservationArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Make a pass that reserves capacity for every job."""
    if now[PHASE] == MAKE_PASS:
        if held is None and not any_fits(rules, racks, queue, now):
            return DONE
        if not has_instants(profile, now):
            return INSTANTS
        if order.kind == CALLBACK:
            now[PHASE] = KEYED_PASS
            return COMPUTE_KEYS
    if held is None:
        conservative_pass(jobs, order, rules, racks, queue, profile, runs, now)
    else:
        incremental_pass(jobs, order, rules, racks, queue, profile, held, runs, now)
    return DONE


@inlined
def _apply_events(
    jobs: JobArrays,
    order: Order,
    backfill_order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    changes: ChangeArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> bool:
    """Process all events of the next instant (or one of them); return False at the end of the replay."""
    submit = jobs.submit[now[NEXT]] if now[NEXT] < jobs.submit.size else NEVER
    end = runs.end[runs.ending[0]] if now[RUNNING] > 0 else NEVER
    time = min(submit, end)
    if changes is not None:
        time = min(time, next_change(changes, now))
    if time == NEVER or time > now[STOP] or now[AWAITED] == 0:
        return False
    now[TIME] = time
    now[PASSES] += 1
    now[QUIET] = 0 if end == time else 1
    while now[RUNNING] > 0 and runs.end[runs.ending[0]] == now[TIME]:
        end_first(rules, racks, runs, now)
        if rules.per_event:
            return True
    while now[NEXT] < jobs.submit.size and jobs.submit[now[NEXT]] == now[TIME]:
        if changes is None:
            _arrive(now[NEXT], jobs, order, backfill_order, rules, queue, tree, heads, runs, now)
        else:
            defer(now[NEXT], changes, now)
        now[NEXT] += 1
        if rules.per_event:
            return True
    if changes is not None:
        _update_deferred(jobs, order, rules, racks, queue, tree, changes, runs, now)
    return True


@inlined
def _update_deferred(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    changes: ChangeArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Apply the changes of this instant, then recheck deferred jobs: all of them after a change, else the new arrivals."""
    first = now[RECHECKED]
    if next_change(changes, now) == now[TIME]:
        apply_changes(rules, racks, changes, runs, now)
        defer_infeasible(jobs, order, rules, changes, queue, tree, now)
        first = now[QUIET] = 0
    readmit(first, jobs, order, rules, racks, changes, queue, tree, runs, now)
    now[RECHECKED] = now[DEFERRED]


@inlined
def _arrive(
    job: int,
    jobs: JobArrays,
    order: Order,
    backfill_order: Order,
    rules: Rules,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Enqueue or reject a job; jobs after the warm-up ones are checked when the warm-up ends."""
    if now[WARM] and job >= rules.warm_up:
        join(job, jobs, queue, now)
    elif not jobs.able[job]:
        _reject(job, runs, now)
        return
    elif now[WARM]:
        queue.warm[now[WARM_LAST]] = job
        now[WARM_LAST] += 1
    else:
        join(job, jobs, queue, now)
        if tree is None or heads is None:
            challenge(job, order, now)
        elif now[INDEXED]:
            index(job, jobs, order, backfill_order, rules, tree, heads, now)
    now[QUIET] = 0


@step
def _reject(job: int, runs: RunArrays, now: IntArray) -> None:
    runs.rejected[now[REJECTED]] = job
    now[REJECTED] += 1


@step
def _warm_up(jobs: JobArrays, rules: Rules, racks: RackArrays, queue: QueueArrays, runs: RunArrays, now: IntArray) -> None:
    """Start warm-up jobs first come, first served; end the warm-up once the last was submitted and none waits."""
    while now[WARM_FIRST] < now[WARM_LAST]:
        job = queue.warm[now[WARM_FIRST]]
        if not place(jobs.nodes[job], jobs.remote[job], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            return
        start(job, jobs, rules, racks, runs, now)
        now[WARM_FIRST] += 1
    last = min(rules.warm_up, jobs.submit.size) - 1
    if now[NEXT] <= last:
        return
    now[WARM] = 0
    now[HEAD] = -1
    now[QUIET] = 0
    later = now[WAITING]
    now[WAITING] = 0
    for k in range(later):  # in arrival order: no job has left the queue yet
        job = queue.job[k]
        if jobs.able[job]:
            write_at(job, now[WAITING], jobs, queue)
            queue.since[now[WAITING]] = queue.since[k]
            now[WAITING] += 1
        else:
            queue.where[job] = -1
            add_to_backlog(job, -1, queue, now)
            _reject(job, runs, now)
