"""How busy processing units are, what they cost to buy and what they draw.

Source: VineSim, sections 4.4, 5.2.2 and 5.3.3; specs of the accelerators, "Outputs". Transfers count as busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.metrics.window import Window
from poolwise.model import Kind, Machine, Schedule
from poolwise.units import SECOND

MOST_SAMPLES = 1_000_000
"""A time series is not longer than this."""


@dataclass(frozen=True, eq=False)
class UnitUse:
    """Busy time of each unit.

    Attributes
    ----------
    unit : (n_unit,) owners, in the order of the machine
    type : n_unit names
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
        """Mean over the units of each type, in the order of the machine."""
        return {name: float(values.mean()) for name, values in _grouped(self.type, self.utilization).items()}


@dataclass(frozen=True, eq=False)
class Series:
    """Utilisation in equal intervals from the first arrival on; the last one may be cut off by the last end.

    Attributes
    ----------
    begin, length : (n,) ns
    overall : (n,)
    by_type : name -> (n,)
    """

    begin: IntArray
    length: IntArray
    overall: FloatArray
    by_type: Mapping[str, FloatArray]


def units_of(machine: Machine) -> IntArray:
    """(n_unit,) owners that are processing units: nodes with slots."""
    if "slots" not in machine.resources:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero((machine.kind == Kind.NODE) & (machine.capacity[:, machine.resource("slots")] > 0))


def dispatch_window(schedule: Schedule) -> Window:
    """From the first arrival to the last end."""
    begin = int(schedule.workload.submit[0]) if len(schedule.workload) else 0
    return Window(begin, int(schedule.end.max()) if schedule.n_run else begin)


def unit_use(schedule: Schedule, window: Window) -> UnitUse:
    """Measure how busy each unit was in a window."""
    machine, units = schedule.machine, units_of(schedule.machine)
    owner, begin, end, _ = _busy(schedule)
    inside = np.maximum(np.minimum(end, window.end) - np.maximum(begin, window.begin), 0)
    busy = np.bincount(owner, weights=inside, minlength=machine.n_owner)[units]
    share = busy / (window.end - window.begin) if window.end > window.begin else np.full(len(units), np.nan)
    return UnitUse(units, tuple(machine.type[unit] for unit in units.tolist()), share)


def unit_series(schedule: Schedule, window: Window, interval: int) -> Series:
    """Sample the utilisation of a window every `interval` ns, as the mean over each interval.

    Raises InputError for an interval below 1 ns, and for one that would make more than a million samples.
    """
    span = window.end - window.begin
    if interval < 1 or span // max(interval, 1) >= MOST_SAMPLES:
        raise InputError(
            f"a sampling interval of {interval} ns does not suit a run of {span} ns",
            field="sample",
            remedy=f"give an interval that makes at most {MOST_SAMPLES:,} samples, or -1 for none",
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
    """Sum of the prices of the units; NaN without a price list."""
    prices = machine.attributes.get("price")
    return float("nan") if prices is None else float(prices[units_of(machine)].sum())


def energy_j(schedule: Schedule, window: Window) -> float:
    """Joules of all units in a window: watts of the task type while busy, idle watts otherwise; NaN without a power table.

    Raises InputError where a task ran on a unit whose power for its type is not given.
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
            f"the power of unit type '{machine.type[int(owner[k])]}' for tasks of type {int(kinds[k])} is not given",
            field="power",
            remedy="complete its row of the power table",
        )
    standing = float(idle[units].sum()) * (window.end - window.begin)
    return (standing + float(((watts - idle[owner]) * inside).sum())) / SECOND


def _busy(schedule: Schedule) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(n_row,) unit, begin, end (ns) and run of each stretch in which a unit is taken."""
    machine = schedule.machine
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    is_unit = np.zeros(machine.n_owner, dtype=np.bool_)
    is_unit[units_of(machine)] = True
    rows = is_unit[schedule.owner] & (schedule.amount > 0)
    runs = run[rows]
    return schedule.owner[rows], schedule.start[runs], schedule.end[runs], runs


def _covered(begin: IntArray, end: IntArray, edges: IntArray) -> FloatArray:
    """(n_edge - 1,) ns of all stretches that fall between edges."""
    covered: FloatArray = np.diff(_since(begin, edges) - _since(end, edges))
    return covered


def _since(times: IntArray, edges: IntArray) -> FloatArray:
    """(n_edge,) sum over times of max(edge - time, 0)."""
    ordered = np.sort(times)
    running = np.concatenate([[0], np.cumsum(ordered - edges[0])])
    count = np.searchsorted(ordered, edges)
    total: FloatArray = (count * (edges - edges[0]) - running[count]).astype(np.float64)
    return total


def _grouped(names: tuple[str, ...], values: FloatArray) -> dict[str, FloatArray]:
    labels = np.array(names)
    return {name: values[labels == name] for name in dict.fromkeys(names)}
