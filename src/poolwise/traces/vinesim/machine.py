"""From a deployment to a machine: units, the places where data lie, and the network between them.

Source: VineSim, sections 4.1 and 8.8; specs of the accelerators, "Model": two hops within a rack, four across.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Fabric, Kind, Machine
from poolwise.performance.affinity import PREFIX
from poolwise.traces.vinesim.costs import Power
from poolwise.traces.vinesim.deployment import UnitList
from poolwise.traces.vinesim.types import Types

RackAndShelf = tuple[int, int]


@dataclass(frozen=True)
class Bandwidths:
    """Bandwidths, MB/s: 1250 is 10 Gb/s.

    Parameters
    ----------
    port
        Between a place and the switch of its rack.
    uplink
        Between a rack's switch and the core. The paper's 1 Gb/s stands in for contention.
    """

    port: int = 1250
    uplink: int = 125

    def __post_init__(self) -> None:
        for name in ("port", "uplink"):
            if getattr(self, name) < 1:
                raise InputError(f"{getattr(self, name)} MB/s is not a bandwidth", field=name, remedy="give 1 MB/s or more")


@dataclass
class _Owners:
    name: list[str] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    type: list[str] = field(default_factory=list)
    place: list[RackAndShelf] = field(default_factory=list)
    amounts: list[tuple[int, int]] = field(default_factory=list)
    vertex: list[int] = field(default_factory=list)

    def add(self, name: str, kind: Kind, type: str, place: RackAndShelf, amounts: tuple[int, int], vertex: int = -1) -> None:
        self.name.append(name)
        self.kind.append(kind)
        self.type.append(type)
        self.place.append(place)
        self.amounts.append(amounts)
        self.vertex.append(vertex)


def machine_of_units(
    deployment: UnitList,
    affinity: FloatArray,
    data: Sequence[RackAndShelf] = (),
    *,
    prices: FloatArray | None = None,
    power: Power | None = None,
    types: Types | None = None,
    network: Bandwidths | None = None,
    name: str = "deployment",
) -> Machine:
    """Build the machine: an owner for each unit in the order of the file, then places of data, ports and uplinks.

    A unit is a node with the resource "slots" (1); a place where data lie is an owner without capacity. Attributes:
    "affinity.K" and "power.K" of each task type K (operations per microsecond, W), "idle_watts", "price", "unit_type".

    Parameters
    ----------
    affinity
        (n_unit_type, n_task_type) operations per microsecond.
    data
        Places (x, y) where data lie.
    prices, power
        As `read_prices` and `read_power` return them.

    Raises InputError for a unit type without an affinity, a price or idle watts where these are given.
    """
    types = types if types is not None else Types()
    network = network if network is not None else Bandwidths()
    units = list(zip(deployment.type.tolist(), deployment.x.tolist(), deployment.y.tolist(), strict=True))
    if not units:
        raise InputError("the deployment has no units", field="type", remedy="write a row for each unit")
    places = sorted({*((x, y) for _, x, y in units), *data})
    vertex = {place: k for k, place in enumerate(places)}
    owners = _Owners()
    for k, (kind, x, y) in enumerate(units):
        owners.add(f"{types.units[kind]}{k}", Kind.NODE, types.units[kind], (x, y), (1, 0), vertex[x, y])
    for x, y in sorted(set(data)):
        owners.add(f"data.{x}.{y}", Kind.POOL, "data", (x, y), (0, 0), vertex[x, y])
    first_link = len(owners.name)
    racks = {rack: len(places) + k for k, rack in enumerate(sorted({x for x, _ in places}))}
    for x, y in places:
        owners.add(f"port.{x}.{y}", Kind.LINK, "port", (x, y), (0, network.port))
    for x in racks:
        owners.add(f"uplink.{x}", Kind.LINK, "uplink", (x, 0), (0, network.uplink))
    core = len(places) + len(racks)
    ends = [(vertex[place], racks[place[0]]) for place in places] + [(switch, core) for switch in racks.values()]
    position = np.array(owners.place, dtype=np.int64)
    return Machine(
        name=name,
        owners=tuple(owners.name),
        kind=np.array(owners.kind, dtype=np.int64),
        type=tuple(owners.type),
        rack=position[:, 0].copy(),
        position=position,
        home=np.full(len(owners.name), -1, dtype=np.int64),
        resources=("slots", "bandwidth"),
        capacity=np.array(owners.amounts, dtype=np.int64),
        attributes=_attributes(deployment.type, len(owners.name), affinity, prices, power, types),
        fabric=Fabric(
            vertex=np.array(owners.vertex, dtype=np.int64),
            link=np.arange(first_link, len(owners.name)),
            ends=np.array(ends, dtype=np.int64),
            latency=np.zeros(len(ends), dtype=np.int64),
        ),
    )


def _attributes(
    kinds: IntArray, n: int, affinity: FloatArray, prices: FloatArray | None, power: Power | None, types: Types
) -> dict[str, FloatArray]:
    """Columns (n_owner,) of the units' types, 0 for other owners."""
    by_type = {f"{PREFIX}{task}": affinity[:, task] for task in range(affinity.shape[1])}
    if prices is not None:
        by_type["price"] = prices
    if power is not None:
        by_type["idle_watts"] = power.idle
        by_type.update({f"power.{task}": power.busy[:, task] for task in range(power.busy.shape[1])})
    found = {}
    for name, column in by_type.items():
        values = column[kinds]
        if name in ("price", "idle_watts") and np.isnan(values).any():
            kind = types.units[int(kinds[int(np.argmax(np.isnan(values)))])]
            what = "price" if name == "price" else "power"
            raise InputError(f"unit type '{kind}' has no {what}", field=what, remedy="add rows for all types up to it")
        found[name] = np.concatenate([values, np.zeros(n - len(values))])
    found["unit_type"] = np.concatenate([kinds, np.full(n - len(kinds), -1)]).astype(np.float64)
    return found
