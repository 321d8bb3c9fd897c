"""Arrays of passes in which jobs that do not fit block the nodes of their partitions, and of several heads under EASY."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.shared_nodes.state import CounterArrays, NodeArrays

OPEN, PARTLY, CLOSED = range(3)
"""Values of `BlockArrays.status`: none, some or all nodes of a set are blocked."""


class BlockArrays(NamedTuple):
    """Nodes that jobs of higher priority block in a pass in priority order."""

    of_set: BoolArray  # (n_set, n_node) nodes that a job with this set of nodes blocks if it does not fit: its partitions'
    blocked: BoolArray  # (n_node,)
    status: IntArray  # (n_set,) OPEN, PARTLY or CLOSED
    head: IntArray  # (n_set,) jobs that block nodes, by priority, at most one for each set
    # (n_class, n_word) nodes that can hold a part of a job of a class if nothing runs, `WORD` nodes per word, and (n_kind,) the
    # class of each kind; without words, every job that does not fit blocks others
    able: IntArray
    class_of: IntArray


class HeadArrays(NamedTuple):
    """Heads of the queues of several partitions, or one head for all jobs, and counters."""

    backfill: int  # NONE, EASY or EASY_NO_EXTRA of `common.state`
    counters: CounterArrays
    blocks: BlockArrays
    # (n_set, n_set) whether a job with a set of nodes may use a node that a job with another set blocks; unlike in `blocks`,
    # sets are not numbered for each set of closed groups
    competes: BoolArray
    line: IntArray  # (n_job,) scratch: the waiting jobs by priority, or the candidates
    ahead: NodeArrays  # scratch: the nodes without the blocked ones
    kind: IntArray  # (n_set,) kinds of the heads that do not fit on the whole machine
    # (n_set,) their shadow times (ns), the longest expected runtimes that end by then (ns), and the number of nodes that hold
    # a part by then
    shadow: IntArray
    window: IntArray
    holding: IntArray
    holds: BoolArray  # (n_set, n_node) which nodes these are
    shortest: IntArray  # (n_set,) the shortest of these runtimes among the heads with which a job with a set of nodes competes
    # (n_kind,) longest expected runtime (ns) with which a job of a kind delays no head, when `round` was `limit_at`
    limit: IntArray
    limit_at: IntArray
    round: IntArray  # (1,) number of passes with reservations and of starts since
