"""One pass of list scheduling without backfilling or with EASY, over a queue in a tree.

The next backfilled job is always the first by priority of the startable jobs after the last started job: the jobs before it
have already been rejected in this pass. Jobs of a kind share their tests: whether they fit, and whether they leave the head
room, depends only on the kind. The tree keeps similar kinds together, so that a search prunes subtrees without candidates.
Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.events import window
from poolwise.kernels.common.order import comes_before
from poolwise.kernels.common.state import EASY, FORK, LEAF, LENGTH, MAJOR, MINOR, MOST_MAJOR, NONE, WINNER
from poolwise.kernels.common.tournament import decide, push_children
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.reservation import backfill, leaves_room, may_start, reserve
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import CORES, SharedNow, SharedState, WindowArrays
from poolwise.kernels.shared_nodes.timeline import is_overdue
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.kernels.shared_nodes.windows import closed_now, ever_closed, kind_now
from poolwise.quantities import NEVER


@step
def search(state: SharedState, windows: WindowArrays | None) -> None:
    """Start jobs in order until one does not fit, the head; backfill the others."""
    rules, now = state.rules, state.now
    if _is_settled(state, windows):
        return
    head = -1
    while now.waiting > 0:
        head = decide(now.time, state.order, state.tree)
        kind = kind_now(head, state, windows)
        if (head == now.head and not finds_room(kind, state)) or not choose(kind, rules, state.kinds, state.nodes):
            break
        start(head, state)
        now.shadow_kind = -1
        leave(head, state)
        head = -1
    if head < 0:
        return
    now.head, now.settled = head, int(rules.backfill == NONE)
    if rules.backfill == NONE or now.waiting < 2:
        return
    reserve(head, state, windows)
    now.settled, now.next_shift = 1, NEVER  # a start resets it
    last = head
    while True:
        last = _next(head, last, state, windows)
        if last < 0:
            return
        backfill(last, state, windows)
        leave(last, state)


@inlined
def _is_settled(state: SharedState, windows: WindowArrays | None) -> bool:
    """Return whether nothing can start because nothing could start at the end of the last pass.

    The head is the same, and so is the machine now and at the shadow time. The passing of time alone admits no candidate, since
    less is left until the shadow time. So only jobs that joined the queue at this instant are tested. However, an approaching
    window may move a job to other nodes, on which it leaves the head room.
    """
    queue, now = state.queue, state.now
    if windows is not None and now.time >= now.next_shift:
        return False
    if now.settled == 0 or is_overdue(state) or now.head != decide(now.time, state.order, state.tree):
        return False
    now.window = window(now)
    k = now.waiting - 1
    while state.rules.backfill != NONE and k >= 0 and queue.since[k] == now.passes - 1:
        job = queue.job[k]
        if job != now.head and may_start(job, state, windows):
            return False
        k -= 1
    return True


@inlined
def _next(head: int, last: int, state: SharedState, windows: WindowArrays | None) -> int:
    """Return the first job by priority after `last` that may be backfilled now; -1 if there is none."""
    order, tree, now = state.order, state.tree, state.now
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
        if not _may_contain_candidate(row, state, windows):
            continue
        if row[FORK] == LEAF:
            turn = comes_before(last, job, now.time, order)
            if turn and may_start(job, state, windows):
                best = job
            continue
        if _all_long(row, now) and not _any_leaves_room(row, state, windows):
            continue
        height = push_children(row, height, tree)
    return best


@inlined
def _may_contain_candidate(row: IntArray, state: SharedState, windows: WindowArrays | None) -> bool:
    """Return whether any job at or below a node of the tree may fit and, if required, end by the shadow time."""
    kinds, now = state.kinds, state.now
    short = row[LENGTH] <= now.window
    if row[MINOR] > state.nodes.top[1, CORES] or not (short or state.rules.backfill == EASY):
        return False
    least = row[MAJOR]
    if kinds.group[least] != kinds.group[row[MOST_MAJOR]]:
        return True
    if windows is not None:
        least += closed_now(least, row[LENGTH], windows, now)  # for the longer jobs below, more groups are closed
    return finds_room(least, state)  # the smallest request of the subtree


@inlined
def _all_long(row: IntArray, now: SharedNow) -> bool:
    """Return whether all jobs below are of one kind and end after the shadow time."""
    return bool(row[MAJOR] == row[MOST_MAJOR] and row[LENGTH] > now.window)


@inlined
def _any_leaves_room(row: IntArray, state: SharedState, windows: WindowArrays | None) -> bool:
    """Return whether any of the jobs below, all of one kind, leaves the head room: windows move longer jobs to other nodes.

    Groups that are open to such a job now may be closed to it before a window ends; these cases are tested as well.
    """
    kind = row[MAJOR]
    if windows is None:
        return leaves_room(kind, state)
    least, most = closed_now(kind, row[LENGTH], windows, state.now), ever_closed(kind, windows)
    for closed in range(least, most + 1):
        if closed & least != least or closed & ~most != 0 or not finds_room(kind + closed, state):
            continue
        if leaves_room(kind + closed, state):
            return True
    return False
