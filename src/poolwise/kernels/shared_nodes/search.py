"""One pass of list scheduling without backfilling or with EASY, over a queue held in a tree.

What is backfilled is, again and again, the first by priority of the jobs that may start now and come after the last that did:
the jobs before it had their turn and were refused. Jobs of a kind are asked once: whether they fit, and whether they leave
the head room, follows from the kind. In the tree jobs of like kinds stand together, so a search passes by what is refused.
Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.order import comes_before
from poolwise.kernels.list_scheduling.state import (
    EASY,
    FORK,
    LENGTH,
    MOST_NODES,
    NODES,
    NONE,
    REMOTE,
    RESTING,
    WINNER,
    Order,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import decide, take
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.reservation import backfill, finds_room, leaves_room, may_start, reserve
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import (
    AWAITED,
    CORES,
    HEAD,
    PASSES,
    SETTLED,
    SHADOW,
    TIME,
    WAITING,
    JobArrays,
    KindArrays,
    NodeArrays,
    QueueArrays,
    Rules,
    RunArrays,
    TimelineArrays,
)
from poolwise.kernels.shared_nodes.timeline import is_overdue
from poolwise.kernels.shared_nodes.waiting import leave


@step
def search(
    jobs: JobArrays,
    kinds: KindArrays,
    order: Order,
    rules: Rules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    queue: QueueArrays,
    tree: Tree,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it."""
    if _is_settled(jobs, kinds, order, rules, nodes, timeline, queue, tree, now):
        return
    head = -1
    while now[WAITING] > 0:
        head = decide(now[TIME], order, tree)
        if not choose(jobs.nodes[head], rules, kinds, nodes):
            break
        start(head, jobs, kinds, nodes, timeline, runs, now)
        _remove(head, order, queue, tree, now)
        head = -1
    if head < 0:
        return
    now[HEAD], now[SETTLED] = head, 1  # a start unsettles it
    if rules.backfill == NONE or now[WAITING] < 2:
        now[AWAITED] = -1 if rules.backfill == NONE else now[AWAITED]
        now[SETTLED] = int(rules.backfill == NONE)
        return
    reserve(jobs.nodes[head], kinds, nodes, timeline, now)
    last = head
    while True:
        last = _next(head, last, jobs, kinds, order, rules, nodes, timeline, tree, now)
        if last < 0:
            return
        backfill(last, rules, jobs, kinds, nodes, timeline, runs, now)
        _remove(last, order, queue, tree, now)


@inlined
def _remove(job: int, order: Order, queue: QueueArrays, tree: Tree, now: IntArray) -> None:
    take(job, now[TIME], order, tree)
    leave(job, queue, now)


@inlined
def _is_settled(
    jobs: JobArrays,
    kinds: KindArrays,
    order: Order,
    rules: Rules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    queue: QueueArrays,
    tree: Tree,
    now: IntArray,
) -> bool:
    """Whether nothing can start since nothing could at the end of the last pass.

    The same head waits, the machine is the same now and at the shadow time, and time alone lets nobody in: less is left
    until the shadow time. So only jobs that joined the queue at this instant have to be asked.
    """
    if now[SETTLED] == 0 or is_overdue(timeline, now) or now[HEAD] != decide(now[TIME], order, tree):
        return False
    k = now[WAITING] - 1
    while rules.backfill != NONE and k >= 0 and queue.since[k] == now[PASSES] - 1:
        job = queue.job[k]
        if job != now[HEAD] and may_start(job, rules, jobs, kinds, nodes, timeline, now):
            return False
        k -= 1
    return True


@inlined
def _next(
    head: int,
    last: int,
    jobs: JobArrays,
    kinds: KindArrays,
    order: Order,
    rules: Rules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    tree: Tree,
    now: IntArray,
) -> int:
    """First by priority of the jobs after `last` that may be backfilled now; -1 if there is none."""
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
        if not _ask(row, kinds, rules, nodes, timeline, now):
            continue
        if row[FORK] == RESTING:
            if comes_before(last, job, now[TIME], order):
                best = job
            continue
        left = 2 * row[FORK]
        winner = left + int(tree.node[left, WINNER] != job)  # the winner's side is looked at first
        tree.stack[height], tree.stack[height + 1] = winner ^ 1, winner
        height += 2
    return best


@inlined
def _ask(row: IntArray, kinds: KindArrays, rules: Rules, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> bool:
    """Whether any of the jobs at and below a node may start; exact for a single one, and for jobs of one kind that end late."""
    ends = row[LENGTH] <= now[SHADOW] - now[TIME]
    if row[REMOTE] > nodes.top[1, CORES] or not (ends or rules.backfill == EASY):
        return False
    least, most = row[NODES], row[MOST_NODES]
    if kinds.group[least] != kinds.group[most]:
        return True
    if not finds_room(least, rules, kinds, nodes, now):  # it asks for the least of all
        return False
    return ends or least != most or leaves_room(least, rules, kinds, nodes, timeline, now)
