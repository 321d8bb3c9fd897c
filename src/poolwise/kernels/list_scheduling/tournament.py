"""A tournament over the index: each node of a binary tree knows the first by priority among the jobs below it.

Priorities that are linear in time make it kinetic: a node also knows until when its winner surely stays the winner, and
is played again only after that. The time at which one line overtakes another is worked out with a safe margin and only
filters; who is first at a given time is decided by the canonical expression (`order.key`), so rounding never matters.
Source: kinetic tournaments, Basch, Guibas, Hershberger 1999.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling.order import comes_before, lasts
from poolwise.kernels.list_scheduling.state import NEVER, Order, Tree


@step
def play(node: int, time: int, order: Order, tree: Tree) -> None:
    """Decide a node from the two below it; it stays undecided (`until` < time) while one of them is."""
    left, right = 2 * node, 2 * node + 1
    a, b = tree.winner[left], tree.winner[right]
    until = min(tree.until[left], tree.until[right])
    if a < 0 or (b >= 0 and until >= time and comes_before(b, a, time, order)):
        a, b = b, a
    if b >= 0 and until >= time:
        until = min(until, lasts(a, b, time, order))
    tree.winner[node], tree.until[node] = a, until


@step
def put(job: int, leaf: int, time: int, order: Order, tree: Tree) -> None:
    """Put a job into the tree at its leaf; -1 takes out the one that is there."""
    node = leaf + tree.winner.size // 2
    tree.winner[node] = job
    node >>= 1
    while node > 0:
        play(node, time, order, tree)
        node >>= 1


@step
def decide(node: int, time: int, order: Order, tree: Tree) -> int:
    """Winner at a node at a time, -1 if no job is below it; plays again what has expired there."""
    if tree.until[node] < time:
        at = node
        while True:
            if tree.until[2 * at] < time:
                at = 2 * at
            elif tree.until[2 * at + 1] < time:
                at = 2 * at + 1
            else:
                play(at, time, order, tree)
                if at == node:
                    break
                at >>= 1
    return int(tree.winner[node])


@step
def first_of(low: int, high: int, time: int, order: Order, tree: Tree) -> int:
    """First by priority among the leaves low <= leaf < high, -1 if none is in the tree."""
    best = -1
    size = tree.winner.size // 2
    low, high = low + size, high + size
    while low < high:
        if low & 1:
            best = _better(best, decide(low, time, order, tree), time, order)
            low += 1
        if high & 1:
            high -= 1
            best = _better(best, decide(high, time, order, tree), time, order)
        low >>= 1
        high >>= 1
    return best


@step
def _better(a: int, b: int, time: int, order: Order) -> int:
    """Return the one of two jobs that comes first; -1 is no job."""
    if a < 0 or (b >= 0 and comes_before(b, a, time, order)):
        return b
    return a


@step
def as_long_as(length: int, low: int, high: int, lengths: IntArray) -> int:
    """First leaf in low..high whose length is above `length` (ascending there)."""
    while low < high:
        middle = (low + high) >> 1
        if lengths[middle] <= length:
            low = middle + 1
        else:
            high = middle
    return low


@step
def clear(leaf: int, tree: Tree) -> None:
    """Empty a leaf and all nodes above it: done for every leaf in use, it empties the tree."""
    node = leaf + tree.winner.size // 2
    while node > 0 and tree.winner[node] >= 0:
        tree.winner[node], tree.until[node] = -1, NEVER
        node >>= 1
