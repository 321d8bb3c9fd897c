"""Shared nodes with devices: the view of a machine that schedulers and placements for shared nodes use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model.kind import Kind
from poolwise.model.machine import Machine


@dataclass(frozen=True, eq=False)
class SharedNodes:
    """A machine as shared nodes with devices; the base class of more specialized views.

    Nodes without capacity are excluded: they have left the machine, or are whole nodes.

    Attributes
    ----------
    machine : the machine
    nodes : (n_node,) owners, ascending
    columns : (n_resource,) columns of the machine with capacity on nodes
    names : names of these resources
    devices : (n_device,) owners, ascending
    home : (n_device,) position in `nodes` of the node that contains each device, -1 for pooled devices
    type : (n_device,) names of device types
    """

    machine: Machine
    nodes: IntArray
    columns: IntArray
    names: tuple[str, ...]
    devices: IntArray
    home: IntArray
    type: NDArray[np.str_]

    def column(self, name: str) -> int:
        """Return the column of a resource of the machine, -1 if it has none."""
        return self.machine.resources.index(name) if name in self.machine.resources else -1

    def having(self, *names: str) -> BoolArray:
        """Return a mask of the devices, (n_device,), that have capacity of any of the given resources."""
        held = [column for name in names if (column := self.column(name)) >= 0]
        values: BoolArray = np.any(self.machine.capacity[self.devices][:, held] > 0, axis=1)
        return values

    def only(self, keep: BoolArray) -> SharedNodes:
        """Return the view with only some of the devices, (n_device,)."""
        return replace(self, devices=self.devices[keep], home=self.home[keep], type=self.type[keep])

    def by_type(self) -> dict[str, IntArray]:
        """Return type of device -> (n,) owners in ascending order; types are sorted by name."""
        return {str(name): self.devices[self.type == name] for name in np.unique(self.type)}

    def pools(self, resource: str) -> IntArray:
        """Return the pool of a resource that serves each node, (n_node,): that of its rack, else of the machine, else -1."""
        machine, column = self.machine, self.column(resource)
        owners = [o for o in machine.of_kind(Kind.POOL).tolist() if column >= 0 and machine.capacity[o, column] > 0]
        by_rack = {int(machine.rack[o]): o for o in reversed(owners)}
        everywhere = by_rack.get(-1, -1)
        return np.array([by_rack.get(rack, everywhere) for rack in machine.rack[self.nodes].tolist()], dtype=np.int64)


@lru_cache(maxsize=8)  # machines are compared by identity
def shared_nodes(machine: Machine, *needed: str) -> SharedNodes:
    """Return the view of a machine; raises InputError if it has no shared nodes with the resources needed."""
    owners = machine.of_kind(Kind.NODE)
    present = machine.capacity[owners].any(axis=1)
    if "nodes" in machine.resources:
        present &= machine.capacity[owners, machine.resource("nodes")] == 0
    nodes = owners[present]
    if not len(nodes) or not set(needed) <= set(machine.resources):
        what = f" with {' and '.join(needed)}" if needed else ""
        wanted = ", ".join(['allocation = "shared"', *needed[:-1]])
        raise InputError(
            f"machine '{machine.name}' has no shared nodes{what}",
            field="node",
            remedy=f"write {wanted} and {needed[-1] if needed else 'cores'} in every [[node]]",
        )
    columns, devices = np.flatnonzero(machine.capacity[nodes].any(axis=0)), machine.of_kind(Kind.DEVICE)
    position = np.full(machine.n_owner + 1, -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))
    return SharedNodes(
        machine,
        nodes,
        columns,
        tuple(machine.resources[column] for column in columns.tolist()),
        devices,
        position[machine.home[devices]],
        np.array([machine.type[device] for device in devices.tolist()], dtype=np.str_),
    )
