"""Utilization, purchase price and energy of processing units.

Source: VineSim, sections 4.4, 5.2.2 and 5.3.3; specs of the accelerators, "Outputs". Transfers count as busy time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.metrics.window import Window
from poolwise.model import Kind, Machine, Schedule
from poolwise.quantities import SECOND

MOST_SAMPLES = 1_000_000
"""Maximum length of a time series."""


@dataclass(frozen=True, eq=False)
class UnitUse:
    """Busy time of each unit.

    Attributes
    ----------
    unit : (n_unit,) owners, in machine order
    type : n_unit type names
    utilization : (n_unit,) busy share of the window, NaN for an empty window
    """

    unit: IntArray
    type: tuple[str, ...]
    utilization: FloatArray

    @property
    def overall(self) -> float:
        """Mean over all units."""
        return float(self.utilization.mean())

    def by_type(self) -> dict[str, float]:
        """Return the mean over the units of each type, in machine order."""
        return {name: float(values.mean()) for name, values in _grouped(self.type, self.utilization).items()}


@dataclass(frozen=True, eq=False)
class Series:
    """Utilization in equal intervals from the first arrival; the last end may cut off the last interval.

    Attributes
    ----------
    begin, length : (n,) ns
    overall : (n,) mean over all units
    by_type : type name -> (n,) mean over its units
    """

    begin: IntArray
    length: IntArray
    overall: FloatArray
    by_type: Mapping[str, FloatArray]


def units_of(machine: Machine) -> IntArray:
    """Return (n_unit,) owners that are processing units: nodes with slots."""
    if "slots" not in machine.resources:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero((machine.kind == Kind.NODE) & (machine.capacity[:, machine.resource("slots")] > 0))


def dispatch_window(schedule: Schedule) -> Window:
    """Return the window from the first arrival to the last end."""
    begin = int(schedule.workload.submit[0]) if len(schedule.workload) else 0
    return Window(begin, int(schedule.end.max()) if schedule.n_run else begin)


def unit_use(schedule: Schedule, window: Window) -> UnitUse:
    """Measure the busy share of each unit in a window."""
    machine, units = schedule.machine, units_of(schedule.machine)
    owner, begin, end, _ = _busy(schedule)
    inside = np.maximum(np.minimum(end, window.end) - np.maximum(begin, window.begin), 0)
    busy = np.bincount(owner, weights=inside, minlength=machine.n_owner)[units]
    share = busy / (window.end - window.begin) if window.end > window.begin else np.full(len(units), np.nan)
    return UnitUse(units, tuple(machine.type[unit] for unit in units.tolist()), share)


def unit_series(schedule: Schedule, window: Window, interval: int) -> Series:
    """Return the mean utilization over intervals of `interval` ns in a window.

    Raises InputError for an interval below 1 ns, and for one that gives more than `MOST_SAMPLES` samples.
    """
    span = window.end - window.begin
    if interval < 1 or span // max(interval, 1) >= MOST_SAMPLES:
        raise InputError(
            f"invalid sampling interval: {interval} ns for a run of {span} ns",
            field="sample",
            remedy=f"give an interval of at least 1 ns with at most {MOST_SAMPLES:,} samples, or -1 for no series",
        )
    edges = np.append(np.arange(window.begin, window.end, interval), window.end)
    units = units_of(schedule.machine)
    owner, begin, end, _ = _busy(schedule)
    types = [schedule.machine.type[unit] for unit in units.tolist()]
    length = np.diff(edges)
    by_type = {}
    for name in dict.fromkeys(types):
        chosen = np.isin(owner, units[np.array(types) == name])
        by_type[name] = _covered(begin[chosen], end[chosen], edges)
    busy = sum(by_type.values(), np.zeros(len(length)))
    return Series(
        edges[:-1],
        length,
        busy / (length * len(units)),
        {name: column / (length * types.count(name)) for name, column in by_type.items()},
    )


def purchase(machine: Machine) -> float:
    """Return the total price of the units; NaN without a price list."""
    prices = machine.attributes.get("price")
    return float("nan") if prices is None else float(prices[units_of(machine)].sum())


def energy_j(schedule: Schedule, window: Window) -> float:
    """Return the energy of all units in a window, J; NaN without a power table.

    A unit draws the watts of the task type while busy and its idle watts otherwise. Raises InputError if the power table lacks
    the power of a unit type for a task type that ran on it.
    """
    machine, idle = schedule.machine, schedule.machine.attributes.get("idle_watts")
    if idle is None:
        return float("nan")
    units = units_of(machine)
    owner, begin, end, run = _busy(schedule)
    inside = np.maximum(np.minimum(end, window.end) - np.maximum(begin, window.begin), 0)
    kinds = schedule.workload.attributes["task_type"][schedule.job[run]].astype(np.int64)
    watts = np.full(len(owner), np.nan)
    for kind in np.unique(kinds).tolist():
        column = machine.attributes.get(f"power.{kind}")
        if column is not None:
            watts[kinds == kind] = column[owner[kinds == kind]]
    if np.isnan(watts).any():
        k = int(np.argmax(np.isnan(watts)))
        raise InputError(
            f"the power table has no power for unit type '{machine.type[int(owner[k])]}' and tasks of type {int(kinds[k])}",
            field="power",
            remedy="complete the row of this unit type in the power table",
        )
    idle_energy = float(idle[units].sum()) * (window.end - window.begin)
    return (idle_energy + float(((watts - idle[owner]) * inside).sum())) / SECOND


def _busy(schedule: Schedule) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return (n_row,) unit, begin, end (ns) and run of each interval in which a unit is busy."""
    machine = schedule.machine
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    is_unit = np.zeros(machine.n_owner, dtype=np.bool_)
    is_unit[units_of(machine)] = True
    rows = is_unit[schedule.owner] & (schedule.amount > 0)
    runs = run[rows]
    return schedule.owner[rows], schedule.start[runs], schedule.end[runs], runs


def _covered(begin: IntArray, end: IntArray, edges: IntArray) -> FloatArray:
    """Return (n_edge - 1,) total ns of all intervals between consecutive edges."""
    covered: FloatArray = np.diff(_since(begin, edges) - _since(end, edges))
    return covered


def _since(times: IntArray, edges: IntArray) -> FloatArray:
    """Return (n_edge,) sum over times of max(edge - time, 0)."""
    ordered = np.sort(times)
    running = np.concatenate([[0], np.cumsum(ordered - edges[0])])
    count = np.searchsorted(ordered, edges)
    total: FloatArray = (count * (edges - edges[0]) - running[count]).astype(np.float64)
    return total


def _grouped(names: tuple[str, ...], values: FloatArray) -> dict[str, FloatArray]:
    labels = np.array(names)
    return {name: values[labels == name] for name in dict.fromkeys(names)}
