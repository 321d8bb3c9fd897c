"""Machines from VineSim files."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise import catalog
from poolwise.model import Machine
from poolwise.registry import register
from poolwise.traces import vinesim
from poolwise.traces.vinesim.affinity import AffinityKind, check_kind, count_columns


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

    deployment: str
    affinity: str
    affinity_kind: str = "absolute"
    prices: str | None = None
    power: str | None = None
    types: str | None = None
    data: str | None = None
    contended: bool = False

    def build(self) -> Machine:
        """Build the machine; raises InputError with file, line and field."""
        check_kind(self.affinity_kind)
        kind: AffinityKind = "relative" if self.affinity_kind == "relative" else "absolute"
        types = vinesim.Types() if self.types is None else vinesim.Types.read(catalog.resolve("affinities", self.types))
        deployment, affinity = catalog.resolve("deployments", self.deployment), catalog.resolve("affinities", self.affinity)
        units = vinesim.read_deployment(deployment, types)
        places = () if self.data is None else vinesim.read_tasks(catalog.resolve("traces", self.data), types).places
        speeds = vinesim.read_affinity(affinity, kind, types)
        prices = None if self.prices is None else vinesim.read_prices(catalog.resolve("affinities", self.prices), types)
        power = None
        if self.power is not None:
            power = vinesim.read_power(catalog.resolve("affinities", self.power), types, count_columns(affinity))
        network = vinesim.Bandwidths(uplink=vinesim.Bandwidths.port) if self.contended else vinesim.Bandwidths()
        return vinesim.machine_of_units(
            units, speeds, places, prices=prices, power=power, types=types, network=network, name=deployment.stem
        )
