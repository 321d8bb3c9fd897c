"""Share of each resource in use, and share that is idle while jobs wait for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.metrics.window import Window, amounts_in_steps
from poolwise.model import Kind, Machine, Schedule, Workload

DEVICES = "devices"


@dataclass(frozen=True)
class ResourceUse:
    """One resource, averaged over a window.

    Attributes
    ----------
    resource : name; devices that are taken whole count under the name of their type
    installed : base units in nodes, pools and devices
    used : share that runs hold
    stranded : share that is free while waiting jobs request at least as much. Either the other resources that they request are
    not free in the same place, or an order or backfill rule reserves it. The rest is free and unrequested.
    """

    resource: str
    installed: int
    used: float
    stranded: float


def resource_use(schedule: Schedule, window: Window) -> tuple[ResourceUse, ...]:
    """Measure every resource that jobs request; return an empty tuple for an empty window."""
    if window.end <= window.begin:
        return ()
    uses = []
    for name in sorted(schedule.workload.requests):
        capacity, column = owners_with(schedule.machine, name)
        if total := int(capacity.sum()):
            uses.append(_use(schedule, window, name, total, capacity > 0, column))
    return tuple(uses)


def owners_with(machine: Machine, name: str) -> tuple[IntArray, int]:
    """Return the capacity of a requested name, a resource or a device type, (n_owner,), and its column."""
    if name in machine.resources:
        column = machine.resource(name)
        return np.where(_counts(machine, name), machine.capacity[:, column], 0), column
    if DEVICES not in machine.resources:
        return np.zeros(machine.n_owner, dtype=np.int64), -1
    column = machine.resource(DEVICES)
    of_type = np.array(machine.type) == name
    return np.where(of_type & (machine.kind == Kind.DEVICE), machine.capacity[:, column], 0), column


def _counts(machine: Machine, name: str) -> np.ndarray:
    """Return a mask of the owners whose capacity jobs may hold, (n_owner,): no links, and bandwidth only of devices."""
    if name == "bandwidth":
        return np.equal(machine.kind, Kind.DEVICE)
    return np.not_equal(machine.kind, Kind.LINK)


def _use(schedule: Schedule, window: Window, name: str, total: int, counts: np.ndarray, column: int) -> ResourceUse:
    """Measure a resource over the owners marked in `counts`, (n_owner,)."""
    rows = schedule.holdings
    here = counts[rows.owner] & (rows.resource == column)
    begin, end, held = rows.begin[here], rows.end[here], rows.amount[here].astype(np.float64)
    submit, until, requested = _waits(schedule, name, window)
    times = np.unique(np.concatenate([[window.begin, window.end], begin, end, submit, until]))
    times = times[(times >= window.begin) & (times <= window.end)]
    weight = np.diff(times) / (total * float(window.end - window.begin))
    used = amounts_in_steps(times, begin, end, held)
    free = np.maximum(total - used, 0)
    stranded = np.minimum(free, amounts_in_steps(times, submit, until, requested))
    return ResourceUse(name, total, float((used * weight).sum()), float((stranded * weight).sum()))


def requested_amounts(workload: Workload, name: str) -> FloatArray:
    """Return the (n_job,) amounts of a resource that jobs request, summed over all of their nodes and tasks."""
    each = np.ones(len(workload), dtype=np.int64) if name == "nodes" else workload.request(name)
    amounts: FloatArray = (each * workload.nodes * workload.tasks).astype(np.float64)
    return amounts


def _waits(schedule: Schedule, name: str, window: Window) -> tuple[IntArray, IntArray, FloatArray]:
    """Return submission, start (or the window's end) and requested amount of each job that was not rejected, (k,) each."""
    workload = schedule.workload
    begun = np.full(len(workload), window.end, dtype=np.int64)
    np.minimum.at(begun, schedule.job, schedule.start)
    requested = requested_amounts(workload, name)
    requested[list(schedule.rejected)] = 0.0
    waiting = (requested > 0) & (workload.submit < begun)
    return workload.submit[waiting], begun[waiting], requested[waiting]
