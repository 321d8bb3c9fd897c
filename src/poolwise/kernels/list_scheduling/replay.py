"""The event loop: take the events of an instant, make one pass, go on.

`replay` returns whenever its caller has to do something (ask a policy, enlarge an array) and continues from there when it
is called again: all its state is in the arrays.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import entry, inlined, step
from poolwise.kernels.list_scheduling.capacity_changes import has_runs, judge, make_changes, next_change, put_aside, wait_aside
from poolwise.kernels.list_scheduling.conservative import conserve
from poolwise.kernels.list_scheduling.easy import any_fits, challenge, scan
from poolwise.kernels.list_scheduling.incremental_conservative import keep_promises
from poolwise.kernels.list_scheduling.indexed import index, search
from poolwise.kernels.list_scheduling.order import front
from poolwise.kernels.list_scheduling.profile import has_instants
from poolwise.kernels.list_scheduling.racks import place
from poolwise.kernels.list_scheduling.runs import end_first, has_room, start
from poolwise.kernels.list_scheduling.state import (
    ASIDE,
    ASK,
    ASKED,
    ASKED_PASS,
    DEEP,
    DEPTH,
    DONE,
    FIRST,
    FRONT,
    HEAD,
    INDEXED,
    INSTANTS,
    JUDGED,
    LATE,
    MAKE_PASS,
    NEXT,
    PASSES,
    PAUSE,
    PAUSED,
    PHASE,
    QUIET,
    REJECTED,
    RENEW,
    RENEWAL,
    ROOM,
    RUNNING,
    SHALLOW,
    SOUGHT,
    STOP,
    TAKE_EVENTS,
    TIME,
    WAITING,
    WARM,
    WARM_FIRST,
    WARM_LAST,
    ChangeArrays,
    JobArrays,
    KeptArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import clear
from poolwise.kernels.list_scheduling.waiting import count, join, line_up
from poolwise.units import HORIZON, NEVER


@entry
def replay(
    jobs: JobArrays,
    order: Order,
    beside: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    profile: ProfileArrays | None,
    kept: KeptArrays | None,
    changes: ChangeArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Go on until the events end (DONE) or the caller has to help.

    ASK: write the keys of the waiting jobs. ROOM: give `runs.owner`, `.resource` and `.amount` at least `now[ROWS]` rows,
    and where runs may be lost all other columns of runs as many as the waiting jobs may take.
    INSTANTS: give the profile at least `now[ROWS]` instants.
    DEEP: the queue is so long that a tree pays; lay one out (`index.lay_out`) and go on with it. SHALLOW: go on without.
    RENEW: write the keys of the waiting jobs, and of those that come before the next recalculation; and when that is.
    LATE: the clock is beyond `HORIZON`. PAUSED: so many passes are over as `now[PAUSE]` says.

    What is None is not asked for, and kernels are compiled without it: there is one for queues that are scanned, one for
    queues in a tree, one for reservations of everyone (`profile`), one for such as are kept; and on racks whose capacity
    changes one for queues in a tree, and one for reservations of everyone. Where what is tried beside the head has an order of
    its own, `tree` is in that order and `heads` in the order of the queue; otherwise both are the same.
    """
    while True:
        if now[PHASE] == TAKE_EVENTS:
            if now[PASSES] >= now[PAUSE]:
                return PAUSED
            if not _take_events(jobs, order, beside, rules, racks, queue, tree, heads, changes, runs, now):
                return DONE
            if now[TIME] > HORIZON:
                return LATE
            now[PHASE] = MAKE_PASS
        if now[PHASE] == MAKE_PASS:
            if now[TIME] >= now[RENEWAL]:
                return RENEW
            if not has_room(now[WAITING] + now[WARM_LAST] - now[WARM_FIRST], racks, runs, now):
                return ROOM
            if changes is not None and not has_runs(changes, now):
                return ROOM
            if now[WARM]:
                _warm_up(jobs, rules, racks, queue, runs, now)
        if not (now[WARM] or now[QUIET]) and now[WAITING] > 0:
            wanted = _pass(jobs, order, beside, rules, racks, queue, tree, heads, profile, kept, runs, now)
            if wanted != DONE:
                return wanted
        now[PHASE] = TAKE_EVENTS


@inlined
def _pass(
    jobs: JobArrays,
    order: Order,
    beside: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    profile: ProfileArrays | None,
    kept: KeptArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Make a pass in the way that suits the rules and the queue; what the caller has to do first, or DONE."""
    if rules.capped:
        now[FRONT] = front(rules, now)
    if profile is not None:
        return _conserve(jobs, order, rules, racks, queue, profile, kept, runs, now)
    if tree is not None and heads is not None:
        return _search(jobs, order, beside, rules, racks, queue, tree, heads, runs, now)
    if now[WAITING] > now[DEPTH] and order.kind != ASKED:
        return DEEP
    if order.kind == ASKED and now[PHASE] == MAKE_PASS:
        if not any_fits(rules, racks, queue, now):
            return DONE
        now[PHASE], now[FIRST] = ASKED_PASS, -1
        return ASK
    scan(jobs, order, beside, rules, racks, queue, runs, now)
    return DONE


@inlined
def _search(
    jobs: JobArrays,
    order: Order,
    beside: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree,
    heads: Tree,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Make a pass over a queue in a tree; SHALLOW if it has become too short for one."""
    if not now[INDEXED]:
        for k in range(now[WAITING]):
            index(queue.job[k], jobs, order, beside, rules, tree, heads, now)
        now[INDEXED] = 1
    elif now[WAITING] < now[DEPTH] // 4:
        clear(tree)
        clear(heads)
        now[INDEXED], now[FIRST] = 0, -1
        return SHALLOW
    search(jobs, order, beside, rules, racks, queue, tree, heads, runs, now)
    return DONE


@inlined
def _conserve(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    kept: KeptArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> int:
    """Make a pass with reservations for everyone."""
    if now[PHASE] == MAKE_PASS:
        if kept is None and not any_fits(rules, racks, queue, now):
            return DONE
        if not has_instants(profile, now):
            return INSTANTS
        if order.kind == ASKED:
            now[PHASE] = ASKED_PASS
            return ASK
    if kept is None:
        conserve(jobs, order, rules, racks, queue, profile, runs, now)
    else:
        keep_promises(jobs, order, rules, racks, queue, profile, kept, runs, now)
    return DONE


@inlined
def _take_events(
    jobs: JobArrays,
    order: Order,
    beside: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    changes: ChangeArrays | None,
    runs: RunArrays,
    now: IntArray,
) -> bool:
    """Process all events of the next instant (or one of them); False if nothing is left, or nothing that anybody asks for."""
    submit = jobs.submit[now[NEXT]] if now[NEXT] < jobs.submit.size else NEVER
    end = runs.end[runs.ending[0]] if now[RUNNING] > 0 else NEVER
    time = min(submit, end)
    if changes is not None:
        time = min(time, next_change(changes, now))
    if time == NEVER or time > now[STOP] or now[SOUGHT] == 0:
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
            _arrive(now[NEXT], jobs, order, beside, rules, queue, tree, heads, runs, now)
        else:
            wait_aside(now[NEXT], changes, now)
        now[NEXT] += 1
        if rules.per_event:
            return True
    if changes is not None:
        _look_aside(jobs, order, rules, racks, queue, tree, changes, runs, now)
    return True


@inlined
def _look_aside(
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
    """Make the changes of this instant, and judge who waits aside: after a change all of them, else who arrived."""
    first = now[JUDGED]
    if next_change(changes, now) == now[TIME]:
        make_changes(rules, racks, changes, runs, now)
        put_aside(jobs, order, rules, changes, queue, tree, now)
        first = now[QUIET] = 0
    judge(first, jobs, order, rules, racks, changes, queue, tree, runs, now)
    now[JUDGED] = now[ASIDE]


@inlined
def _arrive(
    job: int,
    jobs: JobArrays,
    order: Order,
    beside: Order,
    rules: Rules,
    queue: QueueArrays,
    tree: Tree | None,
    heads: Tree | None,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Let a job wait or turn it away; while the warm-up lasts, a later job waits and is judged when it ends."""
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
            index(job, jobs, order, beside, rules, tree, heads, now)
    now[QUIET] = 0


@step
def _reject(job: int, runs: RunArrays, now: IntArray) -> None:
    runs.rejected[now[REJECTED]] = job
    now[REJECTED] += 1


@step
def _warm_up(jobs: JobArrays, rules: Rules, racks: RackArrays, queue: QueueArrays, runs: RunArrays, now: IntArray) -> None:
    """Start warm-up jobs first come, first served; hand over when the last has been submitted and none waits."""
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
    for k in range(later):  # in the order of arrival: nothing has left the queue yet
        job = queue.job[k]
        if jobs.able[job]:
            line_up(job, now[WAITING], jobs, queue)
            queue.since[now[WAITING]] = queue.since[k]
            now[WAITING] += 1
        else:
            queue.where[job] = -1
            count(job, -1, queue, now)
            _reject(job, runs, now)
