"""Machines of units with the shipped affinity tables."""

from poolwise import catalog
from poolwise.model import Machine
from poolwise.traces import vinesim


def machine(tables: str, **units: int) -> Machine:
    """Build a machine with the given number of units of each type ("_" replaces "-" in its name)."""
    types = vinesim.Types.read(catalog.find("affinities", f"{tables}-types.toml"))
    rates = vinesim.read_affinity(catalog.find("affinities", f"{tables}-affinity.txt"), types=types)
    kinds = [types.units.index(name.replace("_", "-")) for name, count in units.items() for _ in range(count)]
    deployment = vinesim.UnitList.of([(kind, 0, shelf) for shelf, kind in enumerate(kinds)])
    return vinesim.machine_of_units(deployment, rates, types=types)
