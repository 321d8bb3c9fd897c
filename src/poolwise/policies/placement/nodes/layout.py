"""Layout of shared nodes and the resources that parts of jobs may request, used by `placement`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import JobTable, Machine
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.model.shared_nodes import SharedNodes, shared_nodes

DEVICES, MEMORY, NODES = "devices", "memory", "nodes"
WEIGHT = "weight"
"""Attribute of nodes, Slurm's `Weight`: placements use nodes of the lowest weight first."""


@dataclass(frozen=True, eq=False)
class NodeLayout(SharedNodes):
    """Shared nodes, their pools, and the devices inside them.

    Attributes
    ----------
    rack : (n_node,) rack of each node
    weight : (n_node,) rank of each node's attribute "weight", 1 where it is not given; placements use low weights first
    pool : (n_node,) memory pool that serves each node, -1 if there is none
    memory, device_column : columns of the machine, -1 if it does not have the resource
    counted : (name, column) of the nodes' own resources except memory, cores first
    inside : device type -> (n_node, most) owners of the devices inside each node, ascending, padded with -1
    """

    rack: IntArray
    weight: IntArray
    pool: IntArray
    memory: int
    device_column: int
    counted: tuple[tuple[str, int], ...]
    inside: dict[str, IntArray]

    @property
    def known(self) -> tuple[str, ...]:
        """Resources that a job may request."""
        memory = (MEMORY,) if self.memory >= 0 and (MEMORY in self.names or bool((self.pool >= 0).any())) else ()
        return (NODES, *(name for name, _ in self.counted), *memory, *self.inside)

    def local(self, free: IntArray) -> IntArray:
        """Return the free MiB of each node itself, (..., n_node), from free amounts (..., n_owner, n_resource)."""
        if self.memory < 0:
            return np.zeros((*free.shape[:-2], len(self.nodes)), dtype=np.int64)
        return np.maximum(free[..., self.nodes, self.memory], 0)

    def pooled(self, free: IntArray) -> IntArray:
        """Return the free MiB in the pool that serves each node, (..., n_node)."""
        if self.memory < 0:
            return np.zeros((*free.shape[:-2], len(self.nodes)), dtype=np.int64)
        return np.where(self.pool >= 0, np.maximum(free[..., self.pool, self.memory], 0), 0)

    def devices_free(self, kind: str, free: IntArray) -> IntArray:
        """Return the number of free devices of a type inside each node, (..., n_node)."""
        inside = self.inside[kind]
        there = (free[..., inside, self.device_column] > 0) & (inside >= 0)
        count: IntArray = there.sum(axis=-1)
        return count

    def offers(self, free: IntArray) -> Iterator[tuple[str, IntArray]]:
        """Yield the name and the free amounts (..., n_node) of each resource of the nodes except memory."""
        for name, column in self.counted:
            yield name, free[..., self.nodes, column]
        for kind in self.inside:
            yield kind, self.devices_free(kind, free)

    def eligible(self, table: JobTable, row: int) -> BoolArray:
        """Return a mask of the nodes on which a job may run, (n_node,)."""
        sets = eligible_sets(self.machine, table)
        return eligible_owners(self.machine, *sets.value[int(sets.of[row])])[self.nodes]


@lru_cache(maxsize=8)  # a machine is compared by identity
def node_layout(machine: Machine) -> NodeLayout:
    """Read the layout of a machine. Raises InputError if it has no shared nodes with cores."""
    shared = shared_nodes(machine, "cores")
    named = {name: machine.resource(name) for name in shared.names if name != MEMORY}
    counted = (("cores", named.pop("cores")), *named.items())
    inside = shared.only((shared.home >= 0) & shared.having(DEVICES))
    return NodeLayout(
        **vars(shared),
        rack=machine.rack[shared.nodes],
        weight=_weight_ranks(machine, shared.nodes),
        pool=shared.pools(MEMORY),
        memory=shared.column(MEMORY),
        device_column=shared.column(DEVICES),
        counted=counted,
        inside={kind: _by_node(shared, owners, inside.home[inside.type == kind]) for kind, owners in inside.by_type().items()},
    )


def _weight_ranks(machine: Machine, nodes: IntArray) -> IntArray:
    """Return the ranks of the weights of some nodes, (k,), all 0 if they are equal."""
    weight = machine.attributes.get(WEIGHT, np.full(machine.n_owner, np.nan))[nodes]
    rank: IntArray = np.unique(np.where(np.isnan(weight), 1.0, weight), return_inverse=True)[1]
    return rank.astype(np.int64)


def _by_node(shared: SharedNodes, devices: IntArray, home: IntArray) -> IntArray:
    """Return the devices of each node in ascending order, (n_node, most), padded with -1."""
    held = np.bincount(home, minlength=len(shared.nodes))
    values = np.full((len(shared.nodes), int(held.max(initial=0))), -1, dtype=np.int64)
    for node in np.flatnonzero(held).tolist():
        values[node, : held[node]] = devices[home == node]
    return values
