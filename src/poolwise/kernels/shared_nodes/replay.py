"""The event loop: take the events of an instant, make one pass, go on.

`replay` returns whenever its caller has to do something (ask a policy, enlarge an array) and continues from there when it
is called again: all its state is in the arrays.
"""

from __future__ import annotations

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.jit import entry, inlined, step
from poolwise.kernels.list_scheduling.state import ASK, ASKED, CONSERVATIVE, DONE, INSTANTS, LATE, PAUSED, ROOM, Order, Tree
from poolwise.kernels.list_scheduling.tournament import clear, put
from poolwise.kernels.shared_nodes.choose import choose, missing
from poolwise.kernels.shared_nodes.conservative import conserve_shared, has_steps
from poolwise.kernels.shared_nodes.outages import has_runs, make_changes, next_change, waits_aside
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import end_first, has_room, start
from poolwise.kernels.shared_nodes.search import search
from poolwise.kernels.shared_nodes.state import (
    ASKED_PASS,
    MAKE_PASS,
    NEXT,
    PASSES,
    PAUSE,
    PHASE,
    QUIET,
    REJECTED,
    RUNNING,
    SETTLED,
    SOUGHT,
    STOP,
    TAKE_EVENTS,
    TIME,
    WAITING,
    WARM,
    WARM_FIRST,
    WARM_LAST,
    KindArrays,
    NodeArrays,
    OutageArrays,
    ProfileSteps,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    ThenArrays,
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
    then: ThenArrays,
    profile: ProfileSteps | None,
    outages: OutageArrays | None,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> int:
    """Go on until the events end (DONE) or the caller has to help; the answers are those of `list_scheduling.state`.

    ASK: write the keys of the waiting jobs. ROOM: give `runs.owner`, `.resource` and `.amount` at least `now[ROWS]` rows, and
    where runs may be lost all other columns of runs as many as the waiting jobs may take.
    INSTANTS: give the profile at least `now[ROWS]` steps. LATE: the clock is beyond `HORIZON`.
    PAUSED: so many passes are over as `now[PAUSE]` says.

    What is None is not asked for, and kernels are compiled without it: there is one for queues, one for reservations of
    everyone (`ahead`, `profile`), one for queues on nodes that fail (`outages`, and `empty`, the nodes as if nothing ran), and
    one for queues beside windows. On nodes that fail there is one for reservations of everyone as well.
    """
    while True:
        if now[PHASE] == TAKE_EVENTS:
            if now[PASSES] >= now[PAUSE]:
                return PAUSED
            if not _take_events(jobs, kinds, order, rules, nodes, empty, timeline, outages, windows, queue, tree, runs, now):
                return DONE
            if now[TIME] > HORIZON:
                return LATE
            now[PHASE] = MAKE_PASS
        if now[WARM] and now[PHASE] == MAKE_PASS:
            if not has_room(rules, runs, now):
                return ROOM
            _warm_up(jobs, kinds, order, rules, nodes, timeline, queue, tree, runs, now)
        if not (now[WARM] or now[QUIET]) and now[WAITING] > 0:
            if outages is not None and not has_runs(rules, outages, runs, now):
                has_room(rules, runs, now)  # says how many rows are wanted
                return ROOM
            wanted = _pass(jobs, kinds, order, rules, nodes, ahead, timeline, then, profile, windows, queue, tree, runs, now)
            if wanted != DONE:
                return wanted
        now[PHASE] = TAKE_EVENTS


@inlined
def _pass(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    ahead: NodeArrays | None,
    timeline: TimelineArrays,
    then: ThenArrays,
    profile: ProfileSteps | None,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> int:
    """Make a pass in the way that suits the rules; what the caller has to do first, or DONE."""
    if not has_room(rules, runs, now):
        return ROOM
    if now[PHASE] == MAKE_PASS and (profile is not None or order.kind == ASKED):
        if not _any_fits(jobs, kinds, nodes, queue, now):
            return DONE
        if profile is not None and not has_steps(rules.parts, nodes, timeline, profile, now):
            return INSTANTS
        if order.kind == ASKED:
            now[PHASE] = ASKED_PASS
            return ASK
    if profile is not None and ahead is not None:
        conserve_shared(jobs, kinds, order, rules, nodes, ahead, timeline, profile, queue, runs, now)
        return DONE
    if order.kind == ASKED:
        _lay_out_anew(jobs, order, queue, tree, now)
    search(jobs, kinds, order, rules, nodes, timeline, then, windows, queue, tree, runs, now)
    return DONE


@entry
def screen(kinds: KindArrays, nodes: NodeArrays, able: BoolArray) -> None:
    """Write for each kind, (n_kind,), whether a job of it finds room."""
    for kind in range(able.size):
        able[kind] = missing(kind, kinds, nodes) == 0


@inlined
def _any_fits(jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, queue: SharedQueue, now: IntArray) -> bool:
    """Whether some waiting job finds room now; if none does, no order can start anything."""
    for k in range(now[WAITING]):  # noqa: SIM110  # a loop is what compiles
        if finds_room(jobs.nodes[queue.job[k]], kinds, nodes, now):
            return True
    return False


@step
def _lay_out_anew(jobs: SharedJobs, order: Order, queue: SharedQueue, tree: Tree, now: IntArray) -> None:
    """Put all waiting jobs into the tree with the keys that were given."""
    clear(tree)
    for k in range(now[WAITING]):
        put(queue.job[k], now[TIME], jobs, order, tree)
    now[SETTLED] = 0


@inlined
def _take_events(
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
    """Process all events of the next instant (or one of them); False if nothing is left, or nothing that anybody asks for."""
    submit = jobs.submit[now[NEXT]] if now[NEXT] < jobs.submit.size else NEVER
    end = runs.end[runs.ending[0]] if now[RUNNING] > 0 else NEVER
    change = NEVER
    if outages is not None:
        change = next_change(outages, now)
    if windows is not None and now[WAITING] > 0:
        change = next_window_end(windows, now)
    time = min(submit, end, change)
    if time == NEVER or time > now[STOP] or now[SOUGHT] == 0:
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
        is_aside = False
        if outages is not None and empty is not None:
            is_aside = waits_aside(now[NEXT], jobs, kinds, empty, outages, now)
        if not is_aside:
            _arrive(now[NEXT], jobs, order, rules, queue, tree, runs, now)
        now[NEXT] += 1
        if rules.per_event:
            return True
    if outages is not None and empty is not None and change == now[TIME]:
        make_changes(jobs, kinds, order, rules, nodes, empty, timeline, outages, queue, tree, runs, now)
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
    """Let a job wait or turn it away; while the warm-up lasts, a later job waits and is judged when it ends."""
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
        if order.kind != ASKED and rules.backfill != CONSERVATIVE:
            put(job, now[TIME], jobs, order, tree)
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
    """Start warm-up jobs first come, first served; hand over when the last has been submitted and none waits."""
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
    for k in range(later):  # in the order of arrival: nothing has left the queue yet
        job, at = queue.job[k], now[WAITING]
        if not jobs.able[job]:
            queue.where[job] = -1
            _reject(job, runs, now)
            continue
        queue.job[at], queue.where[job], queue.since[at] = job, at, queue.since[k]
        now[WAITING] += 1
    if order.kind != ASKED and rules.backfill != CONSERVATIVE:
        _lay_out_anew(jobs, order, queue, tree, now)
