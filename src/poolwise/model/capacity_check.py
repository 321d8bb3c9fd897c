"""Whether what a decision names can be given: the same questions for a start and for a resize."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.model.machine import Machine
from poolwise.model.placement import Placement
from poolwise.model.run import Run

Row = tuple[int, int, int, int]


def why_no_room(placement: Placement, free: IntArray, held: Placement | None = None) -> str:
    """Reason why a placement cannot be given of what is free, (n_owner, n_resource), empty if it can.

    `held` is what is given back in the same instant.
    """
    if len(placement) == 0:
        return "the placement is empty"
    n_owner, n_resource = free.shape
    need: dict[tuple[int, int], int] = {}  # of the cells that are named: a table of all owners would cost more with each
    for _, owner, resource, amount in placement.rows():
        if amount < 0:
            return "an amount is negative"
        if not 0 <= owner < n_owner:
            return "an owner does not exist"
        if not 0 <= resource < n_resource:
            return "a resource does not exist"
        need[owner, resource] = need.get((owner, resource), 0) + amount
    back: dict[tuple[int, int], int] = {}
    for _, owner, resource, amount in () if held is None else held.rows():
        back[owner, resource] = back.get((owner, resource), 0) + amount
    if any(amount > free[cell] + back.get(cell, 0) for cell, amount in need.items() if amount):
        return "capacity is not free"
    return ""


def why_no_resize(run: Run, placement: Placement, machine: Machine, free: IntArray) -> str:
    """Reason why a run cannot be given another placement, empty if it can."""
    if run.fetch is not None:
        return "the run still fetches its data"
    if _but_memory(run.placement, machine) != _but_memory(placement, machine):
        return "only memory can be resized"
    return why_no_room(placement, free, run.placement)


def _but_memory(placement: Placement, machine: Machine) -> list[Row]:
    """Rows of everything else, sorted."""
    memory = machine.resources.index("memory") if "memory" in machine.resources else -1
    return sorted(row for row in placement.rows() if row[2] != memory)
