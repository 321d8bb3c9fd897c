"""Transfer model: uncontended time to move a task's data to its unit, size / bottleneck + latency.

Source: VineSim, section 3 and Table 4; accelerator spec, "Model".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.errors import InputError
from poolwise.model import Machine, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.performance.routes import homes
from poolwise.registry import register


@register("models", "transfer")
@dataclass(frozen=True)
class Transfer(SimpleModel):
    """Setup time to move data from its position to the task before the task computes; none if both are at one position.

    The model reads the job table's columns "data_size" (bytes; without it there is no transfer), "data_x" and "data_y" (the
    position, as in `Machine.position`). A run with tasks at several positions waits for the last transfer.

    Parameters
    ----------
    switch_ns
        Latency of each switch on a path, in addition to that of the links; a path has one switch fewer than links.
    local
        Bandwidth (MB/s) between owners at one position; 0 means that such transfers take no time.
    """

    switch_ns: int = 200
    local: int = 0

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the transfer time (ns): bytes / least bandwidth on the path (1 MB = 10^6 B), rounded up, + latency.

        Raises InputError if the data is at a position that is not on the network.
        """
        data = InputData.of(run, snapshot)
        return 0 if data is None else max(self._time(data, unit, snapshot) for unit in data.units)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return 0."""
        return 0.0

    def _time(self, data: InputData, unit: int, snapshot: Snapshot) -> int:
        machine = snapshot.machine
        if data.is_local(unit, machine):
            return -(-data.size * 1000 // self.local) if self.local else 0
        links = data.path(unit, machine)
        if not links:
            return 0
        assert machine.fabric is not None
        bandwidth = machine.fabric.bottleneck(links, snapshot.capacity[:, machine.resource("bandwidth")])
        if bandwidth <= 0:
            raise InputError(f"no bandwidth on the path from {data.place} to '{machine.owners[unit]}'", field="bandwidth")
        return -(-data.size * 1000 // bandwidth) + latency(links, machine, self.switch_ns)


@dataclass(frozen=True, slots=True)
class InputData:
    """Input data, `size` >= 1 bytes at position (x, y), that must be moved to the units of a run (owners, ascending)."""

    size: int
    place: tuple[int, int]
    units: tuple[int, ...]

    @classmethod
    def of(cls, run: Run, snapshot: Snapshot) -> InputData | None:
        """Return the input data of a run, None if it has none."""
        job = snapshot.table.job(run.job)
        size = int(job.attribute("data_size")) if "data_size" in snapshot.table.attributes else 0
        if not size:
            return None
        place = int(job.attribute("data_x")), int(job.attribute("data_y"))
        units = {unit for units in homes(run.placement, snapshot.machine).values() for unit in units}
        return cls(size, place, tuple(sorted(units)))

    def is_local(self, unit: int, machine: Machine) -> bool:
        """Return whether a unit is at the position of the data."""
        return tuple(machine.position[unit].tolist()) == self.place

    def path(self, unit: int, machine: Machine) -> tuple[int, ...]:
        """Return the links from the data to a unit, none if both are at one position.

        Raises InputError if there is no network, or none at the position of the data.
        """
        if self.is_local(unit, machine):
            return ()
        if machine.fabric is None:
            remedy = "add [[link]] sections, or remove data_size"
            raise InputError("cannot transfer data: the machine has no network", field="link", remedy=remedy)
        return machine.fabric.path(_at(self.place, machine), unit)


def latency(links: tuple[int, ...], machine: Machine, switch_ns: int) -> int:
    """Return the latency (ns) of the links of a path, which must not be empty, and of the switches between them."""
    assert machine.fabric is not None
    return machine.fabric.path_latency(links) + switch_ns * (len(links) - 1)


def _at(place: tuple[int, int], machine: Machine) -> int:
    """Return the lowest owner at a position that is on the network."""
    owner = places(machine).get(place)
    if owner is None:
        problem = f"data is at x = {place[0]}, y = {place[1]}, where the network has no node or device"
        raise InputError(problem, field="data_x", remedy="put a node or device there, or move the data")
    return owner


@lru_cache(maxsize=8)  # a machine is compared by identity
def places(machine: Machine) -> dict[tuple[int, int], int]:
    """Return the lowest owner on the network at each position (x, y)."""
    lowest: dict[tuple[int, int], int] = {}
    if machine.fabric is not None:
        for owner in np.flatnonzero(machine.fabric.vertex >= 0).tolist():
            x, y = machine.position[owner].tolist()
            lowest.setdefault((x, y), owner)
    return lowest
