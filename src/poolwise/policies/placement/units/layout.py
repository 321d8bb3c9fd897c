"""Layout of processing units in search order: by type, rack, shelf, then machine order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import JobTable, Kind, Machine
from poolwise.performance.affinity import rates

LeafRange = tuple[int, int]
"""Range of leaves: first, and end (excluded)."""
Tier = tuple[LeafRange, ...]
"""Units among which only the tie rule decides; the ranges do not overlap."""
ANY_TYPE = 5
"""Number of the unit type "unspecified", which means no preference."""


@dataclass(frozen=True, eq=False)
class UnitLayout:
    """Units as leaves 0..n-1, so that units of one type, of one (type, rack) and of one (type, position) are contiguous.

    Attributes
    ----------
    owner : (n_unit,) owner of each leaf
    leaf : owner -> leaf
    rank : (n_unit,) position of each leaf by (x, y), then machine order: the tie rule
    column : column of the resource "slots"
    types : names of the unit types of the machine, in the order of their leaves
    code : (n_type,) numbers of the types, from the machine's attribute "unit_type"; (0,) without it
    of_type, of_rack, of_place : ranges by type; (type, x); (type, x, y)
    rate : (n_task_type, n_type) operations per microsecond, (0, n_type) if the units have no affinities
    """

    owner: IntArray
    leaf: dict[int, int]
    rank: IntArray
    column: int
    types: tuple[str, ...]
    code: IntArray
    of_type: tuple[LeafRange, ...]
    of_rack: dict[tuple[int, int], LeafRange]
    of_place: dict[tuple[int, int, int], LeafRange]
    rate: FloatArray

    @classmethod
    def of(cls, machine: Machine) -> UnitLayout:
        """Lay out the units of a machine, its nodes with slots. Raises InputError if it has none."""
        return _layout(machine)

    def able(self, kind: int) -> tuple[int, ...]:
        """Return the unit types that can run tasks of a type, in ascending order."""
        if not len(self.rate):
            return tuple(range(len(self.types)))
        if not 0 <= kind < len(self.rate):
            return ()
        return tuple(np.flatnonzero(self.rate[kind] > 0).tolist())


@lru_cache(maxsize=8)  # a machine is compared by identity
def _layout(machine: Machine) -> UnitLayout:
    column = machine.resources.index("slots") if "slots" in machine.resources else -1
    has_slots = machine.capacity[:, column] > 0 if column >= 0 else np.zeros(machine.n_owner, dtype=np.bool_)
    units = np.flatnonzero((machine.kind == Kind.NODE) & has_slots).astype(np.int64)
    if not len(units):
        raise InputError(
            f"machine '{machine.name}' has no processing units",
            field="slots",
            remedy="use a machine of processing units, or give the nodes slots",
        )
    types = tuple(dict.fromkeys(machine.type[unit] for unit in units.tolist()))
    kind = np.array([types.index(machine.type[unit]) for unit in units.tolist()], dtype=np.int64)
    x, y = machine.position[units].T
    order = np.lexsort((units, y, x, kind))
    rank = np.empty(len(units), dtype=np.int64)
    rank[np.lexsort((units, y, x))] = np.arange(len(units))
    owner = units[order]
    of_rack, of_place = _ranges(kind[order], x[order]), _ranges(kind[order], x[order], y[order])
    return UnitLayout(
        owner=owner,
        leaf={unit: leaf for leaf, unit in enumerate(owner.tolist())},
        rank=rank[order],
        column=column,
        types=types,
        code=_codes(machine, types),
        of_type=tuple(_ranges(kind[order]).values()),
        of_rack={(k, x): part for (k, x), part in of_rack.items()},
        of_place={(k, x, y): part for (k, x, y), part in of_place.items()},
        rate=_rates(machine, owner, kind[order], types),
    )


def _codes(machine: Machine, types: tuple[str, ...]) -> IntArray:
    column = machine.attributes.get("unit_type")
    codes = [] if column is None else [int(column[machine.type.index(name)]) for name in types]
    return np.array(codes, dtype=np.int64)


def _ranges(*columns: IntArray) -> dict[tuple[int, ...], LeafRange]:
    """Return the ranges of equal values in sorted columns."""
    table = np.stack(columns, axis=1)
    begins = np.flatnonzero(np.concatenate([[True], (table[1:] != table[:-1]).any(axis=1)])).tolist()
    return {tuple(table[low].tolist()): (low, high) for low, high in pairwise([*begins, len(table)])}


def _rates(machine: Machine, owner: IntArray, kind: IntArray, types: tuple[str, ...]) -> FloatArray:
    table = rates(machine)[:, owner]
    first = np.array([int(np.argmax(kind == k)) for k in range(len(types))], dtype=np.int64)
    if (table != table[:, first][:, kind]).any():
        k = types[int(kind[int(np.argmax((table != table[:, first][:, kind]).any(axis=0)))])]
        raise InputError(
            f"units of type '{k}' differ in affinity",
            field="affinity",
            remedy="give units of different affinity different types",
        )
    return table[:, first]


class Choices:
    """Units of a machine and unit preferences of jobs."""

    def __init__(self, layout: UnitLayout, table: JobTable) -> None:
        self.layout, self.table = layout, table
        self._able: dict[int, tuple[int, ...]] = {}
        self._tiers: dict[tuple[int, ...], tuple[Tier, ...]] = {}

    def attribute(self, name: str, job: int, default: int) -> int:
        """Return an integer attribute of a job; `default` if the table has no such column."""
        column = self.table.attributes.get(name)
        return default if column is None else int(column[job])

    def able(self, job: int) -> tuple[int, ...]:
        """Return the unit types that can run a job's tasks."""
        kind = self.attribute("task_type", job, 0)
        if kind not in self._able:
            self._able[kind] = self.layout.able(kind)
        return self._able[kind]

    def preferred(self, job: int) -> int | None:
        """Return the number of the unit type that a job prefers, None if it has no preference."""
        wanted = self.attribute("preferred_type", job, ANY_TYPE)
        return None if wanted == ANY_TYPE or not len(self.layout.code) else wanted

    def tiers(self, job: int, columns: Sequence[str], find: Callable[[int, Choices], tuple[Tier, ...]]) -> tuple[Tier, ...]:
        """Return a job's tiers under a policy, calling `find` once for all jobs with equal values in `columns`.

        A policy brings its own columns and `find`, so one object serves one policy.
        """
        key = tuple(self.attribute(name, job, 0) for name in columns)
        if key not in self._tiers:
            self._tiers[key] = find(job, self)
        return self._tiers[key]
