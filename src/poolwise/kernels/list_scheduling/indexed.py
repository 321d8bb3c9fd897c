"""One pass of list scheduling without backfilling or with EASY over a queue held in a tree: the same starts as `easy.scan`.

What is backfilled is, again and again, the first by priority of the jobs that may start now and come after the last that did:
the jobs before it had their turn and were refused. The search passes by subtrees whose winner comes too late, or whose
least demands say that none of their jobs may start; jobs themselves are asked exactly.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.closed_form import verdict, verdict_of_all, weigh
from poolwise.kernels.list_scheduling.easy import is_settled
from poolwise.kernels.list_scheduling.order import comes_before
from poolwise.kernels.list_scheduling.racks import fits, place
from poolwise.kernels.list_scheduling.reservation import may_start, reserve, try_start
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    FORK,
    FRONT,
    HEAD,
    LENGTH,
    MOST_NODES,
    MOST_REMOTE,
    NEXT,
    NODES,
    NONE,
    OLDEST,
    PERHAPS,
    REFUSED,
    REMOTE,
    RESTING,
    SETTLED,
    SPARE_MEMORY,
    SPARE_MOST,
    SPARE_NODES,
    TIME,
    WAITING,
    WELCOME,
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
from poolwise.kernels.list_scheduling.tournament import decide, put, take
from poolwise.kernels.list_scheduling.waiting import leave, oldest
from poolwise.units import NEVER


@step
def search(
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
) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it, in the order `beside`."""
    head = _first(order, beside, rules, queue, tree, heads, now)
    if is_settled(head, jobs, rules, racks, queue, runs, now):
        return
    head = -1
    while now[WAITING] > 0 and _any_fits(rules, racks, tree):
        head = _first(order, beside, rules, queue, tree, heads, now)
        if not place(jobs.nodes[head], jobs.remote[head], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            break
        start(head, jobs, rules, racks, runs, now)
        _remove(head, order, beside, rules, queue, tree, heads, now)
        now[HEAD] = -1
        head = -1
    if rules.backfill == NONE or head < 0 or now[WAITING] < 2:
        return
    reserve(head, jobs, rules, racks, runs, now)
    now[SETTLED] = int(now[HEAD] == head)  # a start unsettles it
    last = -1
    while True:
        if not rules.anywhere:
            weigh(head, jobs, rules, racks, now)
        last = _next(head, last, jobs, beside, rules, racks, queue, tree, now)
        if last < 0:
            return
        try_start(last, head, jobs, rules, racks, runs, now)
        _remove(last, order, beside, rules, queue, tree, heads, now)


@inlined
def index(job: int, jobs: JobArrays, order: Order, beside: Order, rules: Rules, tree: Tree, heads: Tree, now: IntArray) -> None:
    """Put a waiting job into the trees."""
    put(job, now[TIME], jobs, beside, tree)
    if rules.apart:
        put(job, now[TIME], jobs, order, heads)


@inlined
def _remove(
    job: int, order: Order, beside: Order, rules: Rules, queue: QueueArrays, tree: Tree, heads: Tree, now: IntArray
) -> None:
    take(job, now[TIME], beside, tree)
    if rules.apart:
        take(job, now[TIME], order, heads)
    leave(job, queue, now)


@inlined
def _first(order: Order, beside: Order, rules: Rules, queue: QueueArrays, tree: Tree, heads: Tree, now: IntArray) -> int:
    """First waiting job by priority; both trees are decided."""
    first = decide(now[TIME], beside, tree)
    if rules.apart:
        first = decide(now[TIME], order, heads)
    if rules.capped:
        job = oldest(queue, now)
        if order.submit[job] <= now[FRONT]:
            return job
    return first


@inlined
def _any_fits(rules: Rules, racks: RackArrays, tree: Tree) -> bool:
    """Whether some waiting job might find room now; if none does, no order can start anything."""
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
    """First by priority of the jobs after `last` (-1: of all) that may be backfilled now; -1 if there is none."""
    by = -NEVER if rules.apart else now[FRONT]
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
        says = _ask(head, row, jobs, rules, racks, now)
        if says == REFUSED:
            continue
        if row[FORK] == RESTING:
            turn = (in_front or comes_before(last, job, now[TIME], order)) and order.submit[job] > by
            if turn and (says == WELCOME or may_start(job, head, jobs, rules, racks, now)):
                best = job
            continue
        left = 2 * row[FORK]
        winner = left + int(tree.node[left, WINNER] != job)  # the winner's side is looked at first
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
    """First by submission of the jobs after `last` that were submitted by a time and may be backfilled now; or -1."""
    job = max(last + 1, now[OLDEST])
    while job < now[NEXT] and order.submit[job] <= by:
        if queue.where[job] >= 0:
            says = PERHAPS
            if not rules.anywhere:
                says = verdict(jobs.nodes[job], jobs.remote[job], jobs.length[job] <= now[WINDOW], head, jobs, racks, now)
            if says == WELCOME or (says == PERHAPS and may_start(job, head, jobs, rules, racks, now)):
                return int(job)
        job += 1
    return -1


@inlined
def _ask(head: int, row: IntArray, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> int:
    """REFUSED if none of the jobs at and below a node may start, WELCOME if it is a single one and may, else PERHAPS."""
    n, remote = row[NODES], row[REMOTE]
    ends = row[LENGTH] <= now[WINDOW]
    if not ends and (n > now[SPARE_NODES] or n * remote > now[SPARE_MEMORY] or remote > now[SPARE_MOST]):
        return REFUSED  # more than the head leaves over in all
    if rules.anywhere:
        return PERHAPS if fits(n, remote, True, racks.free, racks.pool) else REFUSED
    if row[FORK] == RESTING:
        return verdict(n, remote, ends, head, jobs, racks, now)
    return verdict_of_all(n, remote, row[MOST_NODES], row[MOST_REMOTE], ends, racks, now)
