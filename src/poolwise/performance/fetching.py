"""Data that are fetched over shared links before a task computes.

A flow that ends leaves its bandwidth to the others while its task goes on computing, so fetching is a phase of the run with a
pace of its own. Source: specs of the accelerators, "max-min fair sharing of links".
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Fetch, Machine, Placement, Run, Snapshot
from poolwise.performance.transfer import Data, latency
from poolwise.registry import register


@register("models", "fetching")
@dataclass(frozen=True)
class Fetching(PerformanceModel):
    """A task holds its unit from the start, and computes once its data are there.

    It reads the columns of `Transfer`. The latency of the longest way passes first; it counts as a flow meanwhile. Each flow
    asks for what the link at its unit carries; `network_sharing`, which must be combined with this model, says what it gets.

    Parameters
    ----------
    switch_ns
        Latency of each switch on the way.
    """

    switch_ns: int = 200

    def setup(self, run: Run, view: Snapshot) -> int:
        """Ns of latency, the largest of all ways."""
        machine = view.machine
        return max((latency(way, machine, self.switch_ns) for way in _ways(Data.of(run, view), machine)), default=0)

    def fetch(self, run: Run, view: Snapshot) -> Fetch | None:
        """A flow to each unit that is not at the place of the data; None where all are.

        Raises InputError where the links at the units have no bandwidth.
        """
        data, machine = Data.of(run, view), view.machine
        fabric, ways = machine.fabric, _ways(data, machine)
        if data is None or fabric is None or not ways:
            return None
        ports = fabric.link_owners([way[-1] for way in ways])
        bandwidth = int(machine.capacity[list(ports), machine.resource("bandwidth")].max())
        if bandwidth <= 0:
            raise InputError(
                f"data must travel, but link '{machine.owners[ports[0]]}' has no bandwidth",
                field="bandwidth",
                remedy="give the link bandwidth, or leave out data_size",
            )
        links = {link for unit in data.units for link in fabric.connected(unit)}
        return Fetch(-(-data.size * 1000 // bandwidth), bandwidth, ways, fabric.link_owners(sorted(links)))

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """0: work is as fast as without data."""
        return 0.0

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Nothing: what is fetched names the links itself."""
        return ()


def _ways(data: Data | None, machine: Machine) -> tuple[tuple[int, ...], ...]:
    """Links from data to each unit that is elsewhere."""
    return () if data is None else tuple(way for unit in data.units if (way := data.way(unit, machine)))
