"""Windows of a machine as kernels take them: by groups of nodes, with all sets of groups that may be shut to a job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.shared_nodes.kinds import JobKinds, job_kinds
from poolwise.model import Machine, Workload
from poolwise.policies.placement.avoid_windows import users_of
from poolwise.policies.placement.nodes.layout import NodeLayout
from poolwise.units import NEVER

if TYPE_CHECKING:
    from poolwise.kernels.shared_nodes.state import WindowArrays

MOST_GROUPS = 4
"""Groups of nodes that windows may have: each kind of job is counted for each set of them."""


def window_groups(machine: Machine, nodes: IntArray) -> tuple[BoolArray, IntArray]:
    """Groups of nodes (n_group, n_node) that windows have, and (n_window,) the group of each; nodes may be in any order."""
    known = np.sort(nodes)
    inside = np.array([window.owners[known] for window in machine.windows], dtype=np.bool_).reshape(-1, len(nodes))
    groups, of = np.unique(inside, axis=0, return_inverse=True)
    return groups[:, np.searchsorted(known, nodes)], of.reshape(-1)


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


def beside_windows(machine: Machine, workload: Workload, layout: NodeLayout) -> tuple[JobKinds, WindowArrays]:
    """Kinds of the jobs of a workload, numbered for each set of groups that may be shut, and the windows for a replay of it."""
    from poolwise.kernels.shared_nodes.state import WindowArrays

    groups, of = window_groups(machine, layout.nodes)
    start, end = (np.array([getattr(window, name) for window in machine.windows]) for name in ("start", "end"))
    rows = np.argsort(start, kind="stable")
    users = np.stack([users_of(workload.table, machine.windows[w]) for w in rows], axis=1)
    usable, who = np.unique(users, axis=0, return_inverse=True)
    kinds = job_kinds(workload, layout, who.reshape(-1).astype(np.int64))
    of_kind = np.empty(len(kinds.parts), dtype=np.int64)
    of_kind[kinds.of] = who.reshape(-1)
    windows = WindowArrays(
        start=start[rows],
        end=end[rows],
        group=of[rows].astype(np.int64),
        ends=np.sort(end),
        who=np.repeat(of_kind, 1 << len(groups)),
        usable=usable,
        coming=_coming(start[rows], of[rows], usable, len(groups)),
    )
    return with_shut(kinds, len(groups)), windows


def _coming(start: IntArray, group: IntArray, usable: BoolArray, groups: int) -> IntArray:
    """(n_who, n_group) when the first of the windows (n_window,) on each group begins whose nodes they may not use."""
    found = np.full((len(usable), groups), NEVER)
    for who, w in np.argwhere(~usable).tolist():
        found[who, group[w]] = min(found[who, group[w]], start[w])
    return found
