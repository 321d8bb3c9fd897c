"""What of a machine is in use, and what is free but out of reach, thing by thing: what a drawing of the machine shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.metrics.window import Window
from poolwise.model import Kind, Machine, Schedule

_PRIMARY = ("nodes", "cores")
"""What a job must hold on a node to run there."""


@dataclass(frozen=True)
class Reach:
    """A resource of one owner, averaged over a window.

    Attributes
    ----------
    owner : number of the owner
    resource : name
    installed : base units
    used : share of it that jobs hold
    stranded : share that is free but out of reach: on nodes that have no free node or core left, or in the pool of a rack that
        has none
    """

    owner: int
    resource: str
    installed: int
    used: float
    stranded: float


def reach(schedule: Schedule, window: Window) -> tuple[Reach, ...]:
    """Measure every resource of every owner; nothing for an empty window."""
    if window.end <= window.begin:
        return ()
    machine = schedule.machine
    found = []
    for owner in range(machine.n_owner):
        for column, name in enumerate(machine.resources):
            if installed := int(machine.capacity[owner, column]):
                found.append(_measured(schedule, window, owner, name, installed, _held(schedule, owner, column)))
        each = int(machine.per_node["memory"][owner]) if "memory" in machine.per_node else 0
        if each and "nodes" in machine.resources:
            count = int(machine.capacity[owner, machine.resource("nodes")])
            found.append(_measured(schedule, window, owner, "memory", each * count, _local(schedule, owner, each)))
    return tuple(one for one in found if one is not None)


_Steps = tuple[IntArray, IntArray, FloatArray]
"""(k,) begin, end and amount of what is held."""


def _held(schedule: Schedule, owner: int, column: int) -> _Steps:
    rows = schedule.holdings
    mine = (rows.owner == owner) & (rows.resource == column)
    return rows.begin[mine], rows.end[mine], rows.amount[mine].astype(np.float64)


def _local(schedule: Schedule, owner: int, each: int) -> _Steps:
    """Memory that jobs use of the nodes that they take whole: what they ask for, up to what a node has."""
    rows, workload = schedule.holdings, schedule.workload
    mine = (rows.owner == owner) & (rows.resource == schedule.machine.resource("nodes"))
    asked = np.minimum(workload.memory[schedule.job[rows.run[mine]]], each)
    return rows.begin[mine], rows.end[mine], (rows.amount[mine] * asked).astype(np.float64)


def _measured(schedule: Schedule, window: Window, owner: int, name: str, installed: int, held: _Steps) -> Reach:
    gates = _gates(schedule.machine, owner, name)
    column = next((schedule.machine.resource(n) for n in _PRIMARY if n in schedule.machine.resources), -1)
    before = [_held(schedule, gate, column) for gate in gates]
    times = np.unique(
        np.concatenate([[window.begin, window.end], *held[:2], *(edge for steps in before for edge in steps[:2])])
    )
    times = times[(times >= window.begin) & (times <= window.end)]
    weight = np.diff(times) / float(window.end - window.begin)
    used = _over(times, held) / installed
    total = float(schedule.machine.capacity[gates, column].sum()) if gates else 0.0
    taken = sum((_over(times, steps) for steps in before), np.zeros(len(times) - 1))
    whole = "nodes" in schedule.machine.resources and schedule.machine.kind[owner] == Kind.NODE
    if whole and name != "nodes" and total:  # one owner is many nodes: what is free on those that are taken
        stranded = np.maximum(taken / total - used, 0.0)
    else:
        full: BoolArray = np.asarray(taken >= total) if total else np.zeros(len(times) - 1, dtype=np.bool_)
        stranded = np.where(full, np.maximum(1.0 - used, 0.0), 0.0)
    return Reach(owner, name, installed, float((used * weight).sum()), float((stranded * weight).sum()))


def _gates(machine: Machine, owner: int, name: str) -> list[int]:
    """Nodes of which a job must have some to use a resource of an owner; none where there is no such bound."""
    primary = next((n for n in _PRIMARY if n in machine.resources), None)
    if primary is None or machine.kind[owner] == Kind.LINK or name == primary:
        return []
    nodes = (machine.kind == Kind.NODE) & (machine.capacity[:, machine.resource(primary)] > 0)
    if machine.kind[owner] == Kind.NODE:
        return [owner] if nodes[owner] else []
    home = int(machine.home[owner])
    if home >= 0:
        return [home] if nodes[home] else []
    rack = int(machine.rack[owner])
    return np.flatnonzero(nodes & ((machine.rack == rack) if rack >= 0 else True)).tolist()


def _over(times: IntArray, held: _Steps) -> FloatArray:
    """(n_time - 1,) sum of the amounts that are held in each step."""
    begin, end, amount = held
    change = np.zeros(len(times) + 1)
    np.add.at(change, np.searchsorted(times, begin), amount)
    np.add.at(change, np.searchsorted(times, end), -amount)
    return np.asarray(np.cumsum(change)[: len(times) - 1])
