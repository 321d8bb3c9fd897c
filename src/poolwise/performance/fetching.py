"""Fetching model: tasks fetch data over shared links before they compute.

When a flow ends, the other flows get its bandwidth while its task computes. Fetching is therefore a phase of the run with its
own rate. Source: accelerator spec, "max-min fair sharing of links".
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.errors import InputError
from poolwise.model import Fetch, Machine, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.performance.transfer import InputData, latency
from poolwise.registry import register


@register("models", "fetching")
@dataclass(frozen=True)
class Fetching(SimpleModel):
    """Fetch phase before the computation; a task occupies its unit from the start and computes once its data have arrived.

    The model reads the columns of `Transfer`. The latency of the longest path passes first, and flows take their shares during
    it already. Each flow requests the bandwidth of the link at its unit. `network_sharing`, which must be combined with this
    model, assigns its rate.

    Parameters
    ----------
    switch_ns
        Latency of each switch on the path.
    """

    switch_ns: int = 200

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the latency of the longest path (ns)."""
        machine = snapshot.machine
        return max((latency(path, machine, self.switch_ns) for path in _paths(InputData.of(run, snapshot), machine)), default=0)

    def fetch(self, run: Run, snapshot: Snapshot) -> Fetch | None:
        """Return one flow to each unit that is not at the position of the data; None if all units are there.

        Raises InputError if the links at the units have no bandwidth.
        """
        data, machine = InputData.of(run, snapshot), snapshot.machine
        fabric, paths = machine.fabric, _paths(data, machine)
        if data is None or fabric is None or not paths:
            return None
        ports = fabric.link_owners([path[-1] for path in paths])
        bandwidth = int(machine.capacity[list(ports), machine.resource("bandwidth")].max())
        if bandwidth <= 0:
            problem = f"cannot transfer data: link '{machine.owners[ports[0]]}' has no bandwidth"
            raise InputError(problem, field="bandwidth", remedy="give the link bandwidth, or remove data_size")
        links = {link for unit in data.units for link in fabric.connected(unit)}
        return Fetch(-(-data.size * 1000 // bandwidth), bandwidth, paths, fabric.link_owners(sorted(links)))

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return 0: the computation is as fast as without data."""
        return 0.0


def _paths(data: InputData | None, machine: Machine) -> tuple[tuple[int, ...], ...]:
    """Return the links from the data to each unit at another position."""
    return () if data is None else tuple(path for unit in data.units if (path := data.path(unit, machine)))
