"""Sizes to choose: values of machine parts and their prices; together they form the grid of candidates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.files.document import Document, Origin
from poolwise.files.fields import Section
from poolwise.files.size_text import SizeText
from poolwise.presentation.cost import PriceRange
from poolwise.quantities import UNITS, Dimension, parse

MOST_CANDIDATES = 100_000
_PAID: tuple[Dimension, ...] = ("memory", "bandwidth")
_PRICE = re.compile(r"\s*(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(\$|k\$|M\$)\s*(?:/\s*(\S+)\s*)?\Z")
_UNIT = re.compile(r"[A-Za-z][A-Za-z/]*\Z")


class SizeSection(Section):
    """A machine value to choose, its allowed values, and its price."""

    key: str = Field(description='dotted path of a value of the machine, such as "machine.pool.memory.memory"')
    values: list[str | int] | None = Field(default=None, description="values to choose from, ascending")
    min: str | int | None = Field(default=None, description="smallest value, instead of values")
    max: str | int | None = Field(default=None, description="largest value, with min")
    step: str | int | None = Field(default=None, description="step between values, with min and max")
    price: str | tuple[str, str, str] = Field(
        description='price per unit, such as "4.9 $/GiB", or "900 $" per counted item; for an uncertain price, three of them: '
        "least, likely, most"
    )

    @model_validator(mode="after")
    def _one_range(self) -> SizeSection:
        steps = [value is not None for value in (self.min, self.max, self.step)]
        if (self.values is not None) == any(steps) or any(steps) != all(steps):
            raise ValueError("give either values, or min, max and step")
        return self


@dataclass(frozen=True, eq=False)
class Size:
    """A resolved size.

    Attributes
    ----------
    key : dotted path
    written : n values as in a machine file, ascending
    amount : (n,) values in base units
    price : lowest, likely and highest price of one unit, $
    unit : unit of the price, "" for counted items
    words : noun phrase of the size
    """

    key: str
    written: tuple[str | int, ...]
    amount: IntArray
    price: PriceRange
    unit: str
    words: SizeText

    @property
    def dimension(self) -> Dimension:
        """Dimension of the values."""
        return _dimension(self.unit)

    @property
    def per_unit(self) -> float:
        """Base units per unit of the price."""
        return UNITS[self.dimension][self.unit]

    @property
    def paid(self) -> str:
        """Name of one priced unit on a bill: "GiB of pool memory", "rack"."""
        return f"{self.unit} of {self.words.one or self.name}" if self.unit else self.words.one or self.name

    def phrase(self, k: int) -> str:
        """Return the k-th value with the size's noun: "512 GiB of pool memory in each rack"."""
        return self.words.phrase(str(self.written[k]))

    @property
    def name(self) -> str:
        """The path without the prefix "machine."."""
        return self.key.removeprefix("machine.")


def read_sizes(sections: Sequence[SizeSection], document: Document) -> tuple[Size, ...]:
    """Resolve the sizes in a document whose machine is resolved; raise InputError with the line of an invalid size."""
    sizes: list[Size] = []
    for k, section in enumerate(sections):
        if section.key in [size.key for size in sizes]:
            raise document.error(("plan", "size", k, "key"), f"'{section.key}' appears twice", "name each size once")
        sizes.append(_read(section, document, ("plan", "size", k)))
    if not sizes:
        raise document.error(("plan", "size"), "the plan has no size to choose", "write a [[plan.size]]")
    count = int(np.prod([float(len(size.written)) for size in sizes]))
    if count > MOST_CANDIDATES:
        message = f"{count:,} candidates exceed the maximum of {MOST_CANDIDATES:,}"
        raise document.error(("plan", "size"), message, "use larger steps or fewer sizes")
    return tuple(sizes)


def bought(sizes: Sequence[Size], document: Document) -> FloatArray:
    """Return the amount of each size in the whole machine of each candidate, (d, n_1, ..., n_d), in the units of the prices."""
    shape = tuple(len(size.written) for size in sizes)
    total = np.empty((len(sizes), *shape), dtype=np.float64)
    for element in np.ndindex(*shape):
        variant = document
        for size, k in zip(sizes, element, strict=True):
            variant = variant.with_value(size.key, size.written[k], Origin("plan"))
        for part, size, k in zip(total, sizes, element, strict=True):
            part[element] = size.amount[k] / size.per_unit * copies(variant, size.key)
    return total


def priced(sizes: Sequence[Size], amounts: FloatArray, at: Mapping[int, int] | None = None) -> FloatArray:
    """Return the cost of amounts ($), (n_1, ..., n_d), at likely prices; `at` maps a size to an end of its price, 0 or 2."""
    prices = [size.price[(at or {}).get(k, 1)] for k, size in enumerate(sizes)]
    return np.tensordot(np.array(prices), amounts, 1)


def copies(document: Document, key: str) -> int:
    """Return the number of copies in the machine: a pool in each rack counts once per rack, a node type once per node.

    Raises InputError for a key that cannot be counted.
    """
    machine = document.tables["machine"]
    racks = machine["rack"]
    section, _, rest = key.removeprefix("machine.").partition(".")
    name, _, field = rest.partition(".")
    entry = document.get(f"machine.{section}.{name}")
    n_racks: int = sum(rack.get("count", 1) for rack in racks)
    if section == "pool":
        return n_racks if entry.get("per", "rack") == "rack" else 1
    if section == "node":
        return _nodes(racks, entry["name"])
    if section == "device":
        at = entry.get("at", "rack")
        matching = [node["name"] for node in machine["node"] if fnmatchcase(node["name"], at)]
        places = {"rack": n_racks, "machine": 1}.get(at, sum(_nodes(racks, node) for node in matching))
        return places if field == "count" else places * int(entry.get("count", 1))
    if section == "rack" and field == "count":
        return 1
    if section == "rack" and field.startswith("nodes."):
        return int(entry.get("count", 1))
    raise document.error(
        tuple(key.split(".")), f"'{key}' is not an amount with a price", "choose sizes of nodes, pools, devices or racks"
    )


def _nodes(racks: Sequence[dict[str, Any]], node: str) -> int:
    return sum(int(rack.get("count", 1)) * int(rack["nodes"].get(node, 0)) for rack in racks)


def _read(section: SizeSection, document: Document, path: tuple[str | int, ...]) -> Size:
    if not section.key.startswith("machine."):
        raise document.error((*path, "key"), f"'{section.key}' is not a part of the machine", 'write "machine. ..."')
    prices = [section.price] * 3 if isinstance(section.price, str) else section.price
    units, amounts = zip(*(_price(text, document, (*path, "price")) for text in prices), strict=True)
    if len(set(units)) > 1 or sorted(amounts) != list(amounts):
        message = f"{', '.join(prices)} are not three ascending prices (least, likely, most) in one unit"
        raise document.error((*path, "price"), message, 'write three ascending prices in one unit, such as "3 $/GiB"')
    dimension = _dimension(units[0])
    try:
        if section.values is not None:
            field, written = "values", tuple(section.values)
        else:
            field, written = "step", _steps(section, dimension)
        amount = np.array([parse(value, dimension) for value in written], dtype=np.int64)
    except ValueError as error:
        raise document.error(path, str(error), "write values in the unit of the price") from None
    if not len(amount) or (np.diff(amount) <= 0).any():
        raise document.error((*path, field), "the values do not ascend", "write each value once, in ascending order")
    try:
        document.get(section.key)
    except InputError as error:
        raise document.error((*path, "key"), f"'{section.key}' is not a value of the machine", error.remedy) from None
    try:
        copies(document, section.key)
    except InputError as error:
        raise document.error((*path, "key"), error.message, error.remedy) from None
    return Size(section.key, written, amount, amounts, units[0], SizeText.of(section.key, document.tables["machine"]))


def _price(text: str, document: Document, path: tuple[str | int, ...]) -> tuple[str, float]:
    """Return the unit of a price, "" for counted items, and the price of one unit in $."""
    match = _PRICE.match(text)
    if match is None:
        raise document.error(path, f"'{text}' is not a price", 'write "4.9 $/GiB", or "900 $" per counted item')
    unit = match[3] or ""
    units = [unit for dimension in _PAID for unit in UNITS[dimension]]
    if unit and unit not in units:
        raise document.unknown(path, "unit", unit, units)
    return unit, float(match[1]) * UNITS["money"][match[2]]


def _dimension(unit: str) -> Dimension:
    return next((dimension for dimension in _PAID if unit in UNITS[dimension]), "count")


def _steps(section: SizeSection, dimension: Dimension) -> tuple[str | int, ...]:
    """Return the values from min to max, in the unit of the step."""
    least, most, step = (parse(value, dimension) for value in (section.min, section.max, section.step) if value is not None)
    if step < 1 or most < least:
        raise ValueError("min, max and step give no values: step must be positive and max at least min")
    amounts = range(least, most + 1, step)
    if len(amounts) > MOST_CANDIDATES:
        raise ValueError(f"more than {MOST_CANDIDATES:,} steps")
    if dimension == "count":
        return tuple(amounts)
    match = _UNIT.search(str(section.step))
    assert match is not None  # a step without a unit has not been parsed
    return tuple(f"{amount / UNITS[dimension][match[0]]:.12g} {match[0]}" for amount in amounts)
