"""Where a job runs: rows of (task, owner, resource, amount)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray

_FEW = 24
"""Rows up to which going through them one by one is faster than NumPy."""


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """What a start takes, one row for each allocation. Nodes, pools, devices and links are all owners.

    A row with amount 0 says that the run is there without reserving anything (a sharer of a composed device, a flow on a
    link): it makes the run an occupant of the owner, which is what contention looks at.

    Attributes
    ----------
    task, owner, resource, amount : (n_row,) int64
    """

    task: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int]]) -> Placement:
        """Build from (task, owner, resource, amount) rows."""
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3])

    def __len__(self) -> int:
        return len(self.owner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return self.rows() == other.rows()

    __hash__ = None  # type: ignore[assignment]  # arrays inside: not a key

    def rows(self) -> list[tuple[int, int, int, int]]:
        """List the rows as tuples of int."""
        columns = (self.task.tolist(), self.owner.tolist(), self.resource.tolist(), self.amount.tolist())
        return list(zip(*columns, strict=True))

    def owners(self) -> tuple[int, ...]:
        """List the owners named, each once, ascending."""
        return tuple(sorted(set(self.owner.tolist())))

    def take_from(self, free: IntArray) -> None:
        """Subtract what the rows name from amounts, (n_owner, n_resource), in place."""
        if len(self.owner) > _FEW:
            np.subtract.at(free, (self.owner, self.resource), self.amount)
            return
        for owner, resource, amount in zip(self.owner.tolist(), self.resource.tolist(), self.amount.tolist(), strict=True):
            free[owner, resource] -= amount

    def give_to(self, free: IntArray) -> None:
        """Add what the rows name to amounts, (n_owner, n_resource), in place."""
        if len(self.owner) > _FEW:
            np.add.at(free, (self.owner, self.resource), self.amount)
            return
        for owner, resource, amount in zip(self.owner.tolist(), self.resource.tolist(), self.amount.tolist(), strict=True):
            free[owner, resource] += amount


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a job cannot be placed now (or ever): the resource that was short, how much was needed and how much was free."""

    reason: str
    resource: str = ""
    needed: int = 0
    free: int = 0

    def __str__(self) -> str:
        if not self.resource:
            return self.reason
        return f"{self.reason} ({self.resource}: needs {self.needed}, {self.free} free)"
