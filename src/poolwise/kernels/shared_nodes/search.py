"""One pass of list scheduling without backfilling or with EASY, over a queue in a tree.

The next backfilled job is always the first by priority of the startable jobs after the one started last: the jobs before it
have already been rejected in this pass. Jobs of a kind share their tests: whether they fit, and whether they leave the head
room, depends only on the kind. The tree keeps similar kinds together, so that a search prunes subtrees without candidates.
Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.order import comes_before
from poolwise.kernels.list_scheduling.state import (
    EASY,
    FORK,
    LEAF,
    LENGTH,
    MOST_NODES,
    NODES,
    NONE,
    REMOTE,
    WINNER,
    Order,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import decide, remove
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.reservation import backfill, leaves_room, may_start, reserve, window
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import (
    CORES,
    HEAD,
    NEXT_SHIFT,
    PASSES,
    SETTLED,
    SHADOW_KIND,
    TIME,
    WAITING,
    WINDOW,
    KindArrays,
    NodeArrays,
    ShadowArrays,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    TimelineArrays,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.timeline import is_overdue
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.kernels.shared_nodes.windows import closed_now, ever_closed, kind_now
from poolwise.units import NEVER


@step
def search(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Start jobs in order until one does not fit, the head; backfill the others."""
    if _is_settled(jobs, kinds, order, rules, nodes, timeline, at_shadow, windows, queue, tree, now):
        return
    head = -1
    while now[WAITING] > 0:
        head = decide(now[TIME], order, tree)
        kind = kind_now(head, jobs, windows, now)
        if (head == now[HEAD] and not finds_room(kind, kinds, nodes, now)) or not choose(kind, rules, kinds, nodes):
            break
        start(head, rules, jobs, kinds, nodes, timeline, runs, now)
        now[SHADOW_KIND] = -1
        _remove(head, order, queue, tree, now)
        head = -1
    if head < 0:
        return
    now[HEAD], now[SETTLED] = head, int(rules.backfill == NONE)
    if rules.backfill == NONE or now[WAITING] < 2:
        return
    reserve(head, jobs, kinds, nodes, timeline, at_shadow, windows, runs, now)
    now[SETTLED], now[NEXT_SHIFT] = 1, NEVER  # a start resets it
    last = head
    while True:
        last = _next(head, last, jobs, kinds, order, rules, nodes, timeline, at_shadow, windows, tree, now)
        if last < 0:
            return
        backfill(last, rules, jobs, kinds, nodes, timeline, at_shadow, windows, runs, now)
        _remove(last, order, queue, tree, now)


@inlined
def _remove(job: int, order: Order, queue: SharedQueue, tree: Tree, now: IntArray) -> None:
    remove(job, now[TIME], order, tree)
    leave(job, queue, now)


@inlined
def _is_settled(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    queue: SharedQueue,
    tree: Tree,
    now: IntArray,
) -> bool:
    """Return whether nothing can start because nothing could at the end of the last pass.

    The head is the same, and so is the machine now and at the shadow time. The passing of time alone admits no candidate, since
    less is left until the shadow time. So only jobs that joined the queue at this instant are tested. However, an approaching
    window may move a job to nodes where it leaves the head room.
    """
    if windows is not None and now[TIME] >= now[NEXT_SHIFT]:
        return False
    if now[SETTLED] == 0 or is_overdue(timeline, now) or now[HEAD] != decide(now[TIME], order, tree):
        return False
    now[WINDOW] = window(now)
    k = now[WAITING] - 1
    while rules.backfill != NONE and k >= 0 and queue.since[k] == now[PASSES] - 1:
        job = queue.job[k]
        if job != now[HEAD] and may_start(job, rules, jobs, kinds, nodes, timeline, at_shadow, windows, now):
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
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    tree: Tree,
    now: IntArray,
) -> int:
    """Return the first job by priority after `last` that may be backfilled now; -1 if there is none."""
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
        if not _may_contain_candidate(row, kinds, rules, nodes, windows, now):
            continue
        if row[FORK] == LEAF:
            turn = comes_before(last, job, now[TIME], order)
            if turn and may_start(job, rules, jobs, kinds, nodes, timeline, at_shadow, windows, now):
                best = job
            continue
        if _all_long(row, now) and not _any_leaves_room(row, rules, jobs, kinds, nodes, timeline, at_shadow, windows, now):
            continue
        left = 2 * row[FORK]
        winner = left + int(tree.node[left, WINNER] != job)  # visit the winner's side first
        tree.stack[height], tree.stack[height + 1] = winner ^ 1, winner
        height += 2
    return best


@inlined
def _may_contain_candidate(
    row: IntArray, kinds: KindArrays, rules: SharedRules, nodes: NodeArrays, windows: WindowArrays | None, now: IntArray
) -> bool:
    """Return whether any job at or below a node of the tree may fit, and end by the shadow time where that is required."""
    short = row[LENGTH] <= now[WINDOW]
    if row[REMOTE] > nodes.top[1, CORES] or not (short or rules.backfill == EASY):
        return False
    least = row[NODES]
    if kinds.group[least] != kinds.group[row[MOST_NODES]]:
        return True
    if windows is not None:
        least += closed_now(least, row[LENGTH], windows, now)  # for the longer jobs below, more groups are closed
    return finds_room(least, kinds, nodes, now)  # the smallest request of the subtree


@inlined
def _all_long(row: IntArray, now: IntArray) -> bool:
    """Return whether all jobs below are of one kind and end after the shadow time."""
    return bool(row[NODES] == row[MOST_NODES] and row[LENGTH] > now[WINDOW])


@inlined
def _any_leaves_room(
    row: IntArray,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    now: IntArray,
) -> bool:
    """Return whether any job below, all of one kind, leaves the head room: windows move longer jobs to other nodes.

    Groups that are open to such a job now may be closed to it before a window ends; these cases are tested as well.
    """
    kind = row[NODES]
    if windows is None:
        return leaves_room(kind, rules, jobs, kinds, nodes, timeline, at_shadow, now)
    least, most = closed_now(kind, row[LENGTH], windows, now), ever_closed(kind, windows)
    for closed in range(least, most + 1):
        if closed & least != least or closed & ~most != 0 or not finds_room(kind + closed, kinds, nodes, now):
            continue
        if leaves_room(kind + closed, rules, jobs, kinds, nodes, timeline, at_shadow, now):
            return True
    return False
