"""How an index over a deep queue is laid out: jobs in classes, by length within a class.

A job's class says whether it fits now, its place in the class whether it ends in time; so the jobs that may be backfilled
are a prefix of each of a few classes, and `tournament` finds the first of them by priority without looking at the rest.
"""

from __future__ import annotations

import math

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.list_scheduling.state import NEVER, Index, Tree


def empty_index() -> Index:
    """Return an index of no jobs, for queues that are not deep."""
    nothing = np.zeros(0, dtype=np.int64)
    return Index(*(nothing.copy() for _ in Index._fields))


def lay_out(nodes: IntArray, remote: IntArray, length: IntArray, able: BoolArray) -> Index:
    """Lay out an index of all able jobs, with none of them in it yet; the columns are (n_job,).

    Jobs of one number of nodes without remote memory are a class. Those with remote memory are split by its amount into
    about 2 * sqrt(n) classes: so many have to be looked at in each pass, and a few more than sqrt(n) / 2 jobs stand in
    the one class that fits in part.
    """
    rows = np.flatnonzero(able)
    kind = _classes(nodes[rows], remote[rows])
    order = np.lexsort((rows, length[rows], kind))
    rows, kind = rows[order], kind[order]
    first = np.flatnonzero(np.diff(kind, prepend=-1))
    bounds = np.append(first, len(rows)).astype(np.int64)
    leaf = np.full(len(nodes), -1, dtype=np.int64)
    leaf[rows] = np.arange(len(rows))
    of = np.full(len(nodes), -1, dtype=np.int64)
    of[rows] = kind
    blank = np.zeros(len(first), dtype=np.int64)
    return Index(
        leaf=leaf,
        of=of,
        length=length[rows],
        first=bounds,
        nodes=nodes[rows[first]],
        least=np.minimum.reduceat(remote[rows], first) if len(first) else blank,
        most=np.maximum.reduceat(remote[rows], first) if len(first) else blank,
        waiting=blank.copy(),
        shortest=blank.copy(),
        open=blank.copy(),
        best=blank.copy(),
        offer=blank.copy(),
        aside=np.zeros(len(nodes), dtype=np.int64),
    )


def plant(n_leaf: int) -> Tree:
    """Return an empty tree."""
    n = 2 * max(n_leaf, 1)
    return Tree(np.full(n, -1, dtype=np.int64), np.full(n, NEVER, dtype=np.int64))


def _classes(nodes: IntArray, remote: IntArray) -> IntArray:
    """(k,) class of each job, numbered by nodes, then remote memory."""
    order = np.lexsort((remote, nodes))
    group = np.stack([nodes[order], remote[order] > 0])
    begins = np.flatnonzero(np.any(np.diff(group, axis=1, prepend=-1) != 0, axis=0))
    kind = np.zeros(len(nodes), dtype=np.int64)
    number = 0
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(nodes)], strict=True):
        size = end - begin
        parts = min(size, 2 * math.isqrt(size)) if remote[order[begin]] > 0 else 1
        kind[order[begin:end]] = number + np.arange(size) * parts // size
        number += parts
    return kind
