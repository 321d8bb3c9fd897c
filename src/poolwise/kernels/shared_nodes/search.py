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
from poolwise.kernels.shared_nodes.reservation import backfill, leaves_room, may_start, reserve, window
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import (
    CORES,
    ELSEWHERE,
    HEAD,
    KEPT,
    PASSES,
    SETTLED,
    TIME,
    WAITING,
    WINDOW,
    KindArrays,
    NodeArrays,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    ThenArrays,
    TimelineArrays,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.timeline import is_overdue
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.kernels.shared_nodes.windows import ever_shut, kind_now, shut_now
from poolwise.units import NEVER


@step
def search(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it."""
    if _is_settled(jobs, kinds, order, rules, nodes, timeline, then, windows, queue, tree, now):
        return
    head = -1
    while now[WAITING] > 0:
        head = decide(now[TIME], order, tree)
        kind = kind_now(head, jobs, windows, now)
        if (head == now[HEAD] and not finds_room(kind, kinds, nodes, now)) or not choose(kind, rules, kinds, nodes):
            break
        start(head, rules, jobs, kinds, nodes, timeline, runs, now)
        now[KEPT] = -1
        _remove(head, order, queue, tree, now)
        head = -1
    if head < 0:
        return
    now[HEAD], now[SETTLED] = head, int(rules.backfill == NONE)
    if rules.backfill == NONE or now[WAITING] < 2:
        return
    reserve(head, jobs, kinds, nodes, timeline, then, windows, runs, now)
    now[SETTLED], now[ELSEWHERE] = 1, NEVER  # a start unsettles it
    last = head
    while True:
        last = _next(head, last, jobs, kinds, order, rules, nodes, timeline, then, windows, tree, now)
        if last < 0:
            return
        backfill(last, rules, jobs, kinds, nodes, timeline, then, windows, runs, now)
        _remove(last, order, queue, tree, now)


@inlined
def _remove(job: int, order: Order, queue: SharedQueue, tree: Tree, now: IntArray) -> None:
    take(job, now[TIME], order, tree)
    leave(job, queue, now)


@inlined
def _is_settled(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    now: IntArray,
) -> bool:
    """Whether nothing can start since nothing could at the end of the last pass.

    The same head waits, the machine is the same now and at the shadow time, and time alone lets nobody in: less is left
    until the shadow time. So only jobs that joined the queue at this instant have to be asked. But as a window comes nearer,
    a job may be placed where it leaves the head room.
    """
    if windows is not None and now[TIME] >= now[ELSEWHERE]:
        return False
    if now[SETTLED] == 0 or is_overdue(timeline, now) or now[HEAD] != decide(now[TIME], order, tree):
        return False
    now[WINDOW] = window(now)
    k = now[WAITING] - 1
    while rules.backfill != NONE and k >= 0 and queue.since[k] == now[PASSES] - 1:
        job = queue.job[k]
        if job != now[HEAD] and may_start(job, rules, jobs, kinds, nodes, timeline, then, windows, now):
            return False
        k -= 1
    return True


@inlined
def _next(
    head: int,
    last: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
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
        if not _ask(row, kinds, rules, nodes, windows, now):
            continue
        if row[FORK] == RESTING:
            turn = comes_before(last, job, now[TIME], order)
            if turn and may_start(job, rules, jobs, kinds, nodes, timeline, then, windows, now):
                best = job
            continue
        if _all_late(row, now) and not _any_leaves_room(row, rules, jobs, kinds, nodes, timeline, then, windows, now):
            continue
        left = 2 * row[FORK]
        winner = left + int(tree.node[left, WINNER] != job)  # the winner's side is looked at first
        tree.stack[height], tree.stack[height + 1] = winner ^ 1, winner
        height += 2
    return best


@inlined
def _ask(
    row: IntArray, kinds: KindArrays, rules: SharedRules, nodes: NodeArrays, windows: WindowArrays | None, now: IntArray
) -> bool:
    """Whether any of the jobs at and below a node of the tree may find room, and end in time where that is asked for."""
    ends = row[LENGTH] <= now[WINDOW]
    if row[REMOTE] > nodes.top[1, CORES] or not (ends or rules.backfill == EASY):
        return False
    least = row[NODES]
    if kinds.group[least] != kinds.group[row[MOST_NODES]]:
        return True
    if windows is not None:
        least += shut_now(least, row[LENGTH], windows, now)  # to the others below, which last longer, more is shut
    return finds_room(least, kinds, nodes, now)  # it asks for the least of all


@inlined
def _all_late(row: IntArray, now: IntArray) -> bool:
    """Whether all jobs below are of one kind and end after the shadow time."""
    return bool(row[NODES] == row[MOST_NODES] and row[LENGTH] > now[WINDOW])


@inlined
def _any_leaves_room(
    row: IntArray,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
    now: IntArray,
) -> bool:
    """Whether any of the jobs below, of one kind, leaves the head room: beside windows longer ones are placed on other nodes.

    Groups that are open to such a job now may be shut to it before a window ends; that is asked about as well.
    """
    kind = row[NODES]
    if windows is None:
        return leaves_room(kind, rules, jobs, kinds, nodes, timeline, then, now)
    least, most = shut_now(kind, row[LENGTH], windows, now), ever_shut(kind, windows)
    for shut in range(least, most + 1):
        if shut & least != least or shut & ~most != 0 or not finds_room(kind + shut, kinds, nodes, now):
            continue
        if leaves_room(kind + shut, rules, jobs, kinds, nodes, timeline, then, now):
            return True
    return False
