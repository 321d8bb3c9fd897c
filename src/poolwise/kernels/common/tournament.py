"""Tournament tree of the waiting jobs: each node stores the first by priority and the minimum demands below it.

Each job has a path, a number whose bits lead from the root to it. Jobs with similar demands have neighboring paths, so the
minimum demands of a subtree describe each of its jobs well (see `index`); the paths affect only speed. Only bits at which the
paths of waiting jobs differ have a node (a PATRICIA trie): k jobs use 2 k - 1 nodes, contiguous in memory, however many jobs
there are in all. Source: PATRICIA, Morrison 1968.

Priorities that are linear in time make the tournament kinetic: a node also stores a time until which its winner certainly stays
the winner, and its match is replayed only after that. The time at which one line overtakes another is computed with a safety
margin and serves only as a filter; the canonical expression (`order.key`) decides the order at a given time, so rounding never
matters. Source: kinetic tournaments, Basch, Guibas, Hershberger 1999.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.order import comes_before, precedes_until
from poolwise.kernels.common.state import (
    EMPTY,
    FORK,
    LEAF,
    LENGTH,
    MAJOR,
    MINOR,
    MOST_MAJOR,
    MOST_MINOR,
    UNTIL,
    UNUSED,
    USED,
    WINNER,
    Order,
    Tree,
)
from poolwise.kernels.jit import inlined, step
from poolwise.quantities import NEVER


@inlined
def insert(job: int, time: int, order: Order, tree: Tree) -> None:
    """Insert a waiting job into the tree."""
    if tree.node[1, FORK] == EMPTY:
        _make_leaf(job, 1, tree)
        return
    node, path, bit = 1, tree.path[job], tree.stack.size
    while True:
        row = tree.node[node]
        differing = path ^ tree.path[row[WINNER]]
        if row[FORK] == LEAF or differing >> (tree.bit[row[FORK]] + 1) != 0:  # the job's path leaves the subtree above the fork
            break
        bit = tree.bit[row[FORK]]
        node = 2 * row[FORK] + ((path >> bit) & 1)
    bit -= 1
    while (differing >> bit) & 1 == 0:
        bit -= 1
    fork = _new_fork(tree)
    tree.bit[fork], tree.above[fork] = bit, node
    own = 2 * fork + ((path >> bit) & 1)
    _move(node, own ^ 1, tree)
    _make_leaf(job, own, tree)
    tree.node[node, FORK] = fork
    while node > 0 and _play(node, time, order, tree) and tree.node[node, WINNER] == job:
        node = tree.above[node >> 1]
    while node > 1 and _widen(tree.above[node >> 1], tree.node[node], tree):
        node = tree.above[node >> 1]


@inlined
def _widen(node: int, below: IntArray, tree: Tree) -> bool:
    """Update a node for one more job below it that is not the winner on its side; return whether the node changed."""
    row = tree.node[node]
    return _gather(UNTIL, row, below, row)


@inlined
def _gather(first: int, a: IntArray, b: IntArray, row: IntArray) -> bool:
    """Write the minimum or maximum of two rows in some columns to a row; return whether it changed."""
    changed = False
    for column in range(first, row.size):
        value = min(a[column], b[column]) if column < MOST_MAJOR else max(a[column], b[column])
        changed = changed or row[column] != value
        row[column] = value
    return bool(changed)


@inlined
def remove(job: int, time: int, order: Order, tree: Tree) -> None:
    """Remove a job from the tree."""
    node = tree.at[job]
    if node == 1:
        tree.node[1, FORK] = EMPTY
        return
    fork = node >> 1
    above = tree.above[fork]
    _move(node ^ 1, above, tree)
    tree.above[fork], tree.forks[UNUSED] = tree.forks[UNUSED], fork
    _climb(tree.above[above >> 1], time, order, tree)


@inlined
def _new_fork(tree: Tree) -> int:
    """Return an unused fork."""
    fork = tree.forks[UNUSED]
    if fork > 0:
        tree.forks[UNUSED] = tree.above[fork]
    else:
        tree.forks[USED] += 1
        fork = tree.forks[USED]
    return int(fork)


@step
def _make_leaf(job: int, node: int, tree: Tree) -> None:
    """Make a node the leaf of a job."""
    row = tree.node[node]
    row[FORK], row[WINNER], row[UNTIL] = LEAF, job, NEVER
    row[MAJOR], row[MINOR], row[LENGTH] = tree.major[job], tree.minor[job], tree.length[job]
    row[MOST_MAJOR], row[MOST_MINOR] = tree.major[job], tree.minor[job]
    tree.at[job] = node


@inlined
def _move(node: int, to: int, tree: Tree) -> None:
    """Move the content of a node to another."""
    row = tree.node[node]
    for column in range(row.size):
        tree.node[to, column] = row[column]
    if row[FORK] == LEAF:
        tree.at[row[WINNER]] = to
    else:
        tree.above[row[FORK]] = to


@step
def _climb(node: int, time: int, order: Order, tree: Tree) -> None:
    """Replay the match of a node and of those above it, until one does not change."""
    while node > 0 and _play(node, time, order, tree):
        node = tree.above[node >> 1]


@step
def _play(node: int, time: int, order: Order, tree: Tree) -> bool:
    """Recompute a node from its children; return whether it changed."""
    row, changed = tree.node[node], _match(node, time, order, tree)
    return bool(_gather(MAJOR, tree.node[2 * row[FORK]], tree.node[2 * row[FORK] + 1], row) or changed)


@inlined
def _match(node: int, time: int, order: Order, tree: Tree) -> bool:
    """Find the winner at a node, which is undecided (`UNTIL` < time) while a child is; return whether the node changed."""
    row = tree.node[node]
    left, right = tree.node[2 * row[FORK]], tree.node[2 * row[FORK] + 1]
    winner, until = left[WINNER], min(left[UNTIL], right[UNTIL])
    if until >= time:
        other = right[WINNER]
        if comes_before(other, winner, time, order):
            winner, other = other, winner
        until = min(until, precedes_until(winner, other, time, order))
    changed = row[WINNER] != winner or row[UNTIL] != until
    row[WINNER], row[UNTIL] = winner, until
    return bool(changed)


@inlined
def decide(time: int, order: Order, tree: Tree) -> int:
    """Replay expired matches; return the first job by priority, -1 if the tree is empty."""
    if tree.node[1, FORK] == EMPTY:
        return -1
    node = 1
    while tree.node[1, UNTIL] < time:
        left = 2 * tree.node[node, FORK]
        if tree.node[left, UNTIL] < time:
            node = left
        elif tree.node[left + 1, UNTIL] < time:
            node = left + 1
        else:
            _match(node, time, order, tree)
            node = tree.above[node >> 1]
    return int(tree.node[1, WINNER])


@inlined
def clear(tree: Tree) -> None:
    """Remove all jobs from the tree."""
    tree.node[1, FORK], tree.forks[UNUSED], tree.forks[USED] = EMPTY, 0, 0


@inlined
def push_children(row: IntArray, height: int, tree: Tree) -> int:
    """Push the children of a fork to the stack, the winner's side on top; return the new height."""
    left = 2 * row[FORK]
    winner = left + int(tree.node[left, WINNER] != row[WINNER])
    tree.stack[height], tree.stack[height + 1] = winner ^ 1, winner
    return height + 2
