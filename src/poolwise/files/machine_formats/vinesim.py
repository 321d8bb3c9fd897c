"""Machines from VineSim files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise import catalog
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine
from poolwise.registry import InputFile, register
from poolwise.traces import vinesim
from poolwise.traces.vinesim.format import tasks_of
from poolwise.traces.vinesim.tables import count_columns


@register("machine_formats", "vinesim")
@dataclass(frozen=True)
class VineSimMachine:
    """Processing units of VineSim: a deployment and the affinities of its unit types, with optional prices and power.

    Parameters
    ----------
    affinity
        Affinity table: a file, or "catalog:NAME".
    deployment
        Units and their locations: a file, or "catalog:NAME".
    units, racks
        Unit type -> number of units, instead of a deployment; the units are distributed over the racks in turn, type by type.
    affinity_kind
        "absolute": operations per microsecond; "relative": factors of the INT column.
    prices, power, types
        Price of each unit type, power (W), and additional type names. Files, or "catalog:NAME".
    data
        Trace; the machine must contain the locations of its data.
    contended
        Whether transfers share links; rack uplinks are then as fast as the ports.
    """

    affinity: InputFile
    deployment: InputFile | None = None
    units: Mapping[str, int] = field(default_factory=dict)
    racks: int = 1
    affinity_kind: str = "absolute"
    prices: InputFile | None = None
    power: InputFile | None = None
    types: InputFile | None = None
    data: InputFile | None = None
    contended: bool = False

    def build(self) -> Machine:
        """Build the machine; raises InputError with file, line and field."""
        types, affinity = vinesim.Types.of(self.types), catalog.resolve("affinities", self.affinity)
        units, name = self._units(types)
        speeds = vinesim.read_affinity(affinity, self.affinity_kind, types)
        places = () if self.data is None else tasks_of(catalog.resolve("traces", self.data), types).places
        prices, power = None, None
        if self.prices is not None:
            prices = vinesim.read_prices(catalog.resolve("affinities", self.prices), types)
        if self.power is not None:
            power = vinesim.read_power(catalog.resolve("affinities", self.power), types, count_columns(affinity))
        network = vinesim.Bandwidths(uplink=vinesim.Bandwidths.port) if self.contended else vinesim.Bandwidths()
        return vinesim.machine_of_units(
            units, speeds, places, prices=prices, power=power, types=types, network=network, name=name
        )

    def _units(self, types: vinesim.Types) -> tuple[vinesim.UnitList, str]:
        """Return the units and the name of the machine."""
        if (self.deployment is None) == (not self.units):
            remedy = 'write deployment = "FILE", or units = { gpu = 4 }'
            raise InputError("give either a deployment or units", field="deployment", remedy=remedy)
        if self.deployment is not None:
            file = catalog.resolve("deployments", self.deployment)
            return vinesim.read_deployment(file, types), file.stem
        for name, count in self.units.items():
            if name not in types.units:
                raise UnknownNameError.of("unit type", name, types.units, field="units")
            if count < 0:
                raise InputError(f"{count} units of type '{name}'", field="units", remedy="write a number of at least 0")
        if self.racks < 1:
            raise InputError(f"racks must be at least 1, got {self.racks}", field="racks", remedy="write 1 or more")
        kinds = [types.units.index(name) for name, count in self.units.items() for _ in range(count)]
        return vinesim.UnitList.of([(kind, k % self.racks, k // self.racks) for k, kind in enumerate(kinds)]), "units"
