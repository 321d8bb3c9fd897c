"""Closed-form tests of backfill candidates on nodes that use memory only of their own rack's pool (scope "rack").

A short candidate ends by the head's shadow time, a long one after it. A candidate that fits entirely in one rack is placed in
the rack with the most free nodes among these racks (`racks.place`). A long one leaves the head room if and only if that rack
keeps the nodes and MiB that the head requires of it, since all other racks are unchanged. So the decision depends on two
numbers per rack now, and two per rack at the shadow time.

A candidate that fits in no single rack fills racks in the order of free nodes, most first, if each pool can serve all free
nodes of its rack. It then fits if it needs no more nodes than are free, and the remainder in each rack is known; often its node
count alone shows that the head would have too few. Other candidates that span several racks can only be decided by placing
them.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.state import EASY
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import offer
from poolwise.kernels.list_scheduling.state import (
    BLOCKED,
    LONG_MEMORY,
    LONG_NODES,
    MEMORY_NOW,
    NODES_NOW,
    STARTABLE,
    UNDECIDED,
    RackArrays,
    RackState,
)

MAX_POOL_PER_NODE = 2**32
"""Upper bound (MiB per node) of `now.pool_per_node`, and its value if no rack has free nodes."""


@step
def prepare_bounds(head: int, state: RackState) -> None:
    """Compute the inputs of `classify` from the head's extra nodes and memory (`reservation.compute_extra`).

    It writes `racks.rank`, `racks.whole` and three scalars: `now.free`, the free nodes; `.pool_per_node`, the MiB per node that
    every pool can lend to all free nodes of its rack; `.long_split`, the most nodes of a long candidate over several racks that
    leave the head room if it uses no memory.
    """
    racks, now = state.racks, state.now
    remote, rank, whole = state.jobs.remote[head], racks.rank, racks.whole
    _sort(rank, racks.free)
    now.free, now.pool_per_node, now.long_split = 0, MAX_POOL_PER_NODE, 0
    long_allowed = state.rules.backfill == EASY and now.surplus >= 0
    more, room = long_allowed, now.surplus
    for i in range(rank.size):
        r = rank[i]
        free, pool, required = racks.free[r], racks.pool[r], racks.required[r]
        whole[i, NODES_NOW], whole[i, MEMORY_NOW] = free, pool
        now.free += free
        if pool < free * now.pool_per_node:
            now.pool_per_node = pool // free
        if not long_allowed:
            whole[i, LONG_NODES], whole[i, LONG_MEMORY] = -1, 0
            continue
        whole[i, LONG_NODES] = min(free, racks.shadow_free[r] - required)
        whole[i, LONG_MEMORY] = min(pool, racks.shadow_pool[r] - required * remote)
        if more:
            unused = racks.shadow_free[r] - racks.offered[r]  # nodes that the head cannot use, for lack of memory
            more = free <= unused + room
            now.long_split += min(free, unused + room)
            room -= max(free - unused, 0)


@inlined
def _sort(rank: IntArray, free: IntArray) -> None:
    """Sort racks by free nodes, most first, ties by index; insertion sort, since the order hardly changes."""
    for i in range(1, rank.size):
        r, at = rank[i], i
        while at > 0 and (free[rank[at - 1]] < free[r] or (free[rank[at - 1]] == free[r] and rank[at - 1] > r)):
            rank[at] = rank[at - 1]
            at -= 1
        rank[at] = r


@inlined
def classify(n: int, remote: int, short: bool, head: int, state: RackState) -> int:
    """Classify a job of n nodes with `remote` MiB each as STARTABLE, BLOCKED or UNDECIDED; `short`: ends by the shadow time.

    In scope "system" and on mixed nodes all jobs are undecided.
    """
    racks, now = state.racks, state.now
    if not state.rules.closed:
        return UNDECIDED
    if remote <= now.pool_per_node:
        if n <= racks.whole[0, NODES_NOW]:
            return STARTABLE if short or _long_fits(0, n, n * remote, racks) else BLOCKED
        if n > now.free or not (short or (n <= now.long_split and _leaves_room(n, remote, head, state))):
            return BLOCKED
        return STARTABLE
    for i in range(racks.whole.shape[0]):
        if n > racks.whole[i, NODES_NOW]:
            break
        if n * remote <= racks.whole[i, MEMORY_NOW]:
            return STARTABLE if short or _long_fits(i, n, n * remote, racks) else BLOCKED
    return UNDECIDED if short or _might_fit(n, remote, LONG_NODES, LONG_MEMORY, racks) else BLOCKED


@step
def _leaves_room(n: int, remote: int, head: int, state: RackState) -> bool:
    """Return whether a long job that fills racks, most free nodes first, leaves the head room at its shadow time.

    No rack has fewer free nodes at the shadow time than now: a long run reduces both, a short one only the latter.
    """
    jobs, racks = state.jobs, state.racks
    nodes, head_remote = 0, jobs.remote[head]
    for i in range(racks.rank.size):
        r = racks.rank[i]
        more = min(n, racks.free[r])
        n -= more
        nodes += offer(racks.shadow_free[r] - more, racks.shadow_pool[r] - more * remote, head_remote)
    return bool(nodes >= jobs.nodes[head])


@inlined
def classify_all(n: int, remote: int, most_nodes: int, most_remote: int, short: bool, state: RackState) -> int:
    """Return BLOCKED or UNDECIDED for jobs of n to `most_nodes` nodes that use `remote` to `most_remote` MiB each.

    `short`: some may end by the shadow time. A rack that holds the most demanding job entirely holds each of them, unless a
    rack tested before does.
    """
    racks, now = state.racks, state.now
    if n > now.free:
        return BLOCKED
    largest = racks.whole[0, NODES_NOW]
    if most_remote <= now.pool_per_node:
        whole = n <= largest and _long_fits(0, n, n * remote, racks)
        split = most_nodes > largest and max(n, largest + 1) <= now.long_split
        return UNDECIDED if short or whole or split else BLOCKED
    for i in range(racks.whole.shape[0]):
        if n > racks.whole[i, NODES_NOW]:
            break
        if n * remote <= racks.whole[i, MEMORY_NOW]:
            if short or _long_fits(i, n, n * remote, racks):
                return UNDECIDED
            if most_nodes <= racks.whole[i, NODES_NOW] and most_nodes * most_remote <= racks.whole[i, MEMORY_NOW]:
                return BLOCKED
    if short:
        return UNDECIDED if _might_fit(n, remote, NODES_NOW, MEMORY_NOW, racks) else BLOCKED
    return UNDECIDED if _might_fit(n, remote, LONG_NODES, LONG_MEMORY, racks) else BLOCKED


@step
def _might_fit(n: int, remote: int, of_nodes: int, of_memory: int, racks: RackArrays) -> bool:
    """Return whether all racks together might hold n nodes that use `remote` MiB each, by two columns of `racks.whole`.

    For long jobs, the columns bound how much each rack can give up, so a job over several racks that exceeds them cannot start.
    The quotient may be rounded up, which only excludes fewer jobs and avoids an integer division.
    """
    nodes, part = 0, (1 + 1e-12) / max(remote, 1)
    for i in range(racks.whole.shape[0]):
        free, memory = racks.whole[i, of_nodes], racks.whole[i, of_memory]
        nodes += free if memory >= free * remote else int(memory * part)
        if nodes >= n:
            return True
    return False


@inlined
def _long_fits(i: int, n: int, memory: int, racks: RackArrays) -> bool:
    """Return whether a long job that occupies the i-th rack alone leaves the head room at its shadow time."""
    return bool(n <= racks.whole[i, LONG_NODES] and memory <= racks.whole[i, LONG_MEMORY])
