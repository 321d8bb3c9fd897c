"""Devices in no composition, by location and size, and the smallest sets of them that cover a need."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from poolwise.model import Snapshot
from poolwise.policies.placement.nvme.composition_request import CompositionRequest
from poolwise.policies.placement.nvme.layout import DeviceLayout

DeviceSize = tuple[int, int]
"""(bandwidth in MB/s, storage in MiB) of a device."""


class FreeDevices:
    """Free devices of every location. Devices of one size are interchangeable and kept in ascending order.

    Attributes
    ----------
    attached : n_place MB/s of the devices in use, which a fabric limits
    """

    def __init__(self, layout: DeviceLayout) -> None:
        self.layout = layout
        self.attached = [0] * len(layout.inside)
        self._limit = [-1] * len(layout.inside)
        self._free: list[dict[DeviceSize, list[int]]] = [{} for _ in layout.inside]
        self._size: dict[int, DeviceSize] = {}

    def add(self, devices: list[int], snapshot: Snapshot) -> None:
        """Add devices to the list."""
        layout, capacity = self.layout, snapshot.capacity
        sizes = capacity[np.ix_(devices, [layout.bandwidth, layout.storage])].tolist()
        for device, (bandwidth, storage) in zip(devices, sizes, strict=True):
            size = self._size[device] = bandwidth, storage
            insort(self._free[layout.place[device]].setdefault(size, []), device)
        for place in {layout.place[device] for device in devices}:
            fabric = layout.fabric[place]
            self._limit[place] = int(capacity[fabric, layout.bandwidth]) if fabric >= 0 else -1

    def remove(self, device: int) -> None:
        """Remove a device from the list if it is present."""
        size = self._size.pop(device, None)
        if size is not None:
            devices = self._free[self.layout.place[device]][size]
            del devices[bisect_left(devices, device)]

    def size(self, device: int) -> DeviceSize:
        """Return (bandwidth, storage) of a free device."""
        return self._size[device]

    def first(self, place: int, need: CompositionRequest) -> int:
        """Return the lowest device of a location that covers a need by itself, -1 if there is none."""
        first_devices = [
            devices[0]
            for (bandwidth, storage), devices in self._free[place].items()
            if devices and bandwidth >= need.bandwidth and storage >= need.storage and self._attachable(place, bandwidth)
        ]
        return min(first_devices, default=-1)

    def offers(self, place: int, single_device: bool) -> list[DeviceSize]:
        """Return the sizes of the free devices of a location: one per device if `single_device`, else their total size."""
        if single_device:
            return [size for size, devices in self._free[place].items() if devices]
        bandwidth, storage = (sum(size[k] * len(devices) for size, devices in self._free[place].items()) for k in (0, 1))
        return [(bandwidth, storage)]

    def blocked(self, place: int, need: CompositionRequest, single_device: bool) -> tuple[int, int] | None:
        """Return (MB/s of covering devices, MB/s the fabric can still attach) if only the fabric is short, else None."""
        if single_device:
            able = [b for (b, s), devices in self._free[place].items() if devices and b >= need.bandwidth and s >= need.storage]
            bandwidth = min(able, default=-1)
        else:
            devices = next(self.covers(place, need, any_fabric=True), ())
            bandwidth = sum(self._size[device][0] for device in devices) if devices else -1
        return None if self._attachable(place, bandwidth) else (bandwidth, self._limit[place] - self.attached[place])

    def covers(self, place: int, need: CompositionRequest, *, any_fabric: bool = False) -> Iterator[tuple[int, ...]]:
        """Yield sets of devices that cover a need together: a smallest set first, then one device more each time.

        Among sets of one size, the set with the least surplus is chosen. With `any_fabric`, the limits of fabrics are ignored.
        If a location has several device sizes, all combinations of sizes are tried.
        """
        sizes = sorted(size for size, devices in self._free[place].items() if devices)
        largest = [max((size[k] for size in sizes), default=0) for k in (0, 1)]
        if not sizes or largest[0] == 0 < need.bandwidth or largest[1] == 0 < need.storage:
            return
        total = sum(len(self._free[place][size]) for size in sizes)
        fewest = max(1, _ratio(need.bandwidth, largest[0]), _ratio(need.storage, largest[1]))
        for count in range(fewest, total + 1):
            if not (any_fabric or self._attachable(place, count * min(size[0] for size in sizes))):
                return
            best: tuple[float, tuple[int, ...]] | None = None
            for chosen in combinations_with_replacement(sizes, count):
                cover = self._cover(place, need, chosen, any_fabric)
                if cover is not None and (best is None or cover < best):
                    best = cover
            if best is not None:
                yield best[1]

    def _cover(
        self, place: int, need: CompositionRequest, chosen: tuple[DeviceSize, ...], any_fabric: bool
    ) -> tuple[float, tuple[int, ...]] | None:
        """Return (surplus, devices) for a choice of sizes, None if it falls short, is not available or exceeds the fabric."""
        bandwidth, storage = sum(size[0] for size in chosen), sum(size[1] for size in chosen)
        if bandwidth < need.bandwidth or storage < need.storage or not (any_fabric or self._attachable(place, bandwidth)):
            return None
        devices: list[int] = []
        for size in set(chosen):
            there, count = self._free[place][size], chosen.count(size)
            if len(there) < count:
                return None
            devices += there[:count]
        layout = self.layout
        surplus = (bandwidth - need.bandwidth) / layout.bandwidth_unit + (storage - need.storage) / layout.storage_unit
        return surplus, tuple(sorted(devices))

    def _attachable(self, place: int, bandwidth: int) -> bool:
        return self._limit[place] < 0 or self.attached[place] + bandwidth <= self._limit[place]


def _ratio(need: int, each: int) -> int:
    """Return the number of devices of size `each` that make up a need."""
    return -(-need // each) if need else 0
