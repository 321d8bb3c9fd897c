"""A tournament of the waiting jobs: each node of a binary tree knows the first by priority and the least demands below it.

Jobs of like demands have paths near each other, so the demands of a subtree say much about each of its jobs (see
`places`); whatever the paths, nothing but speed depends on them. A job rests as near to the root as no other is in its way:
the tree is as deep as the waiting jobs ask for, however many jobs there are in all.

Priorities that are linear in time make the tournament kinetic: a node also knows until when its winner surely stays the
winner, and is played again only after that. The time at which one line overtakes another is worked out with a safe margin
and only filters; who is first at a given time is decided by the canonical expression (`order.key`), so rounding never
matters. Source: kinetic tournaments, Basch, Guibas, Hershberger 1999.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.order import comes_before, lasts
from poolwise.kernels.list_scheduling.state import (
    EMPTY,
    FORK,
    LENGTH,
    MOST_NODES,
    MOST_REMOTE,
    NEVER,
    NODES,
    REMOTE,
    RESTING,
    UNKNOWN,
    UNTIL,
    WINNER,
    Jobs,
    Order,
    Tree,
)


@inlined
def put(job: int, time: int, jobs: Jobs, order: Order, tree: Tree) -> None:
    """Put a waiting job into the tree."""
    half = tree.node.shape[0] >> 1
    leaf = tree.path[job] + half
    node, level = 1, half
    while tree.node[node, FORK] != EMPTY:
        level >>= 1
        if tree.node[node, FORK] == RESTING:  # the one who rests here makes way
            other = tree.node[node, WINNER]
            tree.node[node, FORK] = UNKNOWN
            _rest(other, (tree.path[other] + half) // level, jobs, tree)
        node = leaf // level
    _rest(job, node, jobs, tree)
    _climb(node, time, order, tree)


@inlined
def take(job: int, time: int, order: Order, tree: Tree) -> None:
    """Take a job out of the tree."""
    node = tree.at[job]
    tree.node[node, FORK] = EMPTY
    if node > 1 and tree.node[node ^ 1, FORK] == RESTING:
        node = _rise(node ^ 1, tree)
        while node > 1 and tree.node[node ^ 1, FORK] == EMPTY:
            node = _rise(node, tree)
    _climb(node, time, order, tree)


@step
def _rest(job: int, node: int, jobs: Jobs, tree: Tree) -> None:
    """Let a job rest at a node."""
    row = tree.node[node]
    row[FORK], row[WINNER], row[UNTIL] = RESTING, job, NEVER
    row[NODES], row[REMOTE], row[LENGTH] = jobs.nodes[job], jobs.remote[job], jobs.length[job]
    row[MOST_NODES], row[MOST_REMOTE] = jobs.nodes[job], jobs.remote[job]
    tree.at[job] = node


@step
def _rise(node: int, tree: Tree) -> int:
    """Let the job that rests at a node, and is alone below the node above, rest there; returns that node."""
    above = node >> 1
    for column in range(tree.node.shape[1]):
        tree.node[above, column] = tree.node[node, column]
    tree.node[node, FORK] = EMPTY
    tree.at[tree.node[above, WINNER]] = above
    return above


@step
def _climb(node: int, time: int, order: Order, tree: Tree) -> None:
    """Play again the nodes above one that changed, as far up as it shows."""
    node >>= 1
    while node > 0 and play(node, time, order, tree):
        node >>= 1


@step
def play(node: int, time: int, order: Order, tree: Tree) -> bool:
    """Work out a node from the two below it; whether it changed. It stays undecided (`UNTIL` < time) while one of them is."""
    row, left, right = tree.node[node], tree.node[2 * node], tree.node[2 * node + 1]
    if left[FORK] == EMPTY or right[FORK] == EMPTY:
        only = right if left[FORK] == EMPTY else left
        changed = False
        for column in range(row.size):
            changed = changed or row[column] != only[column]
            row[column] = only[column]
        return bool(changed)
    winner, until = left[WINNER], min(left[UNTIL], right[UNTIL])
    if until >= time:
        other = right[WINNER]
        if comes_before(other, winner, time, order):
            winner, other = other, winner
        until = min(until, lasts(winner, other, time, order))
    changed = row[FORK] != node or row[WINNER] != winner or row[UNTIL] != until
    row[FORK], row[WINNER], row[UNTIL] = node, winner, until
    for column in range(NODES, row.size):
        a, b = left[column], right[column]
        value = min(a, b) if column < MOST_NODES else max(a, b)
        changed = changed or row[column] != value
        row[column] = value
    return bool(changed)


@inlined
def decide(time: int, order: Order, tree: Tree) -> int:
    """Play again what has expired; returns the first by priority of all, -1 if the tree is empty."""
    if tree.node[1, FORK] == EMPTY:
        return -1
    node = 1
    while tree.node[1, UNTIL] < time:
        if _expired(2 * node, time, tree):
            node = 2 * node
        elif _expired(2 * node + 1, time, tree):
            node = 2 * node + 1
        else:
            play(node, time, order, tree)
            node >>= 1
    return int(tree.node[1, WINNER])


@inlined
def _expired(node: int, time: int, tree: Tree) -> bool:
    return bool(tree.node[node, FORK] > 0 and tree.node[node, UNTIL] < time)


@step
def clear(job: int, tree: Tree) -> None:
    """Empty the node at which a job rests and all above it: done for every waiting job, it empties the tree."""
    node = tree.at[job]
    while node > 0 and tree.node[node, FORK] != EMPTY:
        tree.node[node, FORK] = EMPTY
        node >>= 1
