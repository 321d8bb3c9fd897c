"""Free capacity of nodes: allocation, release, and searches in the order of the nodes or of their free cores."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.state import CORES, MEMORY, WORD, KindArrays, NodeArrays, SharedNow

DE_BRUIJN = 0x077CB531
"""De Bruijn sequence: all its runs of five bits are distinct, so its product with a power of two identifies the exponent."""
POWER = np.array([next(k for k in range(WORD) if (DE_BRUIJN << k & 0xFFFFFFFF) >> 27 == run) for run in range(WORD)])
"""(32,) bit number for each run of five bits."""


@step
def change(n: int, kind: int, local: int, sign: int, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Subtract a part from a node (sign -1) or add it back (+1); `local` MiB of its memory are the node's own."""
    top, dims = nodes.top, nodes.top.shape[1]
    t = top.shape[0] // 2 + n
    before = top[t, CORES]
    for d in range(dims):
        top[t, d] += sign * (local if d == MEMORY else kinds.request[kind, d])
    _update_top(n, before, nodes)


@step
def set_free(n: int, free: IntArray, up: bool, nodes: NodeArrays) -> None:
    """Set the free capacity of a node to its total, (n_dim,), or to zero."""
    t = nodes.top.shape[0] // 2 + n
    before = nodes.top[t, CORES]
    for d in range(nodes.top.shape[1]):
        nodes.top[t, d] = free[d] if up else 0
    _update_top(n, before, nodes)


@inlined
def note_released(n: int, nodes: NodeArrays, now: SharedNow) -> None:
    """Record that capacity of a node was released."""
    nodes.released[now.released % nodes.released.size] = n
    now.released += 1


@inlined
def _update_top(n: int, before: int, nodes: NodeArrays) -> None:
    """Update the tree and the core classes above a node that had `before` free cores until now."""
    top, t = nodes.top, nodes.top.shape[0] // 2 + n
    if nodes.with_cores.size > 0:
        _reclass(n, before, top[t, CORES], nodes)
    t >>= 1
    while t > 0:
        changed = False
        for d in range(top.shape[1]):
            most = max(top[2 * t, d], top[2 * t + 1, d])
            changed = changed or most != top[t, d]
            top[t, d] = most
        if not changed:
            return
        t >>= 1


@inlined
def _reclass(n: int, before: int, after: int, nodes: NodeArrays) -> None:
    """Move a node from one class of free cores to another."""
    bit, step = 1 << (n % WORD), 1 if after > before else -1
    for cores in range(min(before, after) + 1, max(before, after) + 1):
        nodes.with_cores[cores] += step
        nodes.bits[cores, n // WORD] ^= bit


@step
def rebuild(count: int, nodes: NodeArrays) -> None:
    """Recompute the tree and the core classes from the free capacity of the first `count` leaves; -1 excludes a node."""
    top, leaves = nodes.top, nodes.top.shape[0] // 2
    for cores in range(nodes.with_cores.size):
        nodes.with_cores[cores] = 0
        for word in range(nodes.bits.shape[1]):
            nodes.bits[cores, word] = 0
    for n in range(count):
        cores = top[leaves + n, CORES]
        if cores >= 0 and nodes.with_cores.size > 0:
            nodes.with_cores[cores] += 1
            nodes.bits[cores, n // WORD] |= 1 << (n % WORD)
    for cores in range(nodes.with_cores.size - 2, -1, -1):  # nodes with more cores belong to the lower classes as well
        nodes.with_cores[cores] += nodes.with_cores[cores + 1]
        for word in range(nodes.bits.shape[1]):
            nodes.bits[cores, word] |= nodes.bits[cores + 1, word]
    for t in range(leaves - 1, 0, -1):
        for d in range(top.shape[1]):
            top[t, d] = max(top[2 * t, d], top[2 * t + 1, d])


@inlined
def _may_hold(t: int, kind: int, skip: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Return whether a node below a tree node may hold a part in all dimensions but `skip`; exact at a leaf."""
    if not nodes.open[kinds.eligible[kind], t]:
        return False
    for d in range(nodes.top.shape[1]):  # noqa: SIM110  # a loop is what compiles
        if nodes.top[t, d] < kinds.request[kind, d] and d != skip:
            return False
    return True


@inlined
def next_subtree(t: int) -> int:
    """Return the root of the subtree that follows the subtree of a node, in the order of the leaves; 0 if there is none."""
    while t & 1:
        t >>= 1
    return t + 1 if t > 0 else 0


@step
def next_fit(n: int, kind: int, skip: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Return the first node from n on that holds a part in all dimensions but `skip` (-1: in all), -1 if none does."""
    leaves = nodes.top.shape[0] // 2
    if n >= nodes.rack.size:
        return -1
    t = leaves + n if n > 0 else 1
    while True:
        if _may_hold(t, kind, skip, kinds, nodes):
            if t >= leaves:
                return int(t - leaves)
            t *= 2
            continue
        t = next_subtree(t)
        if t == 0:
            return -1


@step
def next_with_cores(cores: int, only: bool, n: int, end: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Return the first node in [n, end) with at least (`only`: exactly) `cores` free cores that holds a part, or -1."""
    leaves, word = nodes.top.shape[0] // 2, n // WORD
    if n >= end:
        return -1
    left = _word(cores, only, word, nodes) >> (n % WORD) << (n % WORD)
    while True:
        while left != 0:
            lowest = left & -left
            node = word * WORD + POWER[(lowest * DE_BRUIJN >> 27) & 31]
            if node >= end:
                return -1
            if _may_hold(leaves + node, kind, -1, kinds, nodes):
                return int(node)
            left ^= lowest
        word += 1
        if word * WORD >= end:
            return -1
        left = _word(cores, only, word, nodes)


@inlined
def _word(cores: int, only: bool, word: int, nodes: NodeArrays) -> int:
    """Return the nodes of a word with at least, or exactly, a given number of free cores, one bit per node."""
    return int(nodes.bits[cores, word] & ~nodes.bits[cores + 1, word] if only else nodes.bits[cores, word])


@step
def holds_part(n: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Return whether a node holds a part without memory from a pool."""
    return _may_hold(nodes.top.shape[0] // 2 + n, kind, -1, kinds, nodes)


@step
def update_tree(tree: IntArray, t: int) -> None:
    """Propagate the minimum of both children to each node above t, in a tree of times."""
    t >>= 1
    while t > 0:
        least = min(tree[2 * t], tree[2 * t + 1])
        if tree[t] == least:
            return
        tree[t] = least
        t >>= 1
