"""What a flow scheduler sees of a machine: nodes, and devices by kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Kind, Machine

DEVICES = "devices"


@dataclass(frozen=True, eq=False)
class FlowLayout:
    """Nodes that jobs share, and devices by kind.

    Attributes
    ----------
    nodes : (n_node,) owners
    columns : n_resource columns of the machine that nodes have, and `names` what they are called
    kinds : kinds of devices, one phase each, in this order
    devices : kind -> (n_device,) owners, ascending
    spot : kind -> (n_device,) where each stands: the position of its node in `nodes`, or n_node + k for the k-th place
        outside nodes
    n_spot : nodes and places outside them
    spot_owners : (n_spot,) an owner that stands at each: the node, or a device
    device_column : column of the machine that says whether a device is free, -1 without devices
    """

    machine: Machine
    nodes: IntArray
    columns: IntArray
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    devices: dict[str, IntArray]
    spot: dict[str, IntArray]
    spot_owners: IntArray
    device_column: int

    @classmethod
    @lru_cache(maxsize=8)  # a machine is compared by identity
    def of(cls, machine: Machine, kinds: tuple[str, ...] = ()) -> FlowLayout:
        """Look at a machine; `kinds` are device types, all that it has (by name) where none are given.

        Raises InputError for a machine without shared nodes, UnknownNameError for a kind that it does not have.
        """
        nodes = machine.of_kind(Kind.NODE)
        if not len(nodes) or "nodes" in machine.resources:
            raise InputError(
                f"machine '{machine.name}' has no shared nodes, or nodes that are taken whole",
                field="node",
                remedy='write allocation = "shared" and cores in every [[node]]',
            )
        column = machine.resource(DEVICES) if DEVICES in machine.resources else -1
        columns = np.flatnonzero(machine.capacity[nodes].any(axis=0))
        if not len(columns):
            raise InputError(
                f"the nodes of machine '{machine.name}' have nothing to give", field="node", remedy="give them cores"
            )
        every = machine.of_kind(Kind.DEVICE).tolist()
        counted = [o for o in every if column >= 0 and machine.capacity[o, column] > 0]
        known = sorted({machine.type[o] for o in counted})
        for name in kinds:
            if not any(machine.type[o] == name for o in every):  # those that have left stay known
                raise UnknownNameError.of("kind of device", name, known, field="kinds")
        number = {node: k for k, node in enumerate(nodes.tolist())}
        outside: dict[tuple[int, int], int] = {}  # (rack, vertex) of a place outside nodes -> a device there
        devices, spot = {}, {}
        for kind in kinds or known:
            mine = [o for o in counted if machine.type[o] == kind]
            devices[kind] = np.array(mine, dtype=np.int64)
            spot[kind] = np.array([_spot(machine, o, number, outside) for o in mine], dtype=np.int64)
        return cls(
            machine,
            nodes,
            columns,
            tuple(machine.resources[c] for c in columns.tolist()),
            tuple(kinds or known),
            devices,
            spot,
            np.concatenate([nodes, np.array(list(outside.values()), dtype=np.int64)]),
            column,
        )

    @property
    def n_spot(self) -> int:
        """Nodes and places outside them."""
        return len(self.spot_owners)

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources of nodes, then kinds of devices: the columns of demands and free amounts."""
        return (*self.names, *self.kinds)

    def free_devices(self, free: IntArray, kind: str) -> BoolArray:
        """(n_device,) which devices of a kind are free in (n_owner, n_resource) amounts."""
        there: BoolArray = free[self.devices[kind], self.device_column] > 0
        return there

    def amounts(self, free: IntArray) -> IntArray:
        """(n_spot, n_resource + n_kind) what is free in (n_owner, n_resource) amounts: of nodes, and devices standing there."""
        found = np.zeros((self.n_spot, len(self.resources)), dtype=np.int64)
        found[: len(self.nodes), : len(self.columns)] = free[np.ix_(self.nodes, self.columns)]
        for k, kind in enumerate(self.kinds):
            spots = self.spot[kind][self.free_devices(free, kind)]
            found[:, len(self.columns) + k] = np.bincount(spots, minlength=self.n_spot)
        return found

    def position(self) -> IntArray:
        """(n_node, 2) where each node stands."""
        return self.machine.position[self.nodes]


def _spot(machine: Machine, device: int, number: dict[int, int], outside: dict[tuple[int, int], int]) -> int:
    """Position of a device's node, or a number beyond those of the nodes for each place on the network outside them."""
    home = int(machine.home[device])
    if home in number:
        return number[home]
    place = int(machine.rack[device]), -1 if machine.fabric is None else int(machine.fabric.vertex[device])
    outside.setdefault(place, device)
    return len(number) + list(outside).index(place)


def room(free: IntArray, demand: IntArray, most: int) -> IntArray:
    """(n_class, n_place) tasks that ask for (n_class, n_resource) and fit on (n_place, n_resource) free, at most `most`."""
    found = np.full((len(demand), len(free)), most, dtype=np.int64)
    for k in np.flatnonzero(demand.any(axis=0)).tolist():
        asked = demand[:, k]
        fit = free[None, :, k] // np.maximum(asked, 1)[:, None]
        np.minimum(found, fit, out=found, where=(asked > 0)[:, None])
    return np.maximum(found, 0)
