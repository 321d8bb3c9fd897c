"""Arrays of the heads of the queues of several partitions on whole nodes."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray


class RackHeadArrays(NamedTuple):
    """Heads of the queues of several partitions. Rows of groups describe nodes first, then the pools of the groups."""

    of: IntArray  # (n_job,) set of nodes of each job
    usable: BoolArray  # (n_set, 2 * n_group) nodes that jobs of a set may use, and the pools from which these borrow
    blocks: BoolArray  # (n_set, 2 * n_group) nodes and pools of their partitions, which a job blocks if it does not fit
    competes: BoolArray  # (n_set, n_set) whether a job of a set may use something that a job of another set blocks
    blocked: BoolArray  # (2 * n_group,) what is blocked in a pass
    # (n_group,) scratch: what is free and not blocked
    free: IntArray
    pool: IntArray
    # (n_job,) scratch: the waiting jobs by priority, or the candidates, and their keys
    line: IntArray
    key: FloatArray
    head: IntArray  # (n_set,) jobs that block others, then those of them that do not fit at all, by priority
    window: IntArray  # (n_set,) longest expected runtimes (ns) that end by the shadow times of the latter
    # (n_set, n_group) what is free then
    shadow_free: IntArray
    shadow_pool: IntArray
