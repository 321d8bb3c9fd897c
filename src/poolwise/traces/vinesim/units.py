"""Deployments (the units and their locations, fields: type x y), and machines built from them.

Source: VineSim, sections 4.1, 5.2.1 and 8.8; specs of the accelerators, "Files", "Model": two hops within a rack, four across.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, MachineBuilder
from poolwise.performance.affinity import PREFIX
from poolwise.traces.vinesim.rows import read_lines, whole_column
from poolwise.traces.vinesim.tables import Power
from poolwise.traces.vinesim.types import STANDARD, Types

FIELDS = ("type", "x", "y")


@dataclass(frozen=True, eq=False)
class UnitList:
    """Units in the order of the file.

    Attributes
    ----------
    type : (n_unit,) number of the unit type
    x, y : (n_unit,) rack and shelf, from 0
    """

    type: IntArray
    x: IntArray
    y: IntArray

    def __post_init__(self) -> None:
        for array in (self.type, self.x, self.y):
            frozen(array)

    def __len__(self) -> int:
        return len(self.type)

    @classmethod
    def of(cls, units: list[tuple[int, int, int]]) -> UnitList:
        """Build from (type, x, y) tuples."""
        table = np.array(units, dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


def read_deployment(path: Path, types: Types = STANDARD) -> UnitList:
    """Read a deployment, with types as numbers or names. Raise InputError with file, line and field."""
    table = read_lines(path, FIELDS)
    codes = np.array([row.code(0, types.units, "type") for row in table], dtype=np.int64)
    return UnitList(codes, whole_column(table, 1, "x"), whole_column(table, 2, "y"))


RackAndShelf = tuple[int, int]


@dataclass(frozen=True)
class Bandwidths:
    """Bandwidths, MB/s: 1250 is 10 Gb/s.

    Parameters
    ----------
    port
        Between a location and the switch of its rack.
    uplink
        Between the switch of a rack and the core. The paper's 1 Gb/s represents contention.
    """

    port: int = 1250
    uplink: int = 125

    def __post_init__(self) -> None:
        for name in ("port", "uplink"):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)} MB/s is not a bandwidth", field=name, remedy="give 1 MB/s or more")


def machine_of_units(
    deployment: UnitList,
    affinity: FloatArray,
    data: Sequence[RackAndShelf] = (),
    *,
    prices: FloatArray | None = None,
    power: Power | None = None,
    types: Types = STANDARD,
    network: Bandwidths | None = None,
    name: str = "deployment",
) -> Machine:
    """Build the machine: an owner for each unit in file order, then data locations, ports and uplinks.

    A unit is a node with the resource "slots" (1); a data location is an owner without capacity. Attributes: "affinity.K" and
    "power.K" of each task type K (operations per microsecond, W), "idle_watts", "price", "unit_type".

    Parameters
    ----------
    affinity
        (n_unit_type, n_task_type) operations per microsecond.
    data
        Locations (x, y) of data.
    prices, power
        As `read_prices` and `read_power` return them.

    Raises InputError for a unit type without an affinity, and without a price or idle watts if these are given.
    """
    network = network if network is not None else Bandwidths()
    units = list(zip(deployment.type.tolist(), deployment.x.tolist(), deployment.y.tolist(), strict=True))
    if not units:
        raise InputError("the deployment has no units", field="type", remedy="write a row for each unit")
    places = sorted({*((x, y) for _, x, y in units), *data})
    build = MachineBuilder(name, ("slots", "bandwidth"))
    for k, (kind, x, y) in enumerate(units):
        build.attach(build.node(f"{types.units[kind]}{k}", type=types.units[kind], rack=x, shelf=y, slots=1), f"{x}.{y}")
    for x, y in sorted(set(data)):
        build.attach(build.add(f"data.{x}.{y}", Kind.POOL, "data", {}, rack=x, shelf=y), f"{x}.{y}")
    racks = sorted({x for x, _ in places})
    build.vertices([*(f"{x}.{y}" for x, y in places), *map(str, racks), "core"])
    for x, y in places:
        build.link(f"port.{x}.{y}", f"{x}.{y}", f"{x}", type="port", rack=x, shelf=y, bandwidth=network.port)
    for x in racks:
        build.link(f"uplink.{x}", f"{x}", "core", type="uplink", rack=x, bandwidth=network.uplink)
    columns = _attributes(deployment.type, len(build.owners), affinity, prices, power, types)
    return replace(Machine.of(build), attributes=columns)


def _attributes(
    kinds: IntArray, n: int, affinity: FloatArray, prices: FloatArray | None, power: Power | None, types: Types
) -> dict[str, FloatArray]:
    """Return columns with the values of each unit's type, (n_owner,) each, 0 for other owners."""
    by_type = {f"{PREFIX}{task}": affinity[:, task] for task in range(affinity.shape[1])}
    if prices is not None:
        by_type["price"] = prices
    if power is not None:
        by_type["idle_watts"] = power.idle
        by_type.update({f"power.{task}": power.busy[:, task] for task in range(power.busy.shape[1])})
    columns = {}
    for name, column in by_type.items():
        values = column[kinds]
        if name in ("price", "idle_watts") and np.isnan(values).any():
            kind = types.units[int(kinds[int(np.argmax(np.isnan(values)))])]
            field = "price" if name == "price" else "power"
            raise InputError(f"unit type '{kind}' has no {field}", field=field, remedy="add rows for all types up to it")
        columns[name] = np.concatenate([values, np.zeros(n - len(values))])
    columns["unit_type"] = np.concatenate([kinds, np.full(n - len(kinds), -1)]).astype(np.float64)
    return columns
