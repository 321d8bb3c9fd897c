"""Check whether the placement of a start or a resize fits."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.model.machine import Machine
from poolwise.model.placement import Placement
from poolwise.model.run import Run

Row = tuple[int, int, int, int]


def why_no_room(placement: Placement, free: IntArray, held: Placement | None = None) -> str:
    """Return why a placement cannot be allocated from the free amounts, (n_owner, n_resource); empty if it can.

    `held` is a placement that is released at the same instant.
    """
    if len(placement) == 0:
        return "the placement is empty"
    n_owner, n_resource = free.shape
    need: dict[tuple[int, int], int] = {}  # only of the cells in the placement: a table of all owners would be large
    for _, owner, resource, amount in placement.rows():
        if amount < 0:
            return "an amount is negative"
        if not 0 <= owner < n_owner:
            return "an owner does not exist"
        if not 0 <= resource < n_resource:
            return "a resource does not exist"
        need[owner, resource] = need.get((owner, resource), 0) + amount
    released: dict[tuple[int, int], int] = {}
    for _, owner, resource, amount in () if held is None else held.rows():
        released[owner, resource] = released.get((owner, resource), 0) + amount
    if any(amount > free[cell] + released.get(cell, 0) for cell, amount in need.items() if amount):
        return "capacity is not free"
    return ""


def why_no_resize(run: Run, placement: Placement, machine: Machine, free: IntArray) -> str:
    """Return why a run cannot move to another placement; empty if it can."""
    if run.fetch is not None:
        return "the run still fetches its data"
    if _without_memory(run.placement, machine) != _without_memory(placement, machine):
        return "only memory can be resized"
    return why_no_room(placement, free, run.placement)


def _without_memory(placement: Placement, machine: Machine) -> list[Row]:
    """Return the sorted rows of a placement, without those of memory."""
    memory = machine.resources.index("memory") if "memory" in machine.resources else -1
    return sorted(row for row in placement.rows() if row[2] != memory)
