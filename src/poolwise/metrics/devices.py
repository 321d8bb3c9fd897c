"""Load of nodes and devices, size of compositions, and number of workloads that share a composition.

Source: Call et al., section IV-C (metrics of Tables III to V); specs of the NVMe composition, "Load and measurement". A load
is the base demand of the running workloads divided by the installed amount, so a bandwidth load may exceed 1. All values are
time averages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.metrics.window import Window, amounts_in_steps
from poolwise.model import Kind, Schedule


@dataclass(frozen=True)
class DeviceUse:
    """Time averages over a window; NaN without installed devices, or if no device is ever in use.

    Attributes
    ----------
    cpu_load, bandwidth_load, capacity_load : base demand / installed amount
    usage_pct : percentage of the devices that belong to a composition
    composition_size : devices per composition, averaged over the instants with at least one composition
    sharing_ratio : workloads per composition, over the same instants
    composition_size_floor, sharing_ratio_floor : the ratio of each instant rounded down, 1 and 0 while no device is in use
        (the convention of the published tables)
    """

    cpu_load: float
    bandwidth_load: float
    capacity_load: float
    usage_pct: float
    composition_size: float
    sharing_ratio: float
    composition_size_floor: float
    sharing_ratio_floor: float


def device_use(schedule: Schedule, window: Window) -> DeviceUse:
    """Measure the devices of a schedule over a window."""
    machine = schedule.machine
    runs, devices, lead = _device_rows(schedule)
    on_devices = lead >= 0
    start, end = schedule.start, schedule.end
    in_use = _unions(devices, start[runs], end[runs])
    leading = _unions(lead[on_devices], start[on_devices], end[on_devices])
    length, (used, compositions, workloads) = _steps(window, [in_use, leading, (start[on_devices], end[on_devices])])
    some = compositions > 0
    size, sharing = np.ones(len(length)), np.zeros(len(length))
    np.divide(used, compositions, out=size, where=some)
    np.divide(workloads, compositions, out=sharing, where=some)
    n_devices = len(machine.of_kind(Kind.DEVICE))
    return DeviceUse(
        mean_load(schedule, "cores", window),
        mean_load(schedule, "bandwidth", window),
        mean_load(schedule, "storage", window),
        100 * _mean(used, length) / n_devices if n_devices else float("nan"),
        _mean(size[some], length[some]),
        _mean(sharing[some], length[some]),
        _mean(np.floor(size), length),
        _mean(np.floor(sharing), length),
    )


def mean_load(schedule: Schedule, resource: str, window: Window) -> float:
    """Return the base demand of the running workloads / the capacity of nodes and devices, averaged over a window."""
    machine = schedule.machine
    if resource not in machine.resources or window.end <= window.begin:
        return float("nan")
    owners = (machine.kind == Kind.NODE) | (machine.kind == Kind.DEVICE)
    total = int(machine.capacity[owners, machine.resource(resource)].sum())
    overlap = np.minimum(schedule.end, window.end) - np.maximum(schedule.start, window.begin)
    demand = schedule.workload.request(resource)[schedule.job]
    used = float((demand * (np.maximum(overlap, 0) / 1e9)).sum())
    return used / (total * window.length_s) if total else float("nan")


def nodes_of(schedule: Schedule) -> IntArray:
    """Return the node that holds each run's cores, (n_run,), -1 for runs without cores."""
    machine = schedule.machine
    node = np.full(schedule.n_run, -1, dtype=np.int64)
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    rows = machine.kind[schedule.owner] == Kind.NODE
    node[run[rows]] = schedule.owner[rows]
    return node


def demand_before(schedule: Schedule, resource: str) -> FloatArray:
    """Return the base demand of the active runs just before each start / the devices' capacity of a resource, (n_run,).

    Ends at the same instant count as earlier; starts at the same instant count in the order in which they were decided.
    """
    machine = schedule.machine
    total = int(machine.capacity[machine.of_kind(Kind.DEVICE), machine.resource(resource)].sum())
    demand = schedule.workload.request(resource)[schedule.job]
    by_end = np.argsort(schedule.end, kind="stable")
    released = np.concatenate([[0], np.cumsum(demand[by_end])])
    allocated = np.concatenate([[0], np.cumsum(demand)[:-1]]) if len(demand) else np.zeros(0)
    ended = released[np.searchsorted(schedule.end[by_end], schedule.start, side="right")]
    share: FloatArray = (allocated - ended) / max(total, 1)
    return share


def _device_rows(schedule: Schedule) -> tuple[IntArray, IntArray, IntArray]:
    """Return the run and device of each distinct pair, (k,) each, and the lowest device of each run, (n_run,), -1 for none."""
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    rows = schedule.machine.kind[schedule.owner] == Kind.DEVICE
    n = schedule.machine.n_owner
    pairs = np.unique(run[rows] * n + schedule.owner[rows])
    runs, devices = pairs // n, pairs % n
    lead = np.full(schedule.n_run, -1, dtype=np.int64)
    first = np.unique(runs, return_index=True)[1]
    lead[runs[first]] = devices[first]
    return runs, devices, lead


def _unions(owner: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Return (begin, end) of the intervals in which each owner is occupied, with overlapping runs merged."""
    order = np.lexsort((start, owner))
    owner, start, end = owner[order], start[order], end[order]
    begins, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1, [len(owner)]])
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if low == high:
            continue
        until = np.maximum.accumulate(end[low:high])
        first: BoolArray = np.concatenate([[True], start[low + 1 : high] > until[:-1]])
        begins.append(start[low:high][first])
        ends.append(until[np.concatenate([first[1:], [True]])])
    return np.concatenate(begins), np.concatenate(ends)


def _steps(window: Window, intervals: list[tuple[IntArray, IntArray]]) -> tuple[FloatArray, list[FloatArray]]:
    """Return the lengths (s) of a window's steps and, for each set of intervals, how many of them cover each step."""
    clipped = [(np.clip(b, window.begin, window.end), np.clip(e, window.begin, window.end)) for b, e in intervals]
    edges = [np.array([window.begin, window.end])]
    times = np.unique(np.concatenate([*edges, *(t for pair in clipped for t in pair)]))
    return np.diff(times) / 1e9, [amounts_in_steps(times, begin, end, np.ones(len(begin))) for begin, end in clipped]


def _mean(values: FloatArray, weights: FloatArray) -> float:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total else float("nan")
