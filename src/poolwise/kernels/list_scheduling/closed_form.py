"""Whether waiting jobs may start, in closed form, where a node takes memory of its own rack's pool only (scope "rack").

A job that some rack holds whole is placed in the one of these with most free nodes (`racks.place`). There it ends by the
shadow time, or it leaves the head room if and only if the rack still has the nodes and the MiB that the head cannot do
without: all other racks are untouched. So two numbers of each rack now, and two at the shadow time, decide.

A job that no rack holds whole fills racks, the one with most free nodes first, as long as each pool lends to all free nodes of
its rack. Then it fits if it takes no more nodes than are free, and what it leaves in each rack is known; often the
number of its nodes alone says that the head would have too few. Other jobs over several racks have to be placed to be known.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import offer
from poolwise.kernels.list_scheduling.state import (
    AMPLE,
    EASY,
    FREE,
    LASTING_MEMORY,
    LASTING_NODES,
    LASTING_SPLIT,
    MEMORY_NOW,
    NODES_NOW,
    PERHAPS,
    REFUSED,
    SURPLUS,
    WELCOME,
    JobArrays,
    RackArrays,
    Rules,
)

ENDLESS = 2**32
"""MiB per node up to which a pool is asked whether it lends to all free nodes of its rack."""


@step
def weigh(head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> None:
    """Write down what verdicts need, given what the head leaves over (`reservation.spare`).

    That is `racks.rank`, `racks.whole`, and of `now` FREE, the free nodes; AMPLE, the MiB per node that each pool lends to all
    free nodes of its rack; and LASTING_SPLIT, the most nodes of a job over several racks that leave the head room if it takes
    no memory.
    """
    remote, rank, whole = jobs.remote[head], racks.rank, racks.whole
    _sort(rank, racks.free)
    now[FREE], now[AMPLE], now[LASTING_SPLIT] = 0, ENDLESS, 0
    lasting = rules.backfill == EASY and now[SURPLUS] >= 0
    more, room = lasting, now[SURPLUS]
    for i in range(rank.size):
        r = rank[i]
        free, pool, kept = racks.free[r], racks.pool[r], racks.kept[r]
        whole[i, NODES_NOW], whole[i, MEMORY_NOW] = free, pool
        now[FREE] += free
        if pool < free * now[AMPLE]:
            now[AMPLE] = pool // free
        if not lasting:
            whole[i, LASTING_NODES], whole[i, LASTING_MEMORY] = -1, 0
            continue
        whole[i, LASTING_NODES] = min(free, racks.then_free[r] - kept)
        whole[i, LASTING_MEMORY] = min(pool, racks.then_pool[r] - kept * remote)
        if more:
            unused = racks.then_free[r] - racks.offered[r]  # nodes that the head could not have, for want of memory
            more = free <= unused + room
            now[LASTING_SPLIT] += min(free, unused + room)
            room -= max(free - unused, 0)


@inlined
def _sort(rank: IntArray, free: IntArray) -> None:
    """Sort racks by free nodes, most first, then lowest first; hardly anything moves."""
    for i in range(1, rank.size):
        r, at = rank[i], i
        while at > 0 and (free[rank[at - 1]] < free[r] or (free[rank[at - 1]] == free[r] and rank[at - 1] > r)):
            rank[at] = rank[at - 1]
            at -= 1
        rank[at] = r


@inlined
def verdict(n: int, remote: int, ends: bool, head: int, jobs: JobArrays, racks: RackArrays, now: IntArray) -> int:
    """WELCOME, REFUSED or PERHAPS, for a job of n nodes that take `remote` MiB each; `ends`: by the shadow time."""
    if remote <= now[AMPLE]:
        if n <= racks.whole[0, NODES_NOW]:
            return WELCOME if ends or _lasts(0, n, n * remote, racks) else REFUSED
        if n > now[FREE] or not (ends or (n <= now[LASTING_SPLIT] and _leaves_room(n, remote, head, jobs, racks))):
            return REFUSED
        return WELCOME
    for i in range(racks.whole.shape[0]):
        if n > racks.whole[i, NODES_NOW]:
            break
        if n * remote <= racks.whole[i, MEMORY_NOW]:
            return WELCOME if ends or _lasts(i, n, n * remote, racks) else REFUSED
    return PERHAPS if ends or _might_fit(n, remote, LASTING_NODES, LASTING_MEMORY, racks) else REFUSED


@step
def _leaves_room(n: int, remote: int, head: int, jobs: JobArrays, racks: RackArrays) -> bool:
    """Whether a job that fills racks, most free nodes first, leaves the head room beyond its shadow time.

    No rack has less then than now: what lasts so long is taken off both, what ends before off now alone.
    """
    nodes, beside = 0, jobs.remote[head]
    for i in range(racks.rank.size):
        r = racks.rank[i]
        more = min(n, racks.free[r])
        n -= more
        nodes += offer(racks.then_free[r] - more, racks.then_pool[r] - more * remote, beside)
    return bool(nodes >= jobs.nodes[head])


@inlined
def verdict_of_all(n: int, remote: int, most_nodes: int, most_remote: int, ends: bool, racks: RackArrays, now: IntArray) -> int:
    """REFUSED or PERHAPS, for jobs of n to `most_nodes` nodes that take `remote` to `most_remote` MiB each.

    `ends`: some by the shadow time. A rack that holds the most demanding whole holds each of them, or one asked before does.
    """
    if n > now[FREE]:
        return REFUSED
    largest = racks.whole[0, NODES_NOW]
    if most_remote <= now[AMPLE]:
        whole = n <= largest and _lasts(0, n, n * remote, racks)
        split = most_nodes > largest and max(n, largest + 1) <= now[LASTING_SPLIT]
        return PERHAPS if ends or whole or split else REFUSED
    for i in range(racks.whole.shape[0]):
        if n > racks.whole[i, NODES_NOW]:
            break
        if n * remote <= racks.whole[i, MEMORY_NOW]:
            if ends or _lasts(i, n, n * remote, racks):
                return PERHAPS
            if most_nodes <= racks.whole[i, NODES_NOW] and most_nodes * most_remote <= racks.whole[i, MEMORY_NOW]:
                return REFUSED
    if ends:
        return PERHAPS if _might_fit(n, remote, NODES_NOW, MEMORY_NOW, racks) else REFUSED
    return PERHAPS if _might_fit(n, remote, LASTING_NODES, LASTING_MEMORY, racks) else REFUSED


@step
def _might_fit(n: int, remote: int, of_nodes: int, of_memory: int, racks: RackArrays) -> bool:
    """Whether racks together might hold n nodes that take `remote` MiB each, within two columns of `racks.whole`.

    The columns of lasting jobs say what each rack may give up at most: for those too, what does not fit may not start. A
    quotient is rounded up if at all, for that only rules out less, and takes no division of integers.
    """
    nodes, part = 0, (1 + 1e-12) / max(remote, 1)
    for i in range(racks.whole.shape[0]):
        free, memory = racks.whole[i, of_nodes], racks.whole[i, of_memory]
        nodes += free if memory >= free * remote else int(memory * part)
        if nodes >= n:
            return True
    return False


@inlined
def _lasts(i: int, n: int, memory: int, racks: RackArrays) -> bool:
    """Whether a job that stands whole in the i-th rack leaves the head room beyond its shadow time."""
    return bool(n <= racks.whole[i, LASTING_NODES] and memory <= racks.whole[i, LASTING_MEMORY])
