"""Event loop: apply the events of an instant, then make one pass.

`replay` returns whenever its caller has to act (compute priorities, enlarge an array) and resumes at the same place in the next
call: all its state is in the arrays.
"""

from __future__ import annotations

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.jit import entry, inlined, step
from poolwise.kernels.list_scheduling.state import (
    CALLBACK,
    COMPUTE_KEYS,
    CONSERVATIVE,
    DONE,
    INSTANTS,
    LATE,
    PAUSED,
    ROOM,
    Order,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import clear, insert
from poolwise.kernels.shared_nodes.choose import choose, missing_nodes
from poolwise.kernels.shared_nodes.conservative import conservative_pass, has_steps
from poolwise.kernels.shared_nodes.outages import apply_changes, defer_if_unfit, has_run_rows, next_change
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import end_first, has_rows, start
from poolwise.kernels.shared_nodes.search import search
from poolwise.kernels.shared_nodes.state import (
    APPLY_EVENTS,
    AWAITED,
    KEYED_PASS,
    MAKE_PASS,
    NEXT,
    PASSES,
    PAUSE,
    PHASE,
    QUIET,
    REJECTED,
    RUNNING,
    SETTLED,
    STOP,
    TIME,
    WAITING,
    WARM,
    WARM_FIRST,
    WARM_LAST,
    KindArrays,
    NodeArrays,
    OutageArrays,
    ProfileSteps,
    ShadowArrays,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    TimelineArrays,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.waiting import join
from poolwise.kernels.shared_nodes.windows import next_window_end, pass_windows
from poolwise.units import HORIZON, NEVER


@entry
def replay(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    ahead: NodeArrays | None,
    empty: NodeArrays | None,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    profile: ProfileSteps | None,
    outages: OutageArrays | None,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> int:
    """Run until the events end (DONE) or the caller has to act; return values are those of `list_scheduling.state`.

    COMPUTE_KEYS: write the keys of the waiting jobs. ROOM: give `runs.owner`, `.resource` and `.amount` at least `now[ROWS]`
    rows and, if runs may be lost, all other columns of runs enough rows for the waiting jobs.
    INSTANTS: give the profile at least `now[ROWS]` steps. LATE: the clock is beyond `HORIZON`.
    PAUSED: `now[PAUSE]` passes are complete.

    Features whose argument is None are compiled out. There is one kernel for queues, one for conservative reservations
    (`ahead`, `profile`), one for queues on nodes that fail (`outages`, and `empty`, the nodes as if nothing ran), one for
    queues with windows, and one for conservative reservations on nodes that fail.
    """
    while True:
        if now[PHASE] == APPLY_EVENTS:
            if now[PASSES] >= now[PAUSE]:
                return PAUSED
            if not _apply_events(jobs, kinds, order, rules, nodes, empty, timeline, outages, windows, queue, tree, runs, now):
                return DONE
            if now[TIME] > HORIZON:
                return LATE
            now[PHASE] = MAKE_PASS
        if now[WARM] and now[PHASE] == MAKE_PASS:
            if not has_rows(rules, runs, now):
                return ROOM
            _warm_up(jobs, kinds, order, rules, nodes, timeline, queue, tree, runs, now)
        if not (now[WARM] or now[QUIET]) and now[WAITING] > 0:
            if outages is not None and not has_run_rows(rules, outages, runs, now):
                has_rows(rules, runs, now)  # writes the number of rows needed
                return ROOM
            request = _pass(
                jobs, kinds, order, rules, nodes, ahead, timeline, at_shadow, profile, windows, queue, tree, runs, now
            )
            if request != DONE:
                return request
        now[PHASE] = APPLY_EVENTS


@inlined
def _pass(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    ahead: NodeArrays | None,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    profile: ProfileSteps | None,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> int:
    """Make a pass as the rules require; return the request to the caller, or DONE."""
    if not has_rows(rules, runs, now):
        return ROOM
    if now[PHASE] == MAKE_PASS and (profile is not None or order.kind == CALLBACK):
        if not _any_fits(jobs, kinds, nodes, queue, now):
            return DONE
        if profile is not None and not has_steps(rules.parts, nodes, timeline, profile, now):
            return INSTANTS
        if order.kind == CALLBACK:
            now[PHASE] = KEYED_PASS
            return COMPUTE_KEYS
    if profile is not None and ahead is not None:
        conservative_pass(jobs, kinds, order, rules, nodes, ahead, timeline, profile, queue, runs, now)
        return DONE
    if order.kind == CALLBACK:
        _rebuild_tree(jobs, order, queue, tree, now)
    search(jobs, kinds, order, rules, nodes, timeline, at_shadow, windows, queue, tree, runs, now)
    return DONE


@entry
def screen(kinds: KindArrays, nodes: NodeArrays, able: BoolArray) -> None:
    """Write for each kind, (n_kind,), whether a job of it fits."""
    for kind in range(able.size):
        able[kind] = missing_nodes(kind, kinds, nodes) == 0


@inlined
def _any_fits(jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, queue: SharedQueue, now: IntArray) -> bool:
    """Return whether some waiting job fits now; if none does, no order can start anything."""
    for k in range(now[WAITING]):  # noqa: SIM110  # a loop is what compiles
        if finds_room(jobs.nodes[queue.job[k]], kinds, nodes, now):
            return True
    return False


@step
def _rebuild_tree(jobs: SharedJobs, order: Order, queue: SharedQueue, tree: Tree, now: IntArray) -> None:
    """Rebuild the tree of all waiting jobs with the keys that the policy computed."""
    clear(tree)
    for k in range(now[WAITING]):
        insert(queue.job[k], now[TIME], jobs, order, tree)
    now[SETTLED] = 0


@inlined
def _apply_events(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    empty: NodeArrays | None,
    timeline: TimelineArrays,
    outages: OutageArrays | None,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> bool:
    """Process all events of the next instant (or one of them); return False at the end of the replay."""
    submit = jobs.submit[now[NEXT]] if now[NEXT] < jobs.submit.size else NEVER
    end = runs.end[runs.ending[0]] if now[RUNNING] > 0 else NEVER
    change = NEVER
    if outages is not None:
        change = next_change(outages, now)
    if windows is not None and now[WAITING] > 0:
        change = next_window_end(windows, now)
    time = min(submit, end, change)
    if time == NEVER or time > now[STOP] or now[AWAITED] == 0:
        return False
    now[TIME] = time
    now[PASSES] += 1
    now[QUIET] = int(time not in (end, change))
    if windows is not None:
        pass_windows(windows, now)
    while now[RUNNING] > 0 and runs.end[runs.ending[0]] == now[TIME]:
        end_first(jobs, kinds, nodes, timeline, runs, now)
        if rules.per_event:
            return True
    while now[NEXT] < jobs.submit.size and jobs.submit[now[NEXT]] == now[TIME]:
        is_deferred = False
        if outages is not None and empty is not None:
            is_deferred = defer_if_unfit(now[NEXT], jobs, kinds, empty, outages, now)
        if not is_deferred:
            _arrive(now[NEXT], jobs, order, rules, queue, tree, runs, now)
        now[NEXT] += 1
        if rules.per_event:
            return True
    if outages is not None and empty is not None and change == now[TIME]:
        apply_changes(jobs, kinds, order, rules, nodes, empty, timeline, outages, queue, tree, runs, now)
    return True


@inlined
def _arrive(
    job: int,
    jobs: SharedJobs,
    order: Order,
    rules: SharedRules,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Enqueue or reject a job; jobs after the warm-up ones are checked when the warm-up ends."""
    if now[WARM] and job >= rules.warm_up:
        join(job, queue, now)
    elif not jobs.able[job]:
        _reject(job, runs, now)
        return
    elif now[WARM]:
        queue.warm[now[WARM_LAST]] = job
        now[WARM_LAST] += 1
    else:
        join(job, queue, now)
        if order.kind != CALLBACK and rules.backfill != CONSERVATIVE:
            insert(job, now[TIME], jobs, order, tree)
    now[QUIET] = 0


@step
def _reject(job: int, runs: SharedRuns, now: IntArray) -> None:
    runs.rejected[now[REJECTED]] = job
    now[REJECTED] += 1


@step
def _warm_up(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Start warm-up jobs first come, first served; end the warm-up once the last was submitted and none waits."""
    while now[WARM_FIRST] < now[WARM_LAST]:
        job = queue.warm[now[WARM_FIRST]]
        if not choose(jobs.nodes[job], rules, kinds, nodes):
            return
        start(job, rules, jobs, kinds, nodes, timeline, runs, now)
        now[WARM_FIRST] += 1
    if now[NEXT] < min(rules.warm_up, jobs.submit.size):
        return
    now[WARM], now[QUIET] = 0, 0
    later = now[WAITING]
    now[WAITING] = 0
    for k in range(later):  # in arrival order: no job has left the queue yet
        job, at = queue.job[k], now[WAITING]
        if not jobs.able[job]:
            queue.where[job] = -1
            _reject(job, runs, now)
            continue
        queue.job[at], queue.where[job], queue.since[at] = job, at, queue.since[k]
        now[WAITING] += 1
    if order.kind != CALLBACK and rules.backfill != CONSERVATIVE:
        _rebuild_tree(jobs, order, queue, tree, now)
