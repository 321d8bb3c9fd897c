"""View of a machine for flow scheduling: nodes, and devices by kind."""

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
    """Shared nodes, and devices by kind.

    Attributes
    ----------
    kinds : kinds of devices, one phase each, in this order
    owners : kind -> (n_device,) owner numbers, ascending
    spot : kind -> (n_device,) spot of each device: the position of its node in `nodes`, or n_node + k for the k-th location
        outside nodes
    spot_owners : (n_spot,) owner that represents each spot: the node, or a device
    device_column : column of the machine with free devices, -1 without devices
    """

    kinds: tuple[str, ...]
    owners: dict[str, IntArray]
    spot: dict[str, IntArray]
    spot_owners: IntArray
    device_column: int

    @classmethod
    @lru_cache(maxsize=8)  # a machine is compared by identity
    def of(cls, machine: Machine, kinds: tuple[str, ...] = ()) -> FlowLayout:
        """Build the view; `kinds` are device types, by default all those of the machine in order of name.

        Raises InputError for a machine without shared nodes, and UnknownNameError for a kind that it lacks.
        """
        every = shared_nodes(machine)
        shared = every.only(every.having(DEVICES))
        types = shared.by_type()
        for name in kinds:
            if name not in every.type:  # devices that have left the machine still have their type
                raise UnknownNameError.of("kind of device", name, types, field="kinds")
        owners, spot = {}, {}
        outside: dict[tuple[int, int], int] = {}  # (rack, vertex) of a location outside nodes -> a device there
        for kind in kinds or types:
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
        """Number of nodes and of device locations outside nodes."""
        return len(self.spot_owners)

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources of nodes, then kinds of devices: the columns of demands and free amounts."""
        return (*self.names, *self.kinds)

    def free_devices(self, free: IntArray, kind: str) -> BoolArray:
        """Return a mask of the free devices of a kind, (n_device,), given the free amounts, (n_owner, n_resource)."""
        is_free: BoolArray = free[self.owners[kind], self.device_column] > 0
        return is_free

    def amounts(self, free: IntArray) -> IntArray:
        """Return the free amounts of nodes and devices, (n_spot, n_resource + n_kind), given those of owners."""
        values = np.zeros((self.n_spot, len(self.resources)), dtype=np.int64)
        values[: len(self.nodes), : len(self.columns)] = free[np.ix_(self.nodes, self.columns)]
        for k, kind in enumerate(self.kinds):
            spots = self.spot[kind][self.free_devices(free, kind)]
            values[:, len(self.columns) + k] = np.bincount(spots, minlength=self.n_spot)
        return values

    def position(self) -> IntArray:
        """Return the positions of the nodes, (n_node, 2)."""
        return self.machine.position[self.nodes]


def _outside(machine: Machine, device: int, outside: dict[tuple[int, int], int]) -> int:
    """Return the number of a device's location outside nodes; add a new location to `outside`."""
    place = int(machine.rack[device]), -1 if machine.fabric is None else int(machine.fabric.vertex[device])
    outside.setdefault(place, device)
    return list(outside).index(place)


def room(free: IntArray, demand: IntArray, most: int) -> IntArray:
    """Return how many tasks of each class fit each place, (n_class, n_place), up to `most`, given demands and free amounts."""
    values = np.full((len(demand), len(free)), most, dtype=np.int64)
    for k in np.flatnonzero(demand.any(axis=0)).tolist():
        required = demand[:, k]
        fit = free[None, :, k] // np.maximum(required, 1)[:, None]
        np.minimum(values, fit, out=values, where=(required > 0)[:, None])
    return np.maximum(values, 0)
