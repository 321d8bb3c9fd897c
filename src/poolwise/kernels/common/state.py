"""Arrays and constants that all list scheduling kernels share. Their names and shapes are the interface of this package."""

from __future__ import annotations

from inspect import get_annotations
from typing import NamedTuple, TypeVar, cast

import numpy as np

from poolwise.arrays import FloatArray, IntArray

N = TypeVar("N")

# Order.kind
STATIC, LINEAR, CUBIC, CALLBACK, AFFINE = range(5)
# Rules.backfill
NONE, EASY, EASY_NO_EXTRA, CONSERVATIVE, AT_INTERVALS, SEVERAL_HEADS = range(6)
# Rules.spread, Rules.believed_spread
WORST, MEAN, PAPER = range(3)
# Return values of `replay`
DONE, COMPUTE_KEYS, ROOM, INSTANTS, DEEP, SHALLOW, LATE, PAUSED, RENEW_KEYS, RANK = range(10)
APPLY_EVENTS, MAKE_PASS, KEYED_PASS = range(3)
"""Values of `Now.phase`: the place at which `replay` resumes."""


class Order(NamedTuple):
    """Order of the queue: how a job's key (its negative priority) follows from its wait w in seconds."""

    # STATIC or CALLBACK (the keys are given), LINEAR (x * weight, x = w / pace), CUBIC (x * x * x * weight) or AFFINE
    # (offset + w * weight)
    kind: int
    # (n_job,) negative priority, smaller first, ties by row; for kinds that depend on time, written only for held
    # reservations
    key: FloatArray
    submit: IntArray  # (n_job,) ns
    # pace, weight, offset: (n_job,), or (0,) where the kind has none
    pace: FloatArray
    weight: FloatArray
    # (n_job,) or (0,); the tree compares w * rate, which grows as the priority does, up to rounding; for an AFFINE order, the
    # priority gained per ns
    rate: FloatArray
    offset: FloatArray


class Tree(NamedTuple):
    """The waiting jobs of a deep queue as the leaves of a binary tree; see `tournament`."""

    # (n_job,) demands of each job: nodes and remote memory per node, or its kind and the cores of a part
    major: IntArray
    minor: IntArray
    length: IntArray  # (n_job,) ns that the scheduler expects it to run, or a lower bound
    path: IntArray  # (n_job,) distinct numbers below 2 ** n_bit; jobs with similar demands have neighboring paths
    at: IntArray  # (n_job,) node of each waiting job's leaf
    # (2 * n_job, 8) summary of the jobs at and below a node; columns named below. The root is node 1; nodes 2 * k and 2 *
    # k + 1 are the children of fork k
    node: IntArray
    bit: IntArray  # (n_job,) bit of the paths that selects the child of a fork
    above: IntArray  # (n_job,) node of each fork, 0 for the root's; of an unused fork, the next unused one
    forks: IntArray  # (2,) the first unused fork, 0 for none; the largest fork ever used
    stack: IntArray  # (n_bit + 2,) scratch of a search


UNUSED, USED = range(2)  # Tree.forks


# Columns of Tree.node, one cache line: the fork at which the paths of its jobs part; the first job by priority, and the ns
# until which it certainly stays first; the minimum of both demands and the length; the maximum of both demands
FORK, WINNER, UNTIL, MAJOR, MINOR, LENGTH, MOST_MAJOR, MOST_MINOR = range(8)
# Values of column FORK without a fork: no job, or a single one
EMPTY, LEAF = 0, -1


class QueueArrays(NamedTuple):
    """The waiting jobs, unordered."""

    job: IntArray  # (n_job,) the first `now.waiting` count
    since: IntArray  # (n_job,) number of the pass in which each job in `job` joined
    where: IntArray  # (n_job,) position of each job in `job`, -1 if it does not wait
    warm: IntArray  # (n_job,) waiting warm-up jobs, first come, first served; from `now.warm_first` to `now.warm_last`


class RunArrays(NamedTuple):
    """Runs in the order of their starts: the record, and those still running."""

    # (n_job,) row of the job, ns
    job: IntArray
    start: IntArray
    end: IntArray
    expected: IntArray
    offset: IntArray  # (n_job + 1,) rows offset[k]:offset[k+1] are run k's placement
    # (n_row,) the placement; grown by the caller on ROOM
    owner: IntArray
    resource: IntArray
    amount: IntArray
    ending: IntArray  # (n_job,) heap of the current runs by (end, run), the first `now.running` count
    rejected: IntArray  # (n_job,) rejected jobs, in the order of rejection


class IntervalRules(NamedTuple):
    """Times (ns) and limits of the passes."""

    # one backfill pass, and the time between two
    begun: int
    interval: int
    # the same of the main scheduler; `every` is 0 if it runs at each event
    looked: int
    every: int
    depth: int  # jobs that a backfill pass tests
    window: int
    resolution: int
    considered: int  # jobs that a pass of the main scheduler considers, NEVER for all
    full_pass: int  # between two passes of the main scheduler that consider all, 0 for none
    busy_nodes: bool  # whether reservations prefer nodes in use
    last_key: float  # key above which a job has no reservation and blocks no others, inf for none
    reserved_jobs: int  # jobs of each partition for which a backfill pass makes reservations, 0 for all
    groups_ends: bool  # whether the ends of runs are grouped; if not, a job is tried after each


class Now:
    """Record of the changing scalars of a replay, as int64 fields; see `record`."""

    time: int
    next: int  # row of the next arrival
    waiting: int
    running: int
    started: int  # runs so far
    rejected: int
    passes: int
    phase: int
    quiet: int  # 1 if the events were only arrivals of rejected jobs
    warm_first: int
    warm_last: int
    warm: int  # 1 while the warm-up lasts
    head: int  # job with the cached reservation, -1 for none
    shadow: int  # ns, of the head
    window: int  # longest expected runtime that ends by `shadow`
    settled: int  # 1 if the last pass started nothing and no run has ended since: only jobs that arrive now may start
    rows: int  # rows requested on ROOM; instants or steps on INSTANTS
    pause: int  # passes after which the kernel returns PAUSED, for progress reports
    awaited: int  # awaited jobs that have not started; the replay stops at 0
    stop: int  # ns after which no event is replayed
    renewal: int  # ns from which the stored keys are outdated: the next recalculation
    changes: int  # changes of capacity so far
    last_gain: int  # changes up to and including the last that adds capacity
    deferred: int


def record(kind: type[N]) -> N:
    """Return zeros as a NumPy record with the fields of a class; kernels access them by name."""
    names = [name for base in reversed(kind.__mro__) for name in get_annotations(base)]
    return cast(N, np.zeros(1, [(name, np.int64) for name in names]).view(np.recarray)[0])
