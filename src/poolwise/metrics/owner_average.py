"""Used and unreachable shares of every resource of every owner, as shown in the machine drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.metrics.window import Window, amounts_in_steps
from poolwise.model import Kind, Machine, Schedule

_PRIMARY = ("nodes", "cores")
"""Resource that a job must hold on a node to run there, in order of preference."""


@dataclass(frozen=True)
class OwnerAverage:
    """A resource of one owner, averaged over a window.

    Attributes
    ----------
    owner : index of the owner
    resource : name
    installed : base units
    used : share that jobs hold
    unreachable : share that is free but unusable: it is on nodes without a free node or core, or in the pool of a rack (or of
    the machine) that has no free node or core
    """

    owner: int
    resource: str
    installed: int
    used: float
    unreachable: float


def owner_averages(schedule: Schedule, window: Window, *, system: bool = False) -> tuple[OwnerAverage, ...]:
    """Measure every resource of every owner; return an empty tuple for an empty window.

    `system` states that jobs may use the pools of other racks.
    """
    if window.end <= window.begin:
        return ()
    machine, rows = schedule.machine, _Rows.of(schedule)
    each = machine.per_node.get("memory", np.zeros(machine.n_owner, dtype=np.int64))
    whole = machine.capacity[:, machine.resource("nodes")] if "nodes" in machine.resources else np.zeros_like(each)
    averages = []
    for owner in range(machine.n_owner):
        resources = [(name, int(machine.capacity[owner, k]), rows.held([owner], k)) for k, name in enumerate(machine.resources)]
        resources.append(("memory", int(each[owner] * whole[owner]), rows.local(owner, int(each[owner]))))
        for name, installed, held in resources:
            if installed:
                gates = _gates(machine, owner, name, system)
                taken = rows.held(gates, rows.primary)
                total = float(machine.capacity[gates, rows.primary].sum())
                many = bool(whole[owner]) and name != "nodes"
                averages.append(OwnerAverage(owner, name, installed, *_shares(window, installed, held, taken, total, many)))
    return tuple(averages)


_Steps = tuple[IntArray, IntArray, FloatArray]
"""(k,) begin, end and amount of allocations."""


@dataclass(frozen=True)
class _Rows:
    """Allocations, sorted by owner and resource.

    Attributes
    ----------
    order, bounds : rows order[bounds[k]:bounds[k + 1]] belong to owner k // n_resource and resource k % n_resource
    primary : column of the resource that a job must hold on a node, -1 if there is none
    """

    schedule: Schedule
    order: IntArray
    bounds: IntArray
    primary: int

    @classmethod
    def of(cls, schedule: Schedule) -> _Rows:
        rows, machine = schedule.holdings, schedule.machine
        key = rows.owner * len(machine.resources) + rows.resource
        order = np.argsort(key, kind="stable")
        bounds = np.searchsorted(key[order], np.arange(machine.n_owner * len(machine.resources) + 1))
        primary = next((machine.resource(name) for name in _PRIMARY if name in machine.resources), -1)
        return cls(schedule, order, bounds, primary)

    def held(self, owners: list[int], column: int) -> _Steps:
        """Return the allocations of a resource on several owners together."""
        count, rows = len(self.schedule.machine.resources), self.schedule.holdings
        parts = [self.order[self.bounds[o * count + column] : self.bounds[o * count + column + 1]] for o in owners]
        mine = np.concatenate(parts) if parts else self.order[:0]
        return rows.begin[mine], rows.end[mine], rows.amount[mine].astype(np.float64)

    def local(self, owner: int, each: int) -> _Steps:
        """Return the memory that jobs use on nodes they take whole: their request, up to the memory of a node."""
        if not each:
            return self.held([], 0)
        count, rows, workload = len(self.schedule.machine.resources), self.schedule.holdings, self.schedule.workload
        k = owner * count + self.primary
        mine = self.order[self.bounds[k] : self.bounds[k + 1]]
        requested = np.minimum(workload.memory[self.schedule.job[rows.run[mine]]], each)
        return rows.begin[mine], rows.end[mine], (rows.amount[mine] * requested).astype(np.float64)


def _shares(window: Window, installed: int, held: _Steps, taken: _Steps, total: float, many: bool) -> tuple[float, float]:
    """Return the mean used share of an owner's resource, and the mean share that is free but out of reach.

    Of the `total` nodes or cores that give jobs access to the resource, `taken` are in use. If `many`, each gives access to its
    own part, otherwise to the whole resource.
    """
    times = np.unique(np.concatenate([[window.begin, window.end], *held[:2], *taken[:2]]))
    times = times[(times >= window.begin) & (times <= window.end)]
    weight = np.diff(times) / float(window.end - window.begin)
    used = amounts_in_steps(times, *held) / installed
    unreachable = np.zeros(len(weight))
    if total:
        share = amounts_in_steps(times, *taken) / total
        reachable = 1.0 - share if many else np.where(share >= 1.0, 0.0, 1.0)
        unreachable = np.maximum(1.0 - used - reachable, 0.0)
    return float((used * weight).sum()), float((unreachable * weight).sum())


def _gates(machine: Machine, owner: int, name: str, system: bool) -> list[int]:
    """Return the nodes of which a job needs at least one to use a resource of an owner.

    The result is empty without such a constraint.
    """
    primary = next((n for n in _PRIMARY if n in machine.resources), None)
    if primary is None or machine.kind[owner] == Kind.LINK or name == primary:
        return []
    nodes = (machine.kind == Kind.NODE) & (machine.capacity[:, machine.resource(primary)] > 0)
    near = int(machine.home[owner]) if machine.home[owner] >= 0 else owner if machine.kind[owner] == Kind.NODE else -1
    if near >= 0:
        return [near] if nodes[near] else []
    rack = int(machine.rack[owner])
    rows: list[int] = np.flatnonzero(nodes & (system or rack < 0 or (machine.rack == rack))).tolist()
    return rows
