"""One pass of list scheduling without backfilling or with EASY over a queue in a tree: the same starts as `easy.scan`.

The next backfilled job is always the first by priority of the startable jobs after the last started job: the jobs before it
have already been rejected in this pass. The search prunes subtrees whose winner comes too late, or whose minimum demands show
that none of their jobs may start; single jobs are tested exactly.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.order import comes_before
from poolwise.kernels.common.state import FORK, LEAF, LENGTH, MAJOR, MINOR, MOST_MAJOR, MOST_MINOR, NONE, WINNER, Tree
from poolwise.kernels.common.tournament import decide, insert, push_children, remove
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.closed_form import classify, classify_all, prepare_bounds
from poolwise.kernels.list_scheduling.easy import is_settled
from poolwise.kernels.list_scheduling.racks import fits, place_job
from poolwise.kernels.list_scheduling.reservation import backfill, may_start, reserve
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import BLOCKED, STARTABLE, UNDECIDED, RackState
from poolwise.kernels.list_scheduling.waiting import leave, oldest
from poolwise.quantities import NEVER


@step
def search(state: RackState, tree: Tree, heads: Tree) -> None:
    """Start jobs in order until one does not fit, the head; backfill the others in `backfill_order`."""
    rules, now = state.rules, state.now
    head = _first(state, tree, heads)
    if is_settled(head, state):
        return
    head = -1
    while now.waiting > 0 and _any_fits(state, tree):
        head = _first(state, tree, heads)
        if not place_job(head, state):
            break
        start(head, state)
        _remove(head, state, tree, heads)
        now.head = -1
        head = -1
    if rules.backfill == NONE or head < 0 or now.waiting < 2:
        return
    reserve(head, state)
    now.settled = int(now.head == head)  # a start resets it
    last = -1
    while True:
        if rules.closed:
            prepare_bounds(head, state)
        last = _next(head, last, state, tree)
        if last < 0:
            return
        backfill(last, head, state)
        _remove(last, state, tree, heads)


@inlined
def index(job: int, state: RackState, tree: Tree, heads: Tree) -> None:
    """Insert a waiting job into the trees."""
    now = state.now
    insert(job, now.time, state.backfill_order, tree)
    if state.rules.separate_order:
        insert(job, now.time, state.order, heads)


@inlined
def _remove(job: int, state: RackState, tree: Tree, heads: Tree) -> None:
    now = state.now
    remove(job, now.time, state.backfill_order, tree)
    if state.rules.separate_order:
        remove(job, now.time, state.order, heads)
    leave(job, state)


@inlined
def _first(state: RackState, tree: Tree, heads: Tree) -> int:
    """Return the first waiting job by priority, and settle the winners of both trees."""
    order, rules, now = state.order, state.rules, state.now
    first = decide(now.time, state.backfill_order, tree)
    if rules.separate_order:
        first = decide(now.time, order, heads)
    if rules.capped:
        job = oldest(state.queue, now)
        if order.submit[job] <= now.front:
            return job
    return first


@inlined
def _any_fits(state: RackState, tree: Tree) -> bool:
    """Return whether some waiting job might fit now; if none does, no order can start anything."""
    root, racks = tree.node[1], state.racks
    return fits(0, root[MAJOR], root[MINOR], not state.rules.closed, None, racks.free, racks.pool)


@inlined
def _next(head: int, last: int, state: RackState, tree: Tree) -> int:
    """Return the first job by priority after `last` (-1: of all) that may be backfilled now; -1 if there is none."""
    order, rules, now = state.backfill_order, state.rules, state.now
    by = -NEVER if rules.separate_order else now.front
    in_front = last < 0 or order.submit[last] <= by
    if rules.capped and in_front:
        best = _next_in_front(head, last, by, state)
        if best >= 0:
            return best
    best = -1
    tree.stack[0] = 1
    height = 1
    while height > 0:
        height -= 1
        node = tree.stack[height]
        row = tree.node[node]
        job = row[WINNER]
        if best >= 0 and not comes_before(job, best, now.time, order):
            continue
        answer = _classify_subtree(head, row, state)
        if answer == BLOCKED:
            continue
        if row[FORK] == LEAF:
            turn = (in_front or comes_before(last, job, now.time, order)) and order.submit[job] > by
            if turn and (answer == STARTABLE or may_start(job, head, state)):
                best = job
            continue
        height = push_children(row, height, tree)
    return best


@step
def _next_in_front(head: int, last: int, by: int, state: RackState) -> int:
    """Return the first job by submit time after `last`, submitted by a given time, that may be backfilled now; or -1."""
    jobs, now = state.jobs, state.now
    job = max(last + 1, now.oldest)
    while job < now.next and state.backfill_order.submit[job] <= by:
        if state.queue.where[job] >= 0:
            answer = classify(jobs.nodes[job], jobs.remote[job], jobs.length[job] <= now.window, head, state)
            if answer == STARTABLE or (answer == UNDECIDED and may_start(job, head, state)):
                return int(job)
        job += 1
    return -1


@inlined
def _classify_subtree(head: int, row: IntArray, state: RackState) -> int:
    """Return BLOCKED if no job at or below a node may start, STARTABLE if it is a leaf whose job may, else UNDECIDED."""
    racks, now = state.racks, state.now
    n, remote = row[MAJOR], row[MINOR]
    short = row[LENGTH] <= now.window
    if not short and (n > now.extra_nodes or n * remote > now.extra_memory or remote > now.extra_per_node):
        return BLOCKED  # more than the extra nodes and memory of all racks
    if not state.rules.closed:
        return UNDECIDED if fits(0, n, remote, True, None, racks.free, racks.pool) else BLOCKED
    if row[FORK] == LEAF:
        return classify(n, remote, short, head, state)
    return classify_all(n, remote, row[MOST_MAJOR], row[MOST_MINOR], short, state)
