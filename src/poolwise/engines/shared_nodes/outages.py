"""Arrays of node outages for the kernel, recognized among the changes of capacity of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.kernels.shared_nodes.state import NodeArrays, OutageArrays
from poolwise.model import Machine
from poolwise.platforms.simulated import Disturbance


class NodeChange(NamedTuple):
    """A node (owner) that fails or is repaired at a time (ns)."""

    time: int
    owner: int
    up: bool


def node_changes(machine: Machine, nodes: IntArray, disturbances: Iterable[Disturbance]) -> list[NodeChange] | None:
    """Return the failures and repairs of nodes, (n_node,), in order of time.

    Returns None unless all changes are of entire nodes with their devices, and each failed node is repaired.
    """
    owners, down = set(nodes.tolist()), set[int]()
    changes = list[NodeChange]()
    in_order = sorted(disturbances, key=lambda change: change.time)  # stable: the order of the simulation
    for change, group in groupby(in_order, key=lambda change: _change_of(machine, change)):
        cells = {(part.owner, part.resource): abs(part.amount) for part in group}
        if change.owner not in owners or cells != _whole(machine, change.owner) or change.up != (change.owner in down):
            return None
        (down.remove if change.up else down.add)(change.owner)
        changes.append(change)
    return None if down else changes


def _change_of(machine: Machine, part: Disturbance) -> NodeChange:
    """Return the failure or repair of a node to which a change of one amount belongs."""
    home = int(machine.home[part.owner])
    return NodeChange(part.time, part.owner if home < 0 else home, part.amount > 0)


def _whole(machine: Machine, node: int) -> dict[tuple[int, int], int]:
    """Return the capacity of a node and of its devices, by owner and resource."""
    owners = (node, *np.flatnonzero(machine.home == node).tolist())
    return {
        (owner, resource): amount
        for owner in owners
        for resource, amount in enumerate(machine.capacity[owner].tolist())
        if amount
    }


def outage_arrays(changes: Sequence[NodeChange], requeues: bool, nodes: NodeArrays, kinds: int, jobs: int) -> OutageArrays:
    """Build the arrays of changes for a replay that begins on empty nodes."""
    leaves, n = len(nodes.top) // 2, len(nodes.owner)
    number = {owner: k for k, owner in enumerate(nodes.owner.tolist())}
    return OutageArrays(
        time=np.array([change.time for change in changes], dtype=np.int64),
        node=np.array([number[change.owner] for change in changes], dtype=np.int64),
        up=np.array([change.up for change in changes], dtype=np.bool_),
        free=read_only(nodes.top[leaves : leaves + n].copy()),
        requeues=np.array([requeues]),
        fits_empty=np.zeros(kinds, dtype=np.bool_),
        checked_at=np.full(kinds, -1),
        deferred=blank(jobs),
        lost=np.zeros(jobs, dtype=np.bool_),
    )
