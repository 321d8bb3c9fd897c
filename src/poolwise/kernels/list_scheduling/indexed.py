"""One pass of list scheduling without backfilling or with EASY over a queue in a tree: the same starts as `easy.scan`.

The next backfilled job is always the first by priority of the startable jobs after the one started last: the jobs before it
have already been rejected in this pass. The search prunes subtrees whose winner comes too late, or whose minimum demands show
that none of their jobs may start; single jobs are tested exactly.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.closed_form import classify, classify_all, prepare_bounds
from poolwise.kernels.list_scheduling.easy import is_settled
from poolwise.kernels.list_scheduling.order import comes_before
from poolwise.kernels.list_scheduling.racks import fits, place
from poolwise.kernels.list_scheduling.reservation import may_start, reserve, try_start
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    BLOCKED,
    EXTRA_MEMORY,
    EXTRA_NODES,
    EXTRA_PER_NODE,
    FORK,
    FRONT,
    HEAD,
    LEAF,
    LENGTH,
    MOST_NODES,
    MOST_REMOTE,
    NEXT,
    NODES,
    NONE,
    OLDEST,
    REMOTE,
    SETTLED,
    STARTABLE,
    TIME,
    UNDECIDED,
    WAITING,
    WINDOW,
    WINNER,
    JobArrays,
    Order,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import decide, insert, remove
from poolwise.kernels.list_scheduling.waiting import leave, oldest
from poolwise.units import NEVER


@step
def search(
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
) -> None:
    """Start jobs in order until one does not fit, the head; backfill the others in `backfill_order`."""
    head = _first(order, backfill_order, rules, queue, tree, heads, now)
    if is_settled(head, jobs, rules, racks, queue, runs, now):
        return
    head = -1
    while now[WAITING] > 0 and _any_fits(rules, racks, tree):
        head = _first(order, backfill_order, rules, queue, tree, heads, now)
        if not place(jobs.nodes[head], jobs.remote[head], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            break
        start(head, jobs, rules, racks, runs, now)
        _remove(head, order, backfill_order, rules, queue, tree, heads, now)
        now[HEAD] = -1
        head = -1
    if rules.backfill == NONE or head < 0 or now[WAITING] < 2:
        return
    reserve(head, jobs, rules, racks, runs, now)
    now[SETTLED] = int(now[HEAD] == head)  # a start resets it
    last = -1
    while True:
        if not rules.anywhere:
            prepare_bounds(head, jobs, rules, racks, now)
        last = _next(head, last, jobs, backfill_order, rules, racks, queue, tree, now)
        if last < 0:
            return
        try_start(last, head, jobs, rules, racks, runs, now)
        _remove(last, order, backfill_order, rules, queue, tree, heads, now)


@inlined
def index(
    job: int, jobs: JobArrays, order: Order, backfill_order: Order, rules: Rules, tree: Tree, heads: Tree, now: IntArray
) -> None:
    """Insert a waiting job into the trees."""
    insert(job, now[TIME], jobs, backfill_order, tree)
    if rules.separate_order:
        insert(job, now[TIME], jobs, order, heads)


@inlined
def _remove(
    job: int, order: Order, backfill_order: Order, rules: Rules, queue: QueueArrays, tree: Tree, heads: Tree, now: IntArray
) -> None:
    remove(job, now[TIME], backfill_order, tree)
    if rules.separate_order:
        remove(job, now[TIME], order, heads)
    leave(job, queue, now)


@inlined
def _first(
    order: Order, backfill_order: Order, rules: Rules, queue: QueueArrays, tree: Tree, heads: Tree, now: IntArray
) -> int:
    """Return the first waiting job by priority, and settle the winners of both trees."""
    first = decide(now[TIME], backfill_order, tree)
    if rules.separate_order:
        first = decide(now[TIME], order, heads)
    if rules.capped:
        job = oldest(queue, now)
        if order.submit[job] <= now[FRONT]:
            return job
    return first


@inlined
def _any_fits(rules: Rules, racks: RackArrays, tree: Tree) -> bool:
    """Return whether some waiting job might fit now; if none does, no order can start anything."""
    root = tree.node[1]
    return fits(root[NODES], root[REMOTE], rules.anywhere, racks.free, racks.pool)


@inlined
def _next(
    head: int,
    last: int,
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    tree: Tree,
    now: IntArray,
) -> int:
    """Return the first job by priority after `last` (-1: of all) that may be backfilled now; -1 if there is none."""
    by = -NEVER if rules.separate_order else now[FRONT]
    in_front = last < 0 or order.submit[last] <= by
    if rules.capped and in_front:
        best = _next_in_front(head, last, by, jobs, order, rules, racks, queue, now)
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
        if best >= 0 and not comes_before(job, best, now[TIME], order):
            continue
        answer = _classify_subtree(head, row, jobs, rules, racks, now)
        if answer == BLOCKED:
            continue
        if row[FORK] == LEAF:
            turn = (in_front or comes_before(last, job, now[TIME], order)) and order.submit[job] > by
            if turn and (answer == STARTABLE or may_start(job, head, jobs, rules, racks, now)):
                best = job
            continue
        left = 2 * row[FORK]
        winner = left + int(tree.node[left, WINNER] != job)  # visit the winner's side first
        tree.stack[height], tree.stack[height + 1] = winner ^ 1, winner
        height += 2
    return best


@step
def _next_in_front(
    head: int,
    last: int,
    by: int,
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    now: IntArray,
) -> int:
    """Return the first job by submit time after `last`, submitted by a given time, that may be backfilled now; or -1."""
    job = max(last + 1, now[OLDEST])
    while job < now[NEXT] and order.submit[job] <= by:
        if queue.where[job] >= 0:
            answer = UNDECIDED
            if not rules.anywhere:
                answer = classify(jobs.nodes[job], jobs.remote[job], jobs.length[job] <= now[WINDOW], head, jobs, racks, now)
            if answer == STARTABLE or (answer == UNDECIDED and may_start(job, head, jobs, rules, racks, now)):
                return int(job)
        job += 1
    return -1


@inlined
def _classify_subtree(head: int, row: IntArray, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> int:
    """Return BLOCKED if no job at or below a node may start, STARTABLE if it is a leaf whose job may, else UNDECIDED."""
    n, remote = row[NODES], row[REMOTE]
    short = row[LENGTH] <= now[WINDOW]
    if not short and (n > now[EXTRA_NODES] or n * remote > now[EXTRA_MEMORY] or remote > now[EXTRA_PER_NODE]):
        return BLOCKED  # more than the extra nodes and memory of all racks
    if rules.anywhere:
        return UNDECIDED if fits(n, remote, True, racks.free, racks.pool) else BLOCKED
    if row[FORK] == LEAF:
        return classify(n, remote, short, head, jobs, racks, now)
    return classify_all(n, remote, row[MOST_NODES], row[MOST_REMOTE], short, racks, now)
