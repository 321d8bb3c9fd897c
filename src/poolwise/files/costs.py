"""Power tables and price lists, which turn a machine and its load into watts and dollars.

A simulation does not depend on them: one schedule can be evaluated with any table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Discriminator, Field, Tag

from poolwise.arrays import FloatArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.files.document import Document
from poolwise.files.fields import Name, Section
from poolwise.files.validation import validate
from poolwise.metrics.power import Load, multiplicity
from poolwise.model import Kind, Machine

Amount = Annotated[float, Field(ge=0)]
_GIB = 1024


def _ascending(values: tuple[float, float, float]) -> tuple[float, float, float]:
    if not values[0] <= values[1] <= values[2]:
        raise ValueError("a price range must be [least, likely, most] in ascending order")
    return values


def _form(value: object) -> str:
    return "range" if isinstance(value, list | tuple) else "number"


_Range = Annotated[tuple[Amount, Amount, Amount], AfterValidator(_ascending)]
Price = Annotated[Annotated[Amount, Tag("number")] | Annotated[_Range, Tag("range")], Discriminator(_form)]
"""Price in $, or [least, likely, most] if it is uncertain."""


class PowerSection(Section):
    """Power draw of parts: linear in the load between idle and busy, plus the draw of their memory."""

    idle_watts: dict[Name, Amount] = Field(description="idle power of one node, pool or device (W), by type")
    busy_watts: dict[Name, Amount] = Field(description="power of one node, pool or device at full load (W), by type")
    watts_per_gib: Amount = Field(default=0.0, description="power of memory in nodes and pools (W per GiB), used or not")
    off_when_idle: list[Name] = Field(
        default=[], description="types that are switched off, memory included, while nothing runs on them"
    )


class PriceSection(Section):
    """Purchase prices of parts and the price of electricity. Each price is a number or [least, likely, most]."""

    price: dict[Name, Price] = Field(description="price of one node, pool or device without its memory ($), by type")
    price_per_gib: Price = Field(default=0.0, description="price of memory in nodes and pools ($ per GiB)")
    price_per_rack: Price = Field(default=0.0, description="price of a rack's fabric ($): switches, cables, frame")
    price_per_kwh: Price = Field(default=0.0, description="price of electricity ($ per kWh); requires known power")
    years: float = Field(default=5.0, gt=0, description="years of electricity to include")


class PowerFile(PowerSection):
    """A standalone power table file."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""


class PriceFile(PriceSection):
    """A standalone price list file."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""


def load_costs(file: Path) -> PowerFile | PriceFile:
    """Read a power table or a price list; raises InputError with file, line, field and remedy."""
    document = Document.read(file)
    return validate(PriceFile, document) if "price" in document.tables else validate(PowerFile, document)


@dataclass(frozen=True)
class Costs:
    """Tables for power and prices; None stands for the attributes in the machine file."""

    power: PowerSection | None = None
    prices: PriceSection | None = None

    def content(self) -> dict[str, object]:
        """Return both tables as plain data."""
        tables = {"power": self.power, "prices": self.prices}
        return {name: None if table is None else table.model_dump(mode="json") for name, table in tables.items()}

    def check(self, machine: Machine) -> None:
        """Raise InputError, with the table's path in the study, if a table lacks an entry for a type of the machine."""
        types = sorted({machine.type[owner] for owner in _owners(machine)})
        tables: dict[tuple[str, str], Mapping[str, object]] = {}
        if self.prices is not None:
            tables["prices", "price"] = self.prices.price
        if self.power is not None:
            tables |= {("power", "idle_watts"): self.power.idle_watts, ("power", "busy_watts"): self.power.busy_watts}
        for place, table in tables.items():
            if missing := [name for name in types if name not in table]:
                remedy = f"add an entry for each type of machine '{machine.name}': {', '.join(types)}"
                raise InputError(f"no entry for {', '.join(missing)}", remedy=remedy).at(*place)
        if self.power is not None:
            for name in self.power.off_when_idle:
                if name not in self.power.idle_watts:
                    raise UnknownNameError.of("type", name, self.power.idle_watts).at("power", "off_when_idle")


def loads_by_type(machine: Machine, load: Load) -> dict[str, list[float]]:
    """Sum the load of the owners of a machine by type.

    If an owner has several whole nodes, the share of them that is awake equals their use.

    Returns
    -------
    Type -> [count, GiB of memory, sum of mean loads, sum of the share of time awake, GiB-weighted share of time awake].
    """
    owners, number = _owners(machine), multiplicity(machine)
    whole = number * gib_of(machine)
    awake = np.where(number > 1, load.mean, load.awake)
    loads = {}
    for name in sorted({machine.type[owner] for owner in owners}):
        mine = [owner for owner in owners if machine.type[owner] == name]
        amounts = (number, whole, number * load.mean, number * awake, whole * awake)
        loads[name] = [float(amount[mine].sum()) for amount in amounts]
    return loads


def watts(table: PowerSection, measured: Mapping[str, list[float]]) -> float:
    """Return the mean power by a table, in W; `measured` is the result of `loads_by_type`."""
    total = 0.0
    for name, (number, gib, load, awake, gib_awake) in measured.items():
        idle, busy = table.idle_watts[name], table.busy_watts[name]
        on, memory = (awake, gib_awake) if name in table.off_when_idle else (number, gib)
        total += idle * on + (busy - idle) * load + table.watts_per_gib * memory
    return total


def _owners(machine: Machine) -> list[int]:
    rows: list[int] = np.flatnonzero(machine.kind != Kind.LINK).tolist()
    return rows


def gib_of(machine: Machine) -> FloatArray:
    """(n_owner,) GiB of memory of one pool, device or shared node, or of each whole node of an owner."""
    each = machine.per_node.get("memory", np.zeros(machine.n_owner, dtype=np.int64)).astype(np.float64)
    if "memory" in machine.resources:
        each = each + machine.capacity[:, machine.resource("memory")]
    return each / _GIB
