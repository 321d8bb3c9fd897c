"""What a flow scheduler sees of a machine: nodes, and devices by kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import UnknownNameError
from poolwise.model import Machine
from poolwise.model.shared_nodes import SharedNodes, shared_nodes

DEVICES = "devices"


@dataclass(frozen=True, eq=False)
class FlowLayout(SharedNodes):
    """Nodes that jobs share, and devices by kind.

    Attributes
    ----------
    kinds : kinds of devices, one phase each, in this order
    owners : kind -> (n_device,) owners, ascending
    spot : kind -> (n_device,) where each stands: the position of its node in `nodes`, or n_node + k for the k-th place
        outside nodes
    n_spot : nodes and places outside them
    spot_owners : (n_spot,) an owner that stands at each: the node, or a device
    device_column : column of the machine that says whether a device is free, -1 without devices
    """

    kinds: tuple[str, ...]
    owners: dict[str, IntArray]
    spot: dict[str, IntArray]
    spot_owners: IntArray
    device_column: int

    @classmethod
    @lru_cache(maxsize=8)  # a machine is compared by identity
    def of(cls, machine: Machine, kinds: tuple[str, ...] = ()) -> FlowLayout:
        """Look at a machine; `kinds` are device types, all that it has (by name) where none are given.

        Raises InputError for a machine without shared nodes, UnknownNameError for a kind that it does not have.
        """
        every = shared_nodes(machine)
        shared = every.only(every.having(DEVICES))
        known = shared.by_type()
        for name in kinds:
            if name not in every.type:  # devices that have left the machine are still known by their type
                raise UnknownNameError.of("kind of device", name, known, field="kinds")
        owners, spot = {}, {}
        outside: dict[tuple[int, int], int] = {}  # (rack, vertex) of a place outside nodes -> a device there
        for kind in kinds or known:
            mine = shared.type == kind
            owners[kind] = shared.devices[mine]
            places = zip(owners[kind].tolist(), shared.home[mine].tolist(), strict=True)
            spot[kind] = np.array(
                [home if home >= 0 else len(shared.nodes) + _outside(machine, device, outside) for device, home in places],
                dtype=np.int64,
            )
        return cls(
            **vars(shared),
            kinds=tuple(owners),
            owners=owners,
            spot=spot,
            spot_owners=np.concatenate([shared.nodes, np.array(list(outside.values()), dtype=np.int64)]),
            device_column=shared.column(DEVICES),
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
        there: BoolArray = free[self.owners[kind], self.device_column] > 0
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


def _outside(machine: Machine, device: int, outside: dict[tuple[int, int], int]) -> int:
    """Number of the place on the network, outside nodes, where a device stands; a new place is added to `outside`."""
    place = int(machine.rack[device]), -1 if machine.fabric is None else int(machine.fabric.vertex[device])
    outside.setdefault(place, device)
    return list(outside).index(place)


def room(free: IntArray, demand: IntArray, most: int) -> IntArray:
    """(n_class, n_place) tasks that ask for (n_class, n_resource) and fit on (n_place, n_resource) free, at most `most`."""
    found = np.full((len(demand), len(free)), most, dtype=np.int64)
    for k in np.flatnonzero(demand.any(axis=0)).tolist():
        asked = demand[:, k]
        fit = free[None, :, k] // np.maximum(asked, 1)[:, None]
        np.minimum(found, fit, out=found, where=(asked > 0)[:, None])
    return np.maximum(found, 0)
