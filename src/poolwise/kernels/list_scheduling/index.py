"""How the tree over a deep queue is laid out: jobs of like demands have paths near each other.

Then the least demands below a node come close to those of each job there, and a search passes by what does not fit, or ends
too late, without looking at it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, IntArray, blocks
from poolwise.kernels.list_scheduling.state import Tree

GRADES = 16, 64, 32
"""Grades of nodes, remote memory and length."""
GRADE_BITS = 15
"""Bits that number all combinations of grades."""
SAMPLE = 4096
"""Jobs from which the bounds between grades are taken."""


def plant(n_job: int) -> Tree:
    """Return an empty tree for `n_job` jobs, their paths in the order of their rows."""
    at, bit, above = (np.zeros(n_job, dtype=np.int64) for _ in range(3))
    node = np.zeros((2 * n_job, 8), dtype=np.int64)  # memory is only touched for as many as wait
    stack = np.zeros(GRADE_BITS + n_job.bit_length() + 2, dtype=np.int64)
    return Tree(np.arange(n_job), at, node, bit, above, np.zeros(2, dtype=np.int64), stack)


def lay_out(nodes: IntArray, remote: IntArray, length: IntArray, able: BoolArray) -> Tree:
    """Return an empty tree for jobs with these demands, (n_job,) each; only able ones will be put into it.

    Paths are in the order of grades of nodes, then of remote memory, then of length, then of rows; grades are quantiles of
    the able jobs. (Of the orders and of the space-filling curves tried, this had the least nodes looked at in a search.)
    """
    step = len(able) // SAMPLE + 1
    some = np.flatnonzero(able[::step]) * step
    graded = [(demand, _bounds(demand[some], count)) for demand, count in zip((nodes, remote, length), GRADES, strict=True)]
    tree = plant(len(able))
    for rows in blocks(len(able)):
        code = np.zeros(len(able[rows]), dtype=np.int64)
        for (demand, bounds), count in zip(graded, GRADES, strict=True):
            code = count * code + _grade(demand[rows], bounds)
        tree.path[rows] |= code << len(able).bit_length()
    return tree


def _grade(demand: IntArray, bounds: IntArray) -> NDArray[np.uint8]:
    """(n,) how many of at most 63 bounds lie below each demand; few differ, so this takes less time than a binary search."""
    grade = np.zeros(len(demand), dtype=np.uint8)
    for bound, equal in zip(*np.unique(bounds, return_counts=True), strict=True):
        grade += (demand > bound) * np.uint8(equal)
    return grade


def _bounds(sample: IntArray, count: int) -> IntArray:
    """(count - 1,) bounds between `count` grades, quantiles of a sample; a job's grade is how many lie below its demand."""
    sample = np.sort(sample)
    return sample[np.arange(1, count) * len(sample) // count] if len(sample) else sample
