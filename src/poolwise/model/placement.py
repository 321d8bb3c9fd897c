"""Placements: rows of (task, owner, resource, amount)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.short_repr import short_repr

_SHOWN = 4
"""Maximum number of rows that the representation of a placement shows."""
_FEW = 24
"""Maximum number of rows for which a loop is faster than NumPy."""


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """Resources that a start allocates, one row per allocation. Nodes, pools, devices and links are all owners.

    A row with amount 0 allocates nothing but makes the run an occupant of the owner (a sharer of a composed device, a flow on a
    link): performance models of contention count occupants.

    Attributes
    ----------
    task, owner, resource, amount : (n_row,) int64

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(1, 4, local="8 GiB", pool="64 GiB")
    >>> placement = machine.placement({"rack0.nodes": {"nodes": 2}, "rack0.pool": {"memory": 4096}})
    >>> placement.rows()
    [(0, 0, 0, 2), (0, 1, 1, 4096)]
    """

    def __repr__(self) -> str:
        rows = self.rows() if len(self) <= _SHOWN else []
        return f"Placement.of({rows})" if len(self) <= _SHOWN else f"<Placement of {len(self):,} rows>"

    task: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int]]) -> Placement:
        """Build a placement from rows (task, owner, resource, amount)."""
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3])

    def __len__(self) -> int:
        return len(self.owner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return self.rows() == other.rows()

    __hash__ = None  # type: ignore[assignment]  # contains arrays, so it cannot be a key

    def rows(self) -> list[tuple[int, int, int, int]]:
        """Return the rows as tuples of int."""
        columns = (self.task.tolist(), self.owner.tolist(), self.resource.tolist(), self.amount.tolist())
        return list(zip(*columns, strict=True))

    def owners(self) -> tuple[int, ...]:
        """Return the owners in the rows, each once, ascending."""
        return tuple(sorted(set(self.owner.tolist())))

    def take_from(self, free: IntArray) -> None:
        """Subtract the rows from amounts, (n_owner, n_resource), in place."""
        if len(self.owner) > _FEW:
            np.subtract.at(free, (self.owner, self.resource), self.amount)
            return
        for owner, resource, amount in zip(self.owner.tolist(), self.resource.tolist(), self.amount.tolist(), strict=True):
            free[owner, resource] -= amount

    def give_to(self, free: IntArray) -> None:
        """Add the rows to amounts, (n_owner, n_resource), in place."""
        if len(self.owner) > _FEW:
            np.add.at(free, (self.owner, self.resource), self.amount)
            return
        for owner, resource, amount in zip(self.owner.tolist(), self.resource.tolist(), self.amount.tolist(), strict=True):
            free[owner, resource] += amount


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why a job cannot be placed now (or ever).

    Attributes
    ----------
    reason : a few words, without the job
    resource : name of the resource that was short; "" if none was
    needed, free : needed and free amount of that resource, base units
    nodes, fitting : number of nodes that must each have the needed amount, and number of nodes that have it now; 0 if the
        amounts are totals. If `resource` is empty, each node must have everything that the job requests

    Examples
    --------
    >>> import poolwise
    >>> print(poolwise.Refusal("not enough free nodes", "nodes", needed=8, free=3))
    not enough free nodes (nodes: needs 8, 3 free)
    """

    __repr__ = short_repr

    reason: str
    resource: str = ""
    needed: int = 0
    free: int = 0
    nodes: int = 0
    fitting: int = 0

    def __str__(self) -> str:
        if not self.resource:
            return self.reason
        return f"{self.reason} ({self.resource}: needs {self.needed}, {self.free} free)"
