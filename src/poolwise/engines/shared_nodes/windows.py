"""Windows of a machine as kernels take them: by groups of nodes, with all sets of groups that may be shut to a job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.shared_nodes.kinds import JobKinds
from poolwise.model import Machine, Workload
from poolwise.policies.placement.windows import users_of

if TYPE_CHECKING:
    from poolwise.kernels.shared_nodes.state import WindowArrays

MOST_GROUPS = 4
"""Groups of nodes that windows may have: each kind of job is counted for each set of them."""


def window_groups(machine: Machine, nodes: IntArray) -> tuple[BoolArray, IntArray]:
    """Groups of nodes (n_group, n_node) that windows have, and (n_window,) the group of each."""
    inside = np.array([window.owners[nodes] for window in machine.windows], dtype=np.bool_).reshape(-1, len(nodes))
    groups, of = np.unique(inside, axis=0, return_inverse=True)
    return groups, of.reshape(-1)


def with_shut(kinds: JobKinds, groups: int) -> JobKinds:
    """Number each kind for each set of groups that may be shut, the empty one first; sets of nodes likewise."""
    each = 1 << groups
    shut = np.tile(np.arange(each), len(kinds.parts))
    return replace(
        kinds,
        of=kinds.of * each,
        ask=np.repeat(kinds.ask, each, axis=0),
        parts=np.repeat(kinds.parts, each),
        eligible=np.repeat(kinds.eligible, each) * each + shut,
        group=np.repeat(kinds.group, each),
    )


def shut_sets(within: BoolArray, groups: BoolArray) -> BoolArray:
    """(n_set * 2^n_group, n_node) which nodes of each set (n_set, n_node) are open for each set of groups that is shut."""
    shut = np.zeros((1 << len(groups), within.shape[1]), dtype=np.bool_)
    for k, inside in enumerate(groups):
        shut[np.arange(len(shut)) >> k & 1 == 1] |= inside
    found: BoolArray = (within[:, None] & ~shut[None]).reshape(-1, within.shape[1])
    return found


def window_arrays(machine: Machine, workload: Workload, nodes: IntArray) -> WindowArrays:
    """Lay out the windows of a machine for a replay of a workload."""
    from poolwise.kernels.shared_nodes.state import WindowArrays

    groups, of = window_groups(machine, nodes)
    start, end = (np.array([getattr(window, name) for window in machine.windows]) for name in ("start", "end"))
    rows = np.argsort(start, kind="stable")
    users = np.stack([users_of(workload.table, machine.windows[w]) for w in rows], axis=1)
    usable, who = np.unique(users, axis=0, return_inverse=True)
    return WindowArrays(
        start=start[rows],
        end=end[rows],
        group=of[rows].astype(np.int64),
        ends=np.sort(end),
        who=who.reshape(-1).astype(np.int64),
        usable=usable,
        holding=blank(1 << len(groups)),
    )
