"""Arrays of a machine's windows for the kernel: groups of nodes, and all sets of groups that may be closed to a job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.shared_nodes.kinds import JobKinds, job_kinds
from poolwise.kernels.shared_nodes.state import WindowArrays
from poolwise.model import Initial, Machine, Workload
from poolwise.policies.placement.avoid_windows import users_of
from poolwise.policies.placement.nodes.layout import NodeLayout
from poolwise.quantities import NEVER

MAX_GROUPS = 4
"""Maximum number of node groups with windows; each kind of job has a number for every set of these groups."""


def window_groups(machine: Machine, nodes: IntArray) -> tuple[BoolArray, IntArray]:
    """Return the groups of nodes with windows, (n_group, n_node), and the group of each window, (n_window,).

    The nodes may be in any order.
    """
    ordered_nodes = np.sort(nodes)
    inside = np.array([window.owners[ordered_nodes] for window in machine.windows], dtype=np.bool_).reshape(-1, len(nodes))
    groups, of = np.unique(inside, axis=0, return_inverse=True)
    return groups[:, np.searchsorted(ordered_nodes, nodes)], of.reshape(-1)


def with_closed_groups(kinds: JobKinds, groups: int) -> JobKinds:
    """Expand each kind, and each set of nodes, to one number for every set of closed groups, the empty set first."""
    each = 1 << groups
    closed = np.tile(np.arange(each), len(kinds.parts))
    return replace(
        kinds,
        of=kinds.of * each,
        request=np.repeat(kinds.request, each, axis=0),
        parts=np.repeat(kinds.parts, each),
        eligible=np.repeat(kinds.eligible, each) * each + closed,
        group=np.repeat(kinds.group, each),
    )


def open_sets(within: BoolArray, groups: BoolArray) -> BoolArray:
    """Return the open nodes of each set, (n_set, n_node), for every set of closed groups, (n_set * 2^n_group, n_node)."""
    closed = np.zeros((1 << len(groups), within.shape[1]), dtype=np.bool_)
    for k, inside in enumerate(groups):
        closed[np.arange(len(closed)) >> k & 1 == 1] |= inside
    open_nodes: BoolArray = (within[:, None] & ~closed[None]).reshape(-1, within.shape[1])
    return open_nodes


def kinds_and_windows(
    workload: Workload, machine: Machine, layout: NodeLayout, initial: Initial | None
) -> tuple[JobKinds, WindowArrays]:
    """Return the kinds of jobs, numbered for every set of closed groups, and the windows that are not over at the start."""
    groups, of = window_groups(machine, layout.nodes)
    start, end = (np.array([getattr(window, name) for window in machine.windows], dtype=np.int64) for name in ("start", "end"))
    rows = np.argsort(start, kind="stable")
    if initial is not None:
        rows = rows[end[rows] > initial.now]
    users = np.array([users_of(workload.table, machine.windows[w]) for w in rows], dtype=np.bool_).reshape(-1, len(workload))
    usable, user = np.zeros((1, 0), dtype=np.bool_), np.zeros(len(workload), dtype=np.int64)
    if len(rows):
        usable, user = np.unique(users.T, axis=0, return_inverse=True)
    kinds = job_kinds(workload, layout, user.reshape(-1).astype(np.int64))
    of_kind = np.empty(len(kinds.parts), dtype=np.int64)
    of_kind[kinds.of] = user.reshape(-1)
    windows = WindowArrays(
        start=start[rows],
        end=end[rows],
        group=of[rows].astype(np.int64),
        ends=np.sort(end[rows]),
        user=np.repeat(of_kind, 1 << len(groups)),
        usable=usable,
        coming=_coming(start[rows], of[rows], usable, len(groups)),
    )
    return with_closed_groups(kinds, len(groups)), windows


def _coming(start: IntArray, group: IntArray, usable: BoolArray, groups: int) -> IntArray:
    """Return the start of the first window that excludes a class of users, for each class and group, (n_user, n_group)."""
    values = np.full((len(usable), groups), NEVER)
    for user, w in np.argwhere(~usable).tolist():
        values[user, group[w]] = min(values[user, group[w]], start[w])
    return values
