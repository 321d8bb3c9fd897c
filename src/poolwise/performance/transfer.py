"""Time to bring a task's data to where it runs.

Source: VineSim, section 3 and Table 4; specs of the accelerators, "Model". Uncontended: size / bottleneck + latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Machine, Placement, Run, Snapshot
from poolwise.performance.routes import homes
from poolwise.registry import register


@register("models", "transfer")
@dataclass(frozen=True)
class Transfer(PerformanceModel):
    """Before work begins, data travels from where it lies to where the task runs; nothing within one place.

    Reads the job table's columns "data_size" (bytes; without it nothing travels), "data_x" and "data_y" (the place, as in
    `Machine.position`). A run whose tasks fetch to several places waits for the last.

    Parameters
    ----------
    switch_ns
        Latency of each switch that a path goes through, one fewer than its links, besides the links' own.
    local
        MB/s between owners at one place; 0: such transfers take no time.
    """

    switch_ns: int = 200
    local: int = 0

    def setup(self, run: Run, view: Snapshot) -> int:
        """Ns: bytes / least bandwidth on the path (1 MB = 10^6 B), rounded up, + latency.

        Raises InputError where data lies at a place that is not on the network.
        """
        data = Data.of(run, view)
        return 0 if data is None else max(self._time(data, unit, view) for unit in data.units)

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """0."""
        return 0.0

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Nothing: bandwidth is not shared here."""
        return ()

    def _time(self, data: Data, unit: int, view: Snapshot) -> int:
        machine = view.machine
        if data.beside(unit, machine):
            return -(-data.size * 1000 // self.local) if self.local else 0
        links = data.way(unit, machine)
        if not links:
            return 0
        assert machine.fabric is not None
        bandwidth = machine.fabric.bottleneck(links, view.capacity[:, machine.resource("bandwidth")])
        if bandwidth <= 0:
            raise InputError(f"no bandwidth on the way from {data.place} to '{machine.owners[unit]}'", field="bandwidth")
        return -(-data.size * 1000 // bandwidth) + latency(links, machine, self.switch_ns)


@dataclass(frozen=True, slots=True)
class Data:
    """What has to be brought to where a run computes.

    Attributes
    ----------
    size : bytes, at least 1
    place : (x, y)
    units : owners that need it, ascending
    """

    size: int
    place: tuple[int, int]
    units: tuple[int, ...]

    @classmethod
    def of(cls, run: Run, view: Snapshot) -> Data | None:
        """Data of a run; None where it has none."""
        job = view.table.job(run.job)
        size = int(job.attribute("data_size")) if "data_size" in view.table.attributes else 0
        if not size:
            return None
        place = int(job.attribute("data_x")), int(job.attribute("data_y"))
        return cls(
            size, place, tuple(sorted({unit for units in homes(run.placement, view.machine).values() for unit in units}))
        )

    def beside(self, unit: int, machine: Machine) -> bool:
        """Whether a unit stands at the place of the data."""
        return tuple(machine.position[unit].tolist()) == self.place

    def way(self, unit: int, machine: Machine) -> tuple[int, ...]:
        """Links from the data to a unit, none where both stand at one place.

        Raises InputError where there is no network, or none at the place of the data.
        """
        if self.beside(unit, machine):
            return ()
        if machine.fabric is None:
            raise InputError(
                "data must travel, but the machine has no network",
                field="link",
                remedy="add [[link]] sections, or leave out data_size",
            )
        return machine.fabric.path(_at(self.place, machine), unit)


def latency(links: tuple[int, ...], machine: Machine, switch_ns: int) -> int:
    """Ns of latency of a path, which must not be empty: of its links, and of the switches between them."""
    assert machine.fabric is not None
    return machine.fabric.path_latency(links) + switch_ns * (len(links) - 1)


def _at(place: tuple[int, int], machine: Machine) -> int:
    """Lowest owner at a place that is on the network."""
    found = places(machine).get(place)
    if found is None:
        raise InputError(
            f"data lies at x = {place[0]}, y = {place[1]}, where nothing is on the network",
            field="data_x",
            remedy="put a node or device there, or move the data",
        )
    return found


@lru_cache(maxsize=8)  # a machine is compared by identity
def places(machine: Machine) -> dict[tuple[int, int], int]:
    """Lowest owner on the network at each place (x, y)."""
    found: dict[tuple[int, int], int] = {}
    if machine.fabric is not None:
        for owner in np.flatnonzero(machine.fabric.vertex >= 0).tolist():
            x, y = machine.position[owner].tolist()
            found.setdefault((x, y), owner)
    return found
