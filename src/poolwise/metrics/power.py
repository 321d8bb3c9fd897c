"""Load of nodes, pools and devices, and the watts and dollars that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.metrics.window import Window
from poolwise.model import Kind, Machine, Schedule


@dataclass(frozen=True, eq=False)
class Load:
    """Load of each owner in a window.

    Attributes
    ----------
    mean : (n_owner,) average share in use: of the cores (nodes), the memory (pools), the bandwidth (devices with bandwidth)
        or the device itself (other devices, taken whole or in shares); 0 for links
    awake : (n_owner,) share of the window in which anything ran on the owner
    """

    mean: FloatArray
    awake: FloatArray


def load_of(schedule: Schedule, window: Window) -> Load:
    """Measure the load of a schedule; NaN for an empty window."""
    machine, length = schedule.machine, float(window.end - window.begin)
    if length <= 0:
        nothing = np.full(machine.n_owner, np.nan)
        return Load(nothing, nothing)
    rows = schedule.holdings
    begin, end = np.clip(rows.begin, window.begin, window.end), np.clip(rows.end, window.begin, window.end)
    held = rows.amount * _of_load(machine)[rows.owner, rows.resource] * (end - begin)
    mean = np.bincount(rows.owner, held, machine.n_owner) / length
    return Load(mean, _covered(rows.owner, begin, end, machine.n_owner) / length)


def _covered(owner: np.ndarray, begin: np.ndarray, end: np.ndarray, count: int) -> FloatArray:
    """Return the time covered by the union of each owner's intervals, (count,) ns."""
    order = np.lexsort((begin, owner))
    owner, begin, end = owner[order], begin[order], end[order]
    first = np.searchsorted(owner, np.arange(count + 1))
    total = np.zeros(count)
    for k in range(count):
        rows = slice(first[k], first[k + 1])
        until = np.maximum.accumulate(end[rows])
        before = np.concatenate([begin[rows][:1], until[:-1]])  # latest end of the earlier intervals
        total[k] = np.maximum(until - np.maximum(begin[rows], before), 0).sum()
    return total


def _of_load(machine: Machine) -> FloatArray:
    """Return the contribution of one unit of a resource to its owner's load, (n_owner, n_resource); 0 for other resources."""
    values = np.zeros(machine.capacity.shape)
    others = tuple(name for name in machine.resources if name not in ("memory", "storage"))  # allocated whole, or in shares
    loads = {Kind.NODE: (("cores",), ("nodes",)), Kind.POOL: (("memory",),), Kind.DEVICE: (("bandwidth",), others)}
    for kind, choices in loads.items():
        left = machine.kind == kind
        for names in choices:
            columns = [machine.resource(name) for name in names if name in machine.resources]
            here = left & machine.capacity[:, columns].any(axis=1)
            capacity = machine.capacity[np.ix_(here, columns)]
            values[np.ix_(here, columns)] = np.where(capacity > 0, 1.0 / np.maximum(capacity, 1), 0.0)
            left = left & ~here
    return values


def multiplicity(machine: Machine) -> IntArray:
    """Return the number of identical units that each owner represents, (n_owner,): the whole nodes of a rack are one owner."""
    whole = machine.capacity[:, machine.resource("nodes")] if "nodes" in machine.resources else 0
    return np.asarray(np.where((machine.kind == Kind.NODE) & (whole > 0), whole, 1), dtype=np.int64)


def price(machine: Machine) -> float:
    """Return the total price of all nodes, pools and devices, $, from their attribute "price"; NaN if one has no price."""
    prices, owners = machine.attributes.get("price"), machine.kind != Kind.LINK
    return float("nan") if prices is None else float((multiplicity(machine) * prices)[owners].sum())


def mean_watts(machine: Machine, load: Load) -> float:
    """Return the mean power of all nodes, pools and devices, W; NaN if a unit has no watts or the load is unknown.

    Power rises linearly with load from "idle_watts" to "busy_watts": Fan, Weber, Barroso 2007.
    """
    owners = machine.kind != Kind.LINK
    idle, busy = machine.attributes.get("idle_watts"), machine.attributes.get("busy_watts")
    if idle is None or busy is None:
        return float("nan")
    return float((multiplicity(machine) * (idle + (busy - idle) * load.mean))[owners].sum())
