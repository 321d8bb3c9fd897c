"""What is in use of each resource, what stands idle though jobs wait for it, and what all of it draws and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.metrics.window import Window
from poolwise.model import Kind, Machine, Schedule
from poolwise.units import SECOND

DEVICES = "devices"


@dataclass(frozen=True)
class ResourceUse:
    """One resource, averaged over a window.

    Attributes
    ----------
    resource : name; devices that are taken whole count under that of their type
    installed : base units in nodes, pools and devices
    used : share of it that runs hold
    stranded : share that is free while jobs that wait ask for as much: it is wanted, but not together with what else they need
        or not where that is (or an order or a backfill holds it back). The rest is free and unwanted.
    """

    resource: str
    installed: int
    used: float
    stranded: float


def resource_use(schedule: Schedule, window: Window) -> tuple[ResourceUse, ...]:
    """Measure every resource that jobs ask for; nothing for an empty window."""
    if window.end <= window.begin:
        return ()
    found = []
    for name in sorted(schedule.workload.requests):
        capacity, column = _owners(schedule.machine, name)
        if total := int(capacity.sum()):
            found.append(_use(schedule, window, name, total, (capacity > 0)[schedule.owner] & (schedule.resource == column)))
    return tuple(found)


def _owners(machine: Machine, name: str) -> tuple[IntArray, int]:
    """(n_owner,) capacity of what jobs ask for by a name, a resource or a type of device, and its column."""
    if name in machine.resources:
        column = machine.resource(name)
        return np.where(_counts(machine, name), machine.capacity[:, column], 0), column
    if DEVICES not in machine.resources:
        return np.zeros(machine.n_owner, dtype=np.int64), -1
    column = machine.resource(DEVICES)
    of_type = np.array(machine.type) == name
    return np.where(of_type & (machine.kind == Kind.DEVICE), machine.capacity[:, column], 0), column


def _counts(machine: Machine, name: str) -> np.ndarray:
    """(n_owner,) owners whose capacity jobs may hold: not links, and bandwidth only of devices."""
    if name == "bandwidth":
        return np.equal(machine.kind, Kind.DEVICE)
    return np.not_equal(machine.kind, Kind.LINK)


def _use(schedule: Schedule, window: Window, name: str, total: int, rows: np.ndarray) -> ResourceUse:
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    held: FloatArray = np.bincount(run[rows], schedule.amount[rows], schedule.n_run).astype(np.float64)
    submit, until, wanted = _waits(schedule, name, window)
    times = np.unique(np.concatenate([[window.begin, window.end], schedule.start, schedule.end, submit, until]))
    times = times[(times >= window.begin) & (times <= window.end)]
    weight = np.diff(times) / (total * float(window.end - window.begin))
    used = _steps(times, schedule.start, schedule.end, held)
    free = np.maximum(total - used, 0)
    stranded = np.minimum(free, _steps(times, submit, until, wanted))
    return ResourceUse(name, total, float((used * weight).sum()), float((stranded * weight).sum()))


def _waits(schedule: Schedule, name: str, window: Window) -> tuple[IntArray, IntArray, FloatArray]:
    """(k,) submission, start (or the end of the window) and wish of each job that was not rejected."""
    workload = schedule.workload
    begun = np.full(len(workload), window.end, dtype=np.int64)
    np.minimum.at(begun, schedule.job, schedule.start)
    asks = (workload.request(name) * workload.tasks).astype(np.float64)
    asks[list(schedule.rejected)] = 0.0
    keep = (asks > 0) & (workload.submit < begun)
    return workload.submit[keep], begun[keep], asks[keep]


def _steps(times: IntArray, begin: IntArray, end: IntArray, amount: FloatArray) -> FloatArray:
    """(n_time - 1,) sum of the amounts of the stretches that cover each step."""
    change = np.zeros(len(times) + 1)
    np.add.at(change, np.searchsorted(times, begin), amount)
    np.add.at(change, np.searchsorted(times, end), -amount)
    total: FloatArray = np.cumsum(change)[: len(times) - 1]
    return total


def price(machine: Machine) -> float:
    """$ of all nodes, pools and devices, from their attribute "price"; NaN where one has none."""
    prices, owners = machine.attributes.get("price"), machine.kind != Kind.LINK
    return float("nan") if prices is None else float(prices[owners].sum())


def mean_watts(schedule: Schedule, window: Window) -> float:
    """Watts of all nodes, pools and devices, averaged over a window; NaN where a thing has no watts, or the window is empty.

    A thing draws from "idle_watts" to "busy_watts", linear in what is in use of its cores (nodes), its memory (pools), itself
    (devices taken whole) or its bandwidth (other devices). Linear in the load: Fan, Weber, Barroso 2007.
    """
    machine, owners = schedule.machine, schedule.machine.kind != Kind.LINK
    idle, busy = machine.attributes.get("idle_watts"), machine.attributes.get("busy_watts")
    if idle is None or busy is None or np.isnan((idle + busy)[owners]).any() or window.end <= window.begin:
        return float("nan")
    per_unit = (busy - idle)[:, None] * _of_load(machine)
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    inside = np.maximum(np.minimum(schedule.end, window.end) - np.maximum(schedule.start, window.begin), 0)[run] / SECOND
    rows = owners[schedule.owner]
    joules = schedule.amount * per_unit[schedule.owner, schedule.resource] * inside
    return float(idle[owners].sum()) + float(joules[rows].sum()) / window.length_s


def _of_load(machine: Machine) -> FloatArray:
    """(n_owner, n_resource) share of an owner's load that one unit of a resource is; 0 for resources that do not count."""
    found = np.zeros(machine.capacity.shape)
    loads = {Kind.NODE: ("cores", "nodes"), Kind.POOL: ("memory",), Kind.DEVICE: ("bandwidth", DEVICES)}
    for kind, names in loads.items():
        left = machine.kind == kind
        for name in (name for name in names if name in machine.resources):
            column = machine.resource(name)
            here = left & (machine.capacity[:, column] > 0)
            found[here, column] = 1.0 / machine.capacity[here, column]
            left = left & ~here
    return found
