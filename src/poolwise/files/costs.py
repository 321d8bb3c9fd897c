"""Power tables and price lists: what a machine draws and costs, chosen apart from what runs on it and how.

A run does not depend on them: the same schedule is measured with every table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Discriminator, Field, Tag

from poolwise.arrays import FloatArray
from poolwise.files.document import Document
from poolwise.files.fields import Name, Section, check_version, validate
from poolwise.metrics.power import Load, number_of
from poolwise.model import Kind, Machine

Amount = Annotated[float, Field(ge=0)]
_GIB = 1024


def _ascending(values: tuple[float, float, float]) -> tuple[float, float, float]:
    if not values[0] <= values[1] <= values[2]:
        raise ValueError("write the least, the likely and the most, in this order")
    return values


def _form(value: object) -> str:
    return "range" if isinstance(value, list | tuple) else "number"


_Range = Annotated[tuple[Amount, Amount, Amount], AfterValidator(_ascending)]
Price = Annotated[Annotated[Amount, Tag("number")] | Annotated[_Range, Tag("range")], Discriminator(_form)]
"""$, or [least, likely, most] where it is not known exactly."""


class PowerSection(Section):
    """Power that parts draw: linear in their load from idle to busy, plus that of the memory that they hold."""

    idle_watts: dict[Name, Amount] = Field(description="type of node, pool or device -> W of one while nothing is in use of it")
    busy_watts: dict[Name, Amount] = Field(description="type -> W of one while all of it is in use")
    watts_per_gib: Amount = Field(default=0.0, description="W of a GiB of memory in nodes and pools, in use or not")
    off_when_idle: list[Name] = Field(
        default=[], description="types that are off, their memory too, while nothing runs on them"
    )


class PriceSection(Section):
    """What parts cost to buy, and power to run them. Each price is a number, or [least, likely, most]."""

    price: dict[Name, Price] = Field(description="type of node, pool or device -> $ of one, beside its memory")
    price_per_gib: Price = Field(default=0.0, description="$ of a GiB of memory in nodes and pools")
    price_per_rack: Price = Field(default=0.0, description="$ of the fabric of a rack: switches, cables, frame")
    price_per_kwh: Price = Field(default=0.0, description="$ of a kWh; counts where the watts are known")
    years: float = Field(default=5.0, gt=0, description="years for which power is paid")


class PowerFile(PowerSection):
    """A power table in a file of its own."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""


class PriceFile(PriceSection):
    """A price list in a file of its own."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""


def load_costs(file: Path) -> PowerFile | PriceFile:
    """Read a power table or a price list; raises InputError naming file, line, field and remedy."""
    document = Document.read(file)
    check_version(document)
    return validate(PriceFile, document) if "price" in document.tables else validate(PowerFile, document)


@dataclass(frozen=True)
class Costs:
    """Where watts and dollars come from; None: from the attributes in the machine file."""

    power: PowerSection | None = None
    prices: PriceSection | None = None

    def content(self) -> dict[str, object]:
        """What they say, as plain data."""
        tables = {"power": self.power, "prices": self.prices}
        return {name: None if table is None else table.model_dump(mode="json") for name, table in tables.items()}

    def check(self, machine: Machine, document: Document) -> None:
        """Raise InputError where a table does not name all that a machine has."""
        types = sorted({machine.type[owner] for owner in _owners(machine)})
        if self.prices is not None:
            _check_named(("prices", "price"), types, self.prices.price, machine, document)
        if self.power is not None:
            _check_named(("power", "idle_watts"), types, self.power.idle_watts, machine, document)
            _check_named(("power", "busy_watts"), types, self.power.busy_watts, machine, document)
            for name in self.power.off_when_idle:
                if name not in self.power.idle_watts:
                    raise document.unknown(("power", "off_when_idle"), "type", name, list(self.power.idle_watts))


def _check_named(
    place: tuple[str, str], types: list[str], table: Mapping[str, object], machine: Machine, document: Document
) -> None:
    if missing := [name for name in types if name not in table]:
        remedy = f"machine '{machine.name}' has: {', '.join(types)}"
        raise document.error(place, f"nothing is said of {', '.join(missing)}", remedy)


def things(machine: Machine, load: Load) -> dict[str, list[float]]:
    """Type -> how many there are and their GiB; sums of their mean loads, of their time awake and of their GiB awake.

    Of nodes that are taken whole, as many are awake as are in use.
    """
    owners, number = _owners(machine), number_of(machine)
    whole = number * gib_of(machine)
    awake = np.where(number > 1, load.mean, load.awake)
    found = {}
    for name in sorted({machine.type[owner] for owner in owners}):
        mine = [owner for owner in owners if machine.type[owner] == name]
        amounts = (number, whole, number * load.mean, number * awake, whole * awake)
        found[name] = [float(amount[mine].sum()) for amount in amounts]
    return found


def watts(table: PowerSection, measured: Mapping[str, list[float]]) -> float:
    """Mean power by a table, from what `things` has measured."""
    total = 0.0
    for name, (number, gib, load, awake, gib_awake) in measured.items():
        idle, busy = table.idle_watts[name], table.busy_watts[name]
        on, memory = (awake, gib_awake) if name in table.off_when_idle else (number, gib)
        total += idle * on + (busy - idle) * load + table.watts_per_gib * memory
    return total


def _owners(machine: Machine) -> list[int]:
    found: list[int] = np.flatnonzero(machine.kind != Kind.LINK).tolist()
    return found


def gib_of(machine: Machine) -> FloatArray:
    """(n_owner,) GiB of memory of one of each owner: of a pool, a device, a node that is shared, and of each whole node."""
    each = machine.per_node.get("memory", np.zeros(machine.n_owner, dtype=np.int64)).astype(np.float64)
    if "memory" in machine.resources:
        each = each + machine.capacity[:, machine.resource("memory")]
    return each / _GIB
