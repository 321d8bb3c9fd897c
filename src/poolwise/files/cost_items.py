"""Itemized cost of a machine, with the range of each price."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.files.costs import Price, PriceSection, gib_of
from poolwise.metrics.power import multiplicity
from poolwise.model import Kind, Machine

POWER = "kWh of power"
HOURS = 8766
"""Hours of an average year."""


@dataclass(frozen=True)
class CostItem:
    """One line of a machine's cost.

    Attributes
    ----------
    name : name of one unit: "thin node", "memory pool", "GiB of memory", "rack's fabric", "kWh of power"
    amount, unit : quantity and its unit, such as 8192 "GiB"; parts have an empty unit
    least, likely, most : lowest, likely and highest price of one unit, $
    """

    name: str
    amount: float
    unit: str
    least: float
    likely: float
    most: float

    @property
    def dollars(self) -> float:
        """Cost at the likely price, $."""
        return self.amount * self.likely


def cost_items(table: PriceSection, machine: Machine, watts: float = math.nan) -> tuple[CostItem, ...]:
    """List the costs of a machine: its parts, memory, rack fabric and, if `watts` is finite, power over the table's years."""
    number, owners = multiplicity(machine), np.flatnonzero(machine.kind != Kind.LINK)
    parts: Counter[tuple[str, str]] = Counter()
    for owner in owners.tolist():
        parts[machine.type[owner], Kind(machine.kind[owner]).name.lower()] += int(number[owner])
    items = [_item(f"{name} {kind}", count, "", table.price[name]) for (name, kind), count in sorted(parts.items())]
    items.append(_item("GiB of memory", float((number * gib_of(machine))[owners].sum()), "GiB", table.price_per_gib))
    items.append(_item("rack's fabric", len(set(machine.rack[machine.rack >= 0].tolist())), "racks", table.price_per_rack))
    if math.isfinite(watts):
        items.append(_item(POWER, watts / 1000 * HOURS * table.years, "kWh", table.price_per_kwh))
    return tuple(item for item in items if item.most > 0)


def dollars_to_buy(items: Sequence[CostItem]) -> float:
    """Return the purchase price at likely prices, $; power is not included."""
    return sum(item.dollars for item in items if item.name != POWER)


def _item(name: str, amount: float, unit: str, price: Price) -> CostItem:
    least, likely, most = price if isinstance(price, tuple) else (price, price, price)
    return CostItem(name, amount, unit, least, likely, most)
