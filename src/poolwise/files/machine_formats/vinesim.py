"""Machines from VineSim files."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise import catalog
from poolwise.model import Machine
from poolwise.registry import InputFile, register
from poolwise.traces import vinesim
from poolwise.traces.vinesim.tables import count_columns


@register("machine_formats", "vinesim")
@dataclass(frozen=True)
class VineSimMachine:
    """Processing units of VineSim: a deployment and the affinities of its unit types, with optional prices and power.

    Parameters
    ----------
    deployment, affinity
        Files, or "catalog:NAME".
    affinity_kind
        "absolute": operations per microsecond; "relative": factors of the INT column.
    prices, power, types
        Price of each unit type, power (W), and additional type names. Files, or "catalog:NAME".
    data
        Trace whose data locations the machine must contain.
    contended
        Whether transfers share links; rack uplinks are then as fast as the ports.
    """

    deployment: InputFile
    affinity: InputFile
    affinity_kind: str = "absolute"
    prices: InputFile | None = None
    power: InputFile | None = None
    types: InputFile | None = None
    data: InputFile | None = None
    contended: bool = False

    def build(self) -> Machine:
        """Build the machine; raises InputError with file, line and field."""
        types, affinity = vinesim.Types.of(self.types), catalog.resolve("affinities", self.affinity)
        deployment = catalog.resolve("deployments", self.deployment)
        units, speeds = vinesim.read_deployment(deployment, types), vinesim.read_affinity(affinity, self.affinity_kind, types)
        places = () if self.data is None else vinesim.read_tasks(catalog.resolve("traces", self.data), types).places
        prices, power = None, None
        if self.prices is not None:
            prices = vinesim.read_prices(catalog.resolve("affinities", self.prices), types)
        if self.power is not None:
            power = vinesim.read_power(catalog.resolve("affinities", self.power), types, count_columns(affinity))
        network = vinesim.Bandwidths(uplink=vinesim.Bandwidths.port) if self.contended else vinesim.Bandwidths()
        return vinesim.machine_of_units(
            units, speeds, places, prices=prices, power=power, types=types, network=network, name=deployment.stem
        )
