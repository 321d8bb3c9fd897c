"""Shared nodes and the devices they can attach, the shape on which composition works."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.model import Kind, Machine


@dataclass(frozen=True, eq=False)
class DeviceLayout:
    """Devices by the place from which they are attached.

    Devices of one place may be composed: those inside a node, those of a rack, those of the machine. Devices inside a node
    serve that node, all others serve every node. A pool of the same rack (or of the machine) that has bandwidth is the
    place's fabric: the devices attached from there never exceed it together.

    Attributes
    ----------
    nodes : (n_node,) owners that are shared nodes
    devices : (n_device,) owners that are devices
    place : device -> number of its place; places count from 0 in the order of their first device
    home : n_place nodes that the devices of a place are inside of, -1 where they are pooled
    fabric : n_place owners of the fabric limit, -1 without
    cores, bandwidth, storage : columns of the resources, -1 where the machine has none
    bandwidth_unit, storage_unit : the largest device's, by which room is made comparable (1 without devices)
    installed : (bandwidth, storage) of all devices
    """

    nodes: IntArray
    devices: IntArray
    place: dict[int, int]
    home: tuple[int, ...]
    fabric: tuple[int, ...]
    cores: int
    bandwidth: int
    storage: int
    bandwidth_unit: float
    storage_unit: float
    installed: tuple[int, int]


@lru_cache(maxsize=8)
def device_layout(machine: Machine) -> DeviceLayout:
    """Read a machine as shared nodes with devices; raises InputError for one without shared nodes."""
    column = {name: machine.resources.index(name) if name in machine.resources else -1 for name in _RESOURCES}
    cores, bandwidth, storage = (column[name] for name in _RESOURCES)
    nodes = machine.of_kind(Kind.NODE)
    nodes = nodes[machine.capacity[nodes, cores] > 0] if cores >= 0 else nodes[:0]
    if not len(nodes):
        raise InputError(
            f"machine '{machine.name}' has no shared nodes with cores",
            field="node",
            remedy='write allocation = "shared" and cores in a [[node]]',
        )
    devices = machine.of_kind(Kind.DEVICE)
    if bandwidth >= 0 and storage >= 0:
        devices = devices[(machine.capacity[devices][:, [bandwidth, storage]] > 0).any(axis=1)]
    else:
        devices = devices[:0]
    places: dict[tuple[int, int], int] = {}
    place = {}
    for device in devices.tolist():
        home = int(machine.home[device])
        where = (home, -1 if home >= 0 else int(machine.rack[device]))
        place[device] = places.setdefault(where, len(places))
    largest = machine.capacity[devices].max(axis=0).tolist() if len(devices) else []
    return DeviceLayout(
        nodes=nodes,
        devices=devices,
        place=place,
        home=tuple(home for home, _ in places),
        fabric=tuple(_fabric(machine, home, rack, bandwidth) for home, rack in places),
        cores=cores,
        bandwidth=bandwidth,
        storage=storage,
        bandwidth_unit=float(max(largest[bandwidth], 1)) if largest else 1.0,
        storage_unit=float(max(largest[storage], 1)) if largest else 1.0,
        installed=(
            int(machine.capacity[devices, bandwidth].sum()) if len(devices) else 0,
            int(machine.capacity[devices, storage].sum()) if len(devices) else 0,
        ),
    )


_RESOURCES = ("cores", "bandwidth", "storage")


def _fabric(machine: Machine, home: int, rack: int, bandwidth: int) -> int:
    for pool in machine.of_kind(Kind.POOL).tolist():
        if home < 0 and int(machine.rack[pool]) == rack and np.any(machine.capacity[pool, bandwidth] > 0):
            return int(pool)
    return -1
