"""One pass of list scheduling without backfilling or with EASY over a queue held in a tree: the same starts as `easy.scan`.

Backfilled is, again and again, the first by priority of the jobs that may start now and come after the last that did: what
comes before it had its turn, and was refused then. The search passes by subtrees whose winner comes too late, or whose
least demands say that none of their jobs may start; jobs themselves are asked exactly.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.easy import is_settled
from poolwise.kernels.list_scheduling.order import comes_before
from poolwise.kernels.list_scheduling.racks import fits, place, roomiest, total
from poolwise.kernels.list_scheduling.reservation import leaves_room, may_start, reserve, try_start
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    EMPTY,
    HEAD,
    INNER,
    KIND,
    LENGTH,
    MOST_NODES,
    MOST_REMOTE,
    NODES,
    NONE,
    REMOTE,
    RESTING,
    SETTLED,
    SHADOW,
    SPARE_MEMORY,
    SPARE_MOST,
    SPARE_NODES,
    TIME,
    WAITING,
    WINNER,
    Jobs,
    Order,
    Queue,
    Racks,
    Rules,
    Runs,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import decide, take
from poolwise.kernels.list_scheduling.waiting import leave


@step
def search(jobs: Jobs, order: Order, rules: Rules, racks: Racks, queue: Queue, tree: Tree, runs: Runs, now: IntArray) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it."""
    head = -1
    while now[WAITING] > 0 and _any_fits(rules, racks, tree):
        head = decide(now[TIME], order, tree)
        if not place(jobs.nodes[head], jobs.remote[head], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            break
        start(head, jobs, rules, racks, runs, now)
        _remove(head, order, queue, tree, now)
        now[HEAD] = -1
        head = -1
    if rules.backfill == NONE or head < 0 or now[WAITING] < 2 or is_settled(head, jobs, rules, racks, queue, runs, now):
        return
    reserve(head, jobs, rules, racks, runs, now)
    now[SETTLED] = int(now[HEAD] == head)  # a start unsettles it
    last = -1
    while True:
        last = _next(head, last, jobs, order, rules, racks, tree, now)
        if last < 0:
            return
        try_start(last, head, jobs, rules, racks, runs, now)
        _remove(last, order, queue, tree, now)


@inlined
def _remove(job: int, order: Order, queue: Queue, tree: Tree, now: IntArray) -> None:
    take(job, now[TIME], order, tree)
    leave(job, queue, now)


@inlined
def _any_fits(rules: Rules, racks: Racks, tree: Tree) -> bool:
    """Whether some waiting job might find room now; if none does, no order can start anything."""
    root = tree.node[1]
    return fits(root[NODES], root[REMOTE], rules.anywhere, racks.free, racks.pool)


@inlined
def _next(head: int, last: int, jobs: Jobs, order: Order, rules: Rules, racks: Racks, tree: Tree, now: IntArray) -> int:
    """First by priority of the jobs after `last` (-1: of all) that may be backfilled now; -1 if there is none."""
    free, window = total(racks.free), now[SHADOW] - now[TIME]
    best = -1
    tree.stack[0] = 1
    height = 1
    while height > 0:
        height -= 1
        node = tree.stack[height]
        row = tree.node[node]
        if row[NODES] > free:
            continue
        job = row[WINNER]
        if best >= 0 and not comes_before(job, best, now[TIME], order):
            continue
        if row[LENGTH] > window and _delay(head, row, jobs, rules, racks, now):
            continue
        if not fits(row[NODES], row[REMOTE], rules.anywhere, racks.free, racks.pool):
            continue
        if row[KIND] == RESTING:
            turn = job != head and (last < 0 or comes_before(last, job, now[TIME], order))
            if turn and may_start(job, head, False, jobs, rules, racks, now):
                best = job
            continue
        left, right = 2 * node, 2 * node + 1
        if tree.node[right, KIND] != EMPTY and tree.node[right, WINNER] == job:  # the winner's side is looked at first
            left, right = right, left
        if tree.node[right, KIND] != EMPTY:
            tree.stack[height] = right
            height += 1
        tree.stack[height] = left
        height += 1
    return best


@inlined
def _delay(head: int, row: IntArray, jobs: Jobs, rules: Rules, racks: Racks, now: IntArray) -> bool:
    """Whether all jobs at and below a node would surely delay the head if they ran beyond its shadow time.

    They would if the least demanding asks for more than the head leaves over in all. Where the head needs memory of its own
    rack's pool, each rack has a part that it cannot do without. If the most demanding would stand whole in some rack, so
    would all, each in a rack with no fewer free nodes than that one, and with room for the least demanding; none of these
    may be able to spare what the least demanding takes.
    """
    n, least, remote = row[NODES], row[REMOTE], jobs.remote[head]
    if n > now[SPARE_NODES] or n * least > now[SPARE_MEMORY] or least > now[SPARE_MOST]:
        return True
    if rules.anywhere or remote == 0:
        return False
    last = roomiest(row[MOST_NODES], row[MOST_REMOTE], racks.free, racks.pool)
    if last < 0:
        return bool(row[KIND] == INNER and _delay_split(head, row, jobs, rules, racks, now))
    for r in range(racks.free.size):
        before = racks.free[r] > racks.free[last] or (racks.free[r] == racks.free[last] and r <= last)
        if before and racks.free[r] >= n and racks.pool[r] >= n * least:
            kept = racks.kept[r]
            if racks.then_free[r] - n >= kept and racks.then_pool[r] - n * least >= kept * remote:
                return False
    return True


@inlined
def _delay_split(head: int, row: IntArray, jobs: Jobs, rules: Rules, racks: Racks, now: IntArray) -> bool:
    """The same for jobs of as many nodes each that no rack holds whole, where any rack's pool lends to all its free nodes.

    Then all of them would take the same nodes, and the least demanding would leave the head most.
    """
    n, least, most = row[NODES], row[REMOTE], row[MOST_REMOTE]
    if n < row[MOST_NODES]:
        return False
    for r in range(racks.free.size):
        if racks.pool[r] < racks.free[r] * most:
            return False
    fit = place(n, least, rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow)
    return fit and not leaves_room(head, False, jobs, rules, racks, now)
