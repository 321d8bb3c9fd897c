"""Layout of shared nodes and the devices that they can attach, used by composition policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from poolwise.model import Kind, Machine
from poolwise.model.shared_nodes import SharedNodes, shared_nodes


@dataclass(frozen=True, eq=False)
class DeviceLayout(SharedNodes):
    """Devices by the location from which they are attached.

    Devices of one location may be composed: those inside a node, those of a rack, or those of the machine. Devices inside a
    node serve only that node; all others serve every node. A pool of the same rack (or of the machine) that has bandwidth is
    the fabric of the location: the attached devices never exceed it in total.

    Attributes
    ----------
    place : device -> number of its location; locations count from 0 in the order of their first device
    inside : n_place nodes that contain the devices of a location, -1 for pooled devices
    fabric : n_place owners of the fabric limit, -1 without one
    cores, bandwidth, storage : columns of the resources, -1 if the machine does not have them
    bandwidth_unit, storage_unit : amounts of the largest device, which normalize room (1 without devices)
    installed : (bandwidth, storage) of all devices
    """

    place: dict[int, int]
    inside: tuple[int, ...]
    fabric: tuple[int, ...]
    cores: int
    bandwidth: int
    storage: int
    bandwidth_unit: float
    storage_unit: float
    installed: tuple[int, int]

    @cached_property
    def node_index(self) -> dict[int, int]:
        """Owner -> index in `nodes`."""
        return {owner: k for k, owner in enumerate(self.nodes.tolist())}


@lru_cache(maxsize=8)
def device_layout(machine: Machine) -> DeviceLayout:
    """Read a machine as shared nodes with devices. Raises InputError if it has no shared nodes."""
    every = shared_nodes(machine, "cores")
    bandwidth, storage = every.column("bandwidth"), every.column("storage")
    shared = every.only(every.having("bandwidth", "storage") & (min(bandwidth, storage) >= 0))
    places: dict[tuple[int, int], int] = {}
    place = {}
    for device in shared.devices.tolist():
        home = int(machine.home[device])
        where = (home, -1 if home >= 0 else int(machine.rack[device]))
        place[device] = places.setdefault(where, len(places))
    has = machine.capacity[shared.devices][:, [bandwidth, storage]]
    units = np.maximum(has.max(axis=0, initial=1), 1).astype(np.float64).tolist()
    return DeviceLayout(
        **vars(shared),
        place=place,
        inside=tuple(home for home, _ in places),
        fabric=tuple(_fabric(machine, home, rack, bandwidth) for home, rack in places),
        cores=shared.column("cores"),
        bandwidth=bandwidth,
        storage=storage,
        bandwidth_unit=units[0],
        storage_unit=units[1],
        installed=(int(has[:, 0].sum()), int(has[:, 1].sum())),
    )


def _fabric(machine: Machine, home: int, rack: int, bandwidth: int) -> int:
    for pool in machine.of_kind(Kind.POOL).tolist():
        if home < 0 and int(machine.rack[pool]) == rack and np.any(machine.capacity[pool, bandwidth] > 0):
            return int(pool)
    return -1
