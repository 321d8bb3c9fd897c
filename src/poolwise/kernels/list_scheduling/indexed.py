"""One pass of list scheduling without backfilling or with EASY over an indexed queue: the same starts as `easy.scan`.

Candidates come out of the index by priority, each class offering its first job at a time: of those that end in time, or
of all where the head may leave room beyond the shadow time. What is offered is a superset, and each candidate is then
asked exactly (`easy.try_start`), once, at its turn.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling.easy import spare, try_start
from poolwise.kernels.list_scheduling.order import comes_before
from poolwise.kernels.list_scheduling.racks import fits, place, total
from poolwise.kernels.list_scheduling.runs import reserve, start
from poolwise.kernels.list_scheduling.state import (
    CLASSES,
    HEAD,
    NONE,
    SHADOW,
    TIME,
    WAITING,
    Index,
    Jobs,
    Order,
    Queue,
    Racks,
    Rules,
    Runs,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import as_long_as, clear, decide, first_of, put
from poolwise.kernels.list_scheduling.waiting import leave

# Index.offer: all jobs of the class; those that may end in time; those only as long as nothing starts
UNKNOWN, ALL, IN_TIME, PAUSED = range(4)


@step
def insert(job: int, order: Order, index: Index, tree: Tree, now: IntArray) -> None:
    """Let the index hold a job that joined the queue."""
    put(job, index.leaf[job], now[TIME], order, tree)
    c = index.of[job]
    length = index.length[index.leaf[job]]
    index.shortest[c] = length if index.waiting[c] == 0 else min(index.shortest[c], length)
    index.waiting[c] += 1


@step
def _remove(job: int, order: Order, queue: Queue, index: Index, tree: Tree, now: IntArray) -> None:
    put(-1, index.leaf[job], now[TIME], order, tree)
    index.waiting[index.of[job]] -= 1
    leave(job, queue, now)


@step
def forget(queue: Queue, index: Index, tree: Tree, now: IntArray) -> None:
    """Let the index hold nothing."""
    for k in range(now[WAITING]):
        clear(index.leaf[queue.job[k]], tree)
    for c in range(index.waiting.size):
        index.waiting[c] = 0


@step
def search(
    jobs: Jobs, order: Order, rules: Rules, racks: Racks, queue: Queue, index: Index, tree: Tree, runs: Runs, now: IntArray
) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it."""
    if not _open(rules, racks, index, now):
        return
    head = -1
    started = False
    while now[WAITING] > 0:
        head = decide(1, now[TIME], order, tree)
        if not place(jobs.nodes[head], jobs.remote[head], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            break
        start(head, jobs, rules, racks, runs, now)
        _remove(head, order, queue, index, tree, now)
        now[HEAD] = -1
        started = True
    if rules.backfill == NONE or now[WAITING] < 2 or (started and not _open(rules, racks, index, now)):
        return
    reserve(head, jobs, rules, racks, runs, now)
    put(-1, index.leaf[head], now[TIME], order, tree)
    _backfill(head, jobs, order, rules, racks, queue, index, tree, runs, now)
    put(head, index.leaf[head], now[TIME], order, tree)


@step
def _open(rules: Rules, racks: Racks, index: Index, now: IntArray) -> bool:
    """List the classes with waiting jobs of which the least demanding might fit now; whether there is one."""
    free = total(racks.free)
    count = 0
    for c in range(index.waiting.size):
        if index.nodes[c] > free:
            break  # classes stand in the order of their nodes
        if index.waiting[c] > 0 and fits(index.nodes[c], index.least[c], rules.anywhere, racks.free, racks.pool):
            index.open[count] = c
            count += 1
    now[CLASSES] = count
    return count > 0


@step
def _backfill(
    head: int,
    jobs: Jobs,
    order: Order,
    rules: Rules,
    racks: Racks,
    queue: Queue,
    index: Index,
    tree: Tree,
    runs: Runs,
    now: IntArray,
) -> None:
    """Take the first by priority of what the open classes offer, again and again."""
    for k in range(now[CLASSES]):
        index.offer[index.open[k]] = UNKNOWN
    _narrow(-1, head, jobs, order, rules, racks, index, tree, now)
    last, aside = -1, 0
    while True:
        c = _first_class(order, index, now)
        if c < 0:
            break
        job = index.best[c]
        # What comes before the last start had its turn while its class was paused, and was refused then.
        turn = last < 0 or comes_before(last, job, now[TIME], order)
        if turn and try_start(job, head, jobs, rules, racks, runs, now):
            _remove(job, order, queue, index, tree, now)
            last = job
            _narrow(c, head, jobs, order, rules, racks, index, tree, now)
            continue
        if index.waiting[c] == 1:
            index.best[c] = -1  # the only one: no need to take it out to see who is next
            continue
        put(-1, index.leaf[job], now[TIME], order, tree)
        index.aside[aside] = job
        aside += 1
        _offer(c, order, index, tree, now)
    for k in range(aside):
        put(index.aside[k], index.leaf[index.aside[k]], now[TIME], order, tree)


@step
def _first_class(order: Order, index: Index, now: IntArray) -> int:
    """Open class whose offer comes first, -1 if none offers anything."""
    best = -1
    for k in range(now[CLASSES]):
        c = index.open[k]
        if index.best[c] >= 0 and (best < 0 or comes_before(index.best[c], index.best[best], now[TIME], order)):
            best = c
    return best


@step
def _narrow(
    changed: int, head: int, jobs: Jobs, order: Order, rules: Rules, racks: Racks, index: Index, tree: Tree, now: IntArray
) -> None:
    """After a start from class `changed`: close the classes that no longer fit, and offers that surely delay the head.

    Both are final within a pass, for what is free now and what the head leaves over only shrink. Not final is a pause:
    in another state the jobs would stand in another rack. So each class is looked at again after each start.
    """
    free = total(racks.free)
    nodes, memory, most = spare(head, jobs, rules, racks)
    count = 0
    for k in range(now[CLASSES]):
        c = index.open[k]
        n = index.nodes[c]
        if n > free or not fits(n, index.least[c], rules.anywhere, racks.free, racks.pool):
            continue
        index.open[count] = c
        count += 1
        offer = index.offer[c]
        if n > nodes or n * index.least[c] > memory or index.least[c] > most:
            index.offer[c] = IN_TIME
        else:
            index.offer[c] = PAUSED if _refused(c, head, jobs, rules, racks, index) else ALL
        if c == changed or offer != index.offer[c]:
            _offer(c, order, index, tree, now)
    now[CLASSES] = count


@step
def _refused(c: int, head: int, jobs: Jobs, rules: Rules, racks: Racks, index: Index) -> bool:
    """Whether all jobs of a class that end too late would surely delay the head if they started now.

    It is so if they all stand whole in one and the same rack, and there already the least demanding delays the head. They
    do if the least and the most demanding stand in the same rack: it has most free nodes of all that hold the least
    demanding, hence of all that hold one in between, of which it is one. Where the head needs no remote memory, or any
    pool will do, `spare` has been exact.
    """
    if rules.anywhere or jobs.remote[head] == 0:
        return False
    n, least = index.nodes[c], index.least[c]
    rack = _roomiest(n, least, racks)
    if rack < 0 or (index.most[c] != least and _roomiest(n, index.most[c], racks) != rack):
        return False
    kept = racks.kept[rack]
    nodes, memory = racks.then_free[rack] - n, racks.then_pool[rack] - n * least
    return bool(nodes < kept or memory < kept * jobs.remote[head])


@step
def _roomiest(n: int, remote: int, racks: Racks) -> int:
    """Rack with most free nodes of those that hold a whole job, -1 if none does."""
    best = -1
    for r in range(racks.free.size):
        if racks.free[r] >= n and racks.pool[r] >= n * remote and (best < 0 or racks.free[r] > racks.free[best]):
            best = r
    return best


@step
def _offer(c: int, order: Order, index: Index, tree: Tree, now: IntArray) -> None:
    """Find the first by priority of what a class offers: all, or what may end by the shadow time."""
    low, high = index.first[c], index.first[c + 1]
    if index.offer[c] != ALL:
        if index.shortest[c] > now[SHADOW] - now[TIME]:
            index.best[c] = -1
            return
        high = as_long_as(now[SHADOW] - now[TIME], low, high, index.length)
    index.best[c] = first_of(low, high, now[TIME], order, tree)
