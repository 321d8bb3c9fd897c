"""Pool use over time, as bands above the nodes of a Gantt chart; values are averages over equal parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model import Kind, Machine, Schedule
from poolwise.presentation.figure import Box
from poolwise.presentation.format import format_number
from poolwise.report.occupancy import mean_over_parts
from poolwise.units import HOUR, format_memory, format_time, to_seconds

PARTS = 120
"""Number of parts of the displayed period; the bands show their means."""
MAX_POOLS = 12
"""Maximum number of pools to draw, in machine order."""
SERIES = "pool in use"
_BAND, _GAP = 0.09, 0.025
"""Height of a band and of the gap between bands, relative to the height of all nodes."""


def pools_over_time(schedule: Schedule, window: tuple[int, int], submit: int, top: float) -> Iterator[Box]:
    """Yield the boxes of each pool's band above `top`; `window` is in ns, and hours count from `submit`."""
    edges = np.linspace(*window, PARTS + 1)
    for k, (owner, column) in enumerate(_drawn(schedule.machine)):
        low, installed = _low(k, top), int(schedule.machine.capacity[owner, column])
        name = _name(schedule.machine, owner, column)
        for begin, end, share in zip(edges, edges[1:], _in_use(schedule, owner, column, edges) / installed, strict=False):
            if share > 0:
                amount = _amount(schedule.machine.resources[column], installed)
                text = f"{name}: {format_number(100 * share)} % of {amount} in use {_relative_time(begin - submit)}"
                high = low + _BAND * top * min(1.0, float(share))
                yield Box(float(begin - submit) / HOUR, float(end - submit) / HOUR, low, high, SERIES, text)


def pool_ticks(machine: Machine, top: float) -> dict[float, str]:
    """Return the name of each pool at the middle of its band."""
    return {_low(k, top) + _BAND * top / 2: _name(machine, owner, column) for k, (owner, column) in enumerate(_drawn(machine))}


def _drawn(machine: Machine) -> list[tuple[int, int]]:
    """Return (owner, resource) of each pool resource to draw."""
    pools = np.flatnonzero(machine.kind == Kind.POOL).tolist()
    return [(owner, k) for owner in pools for k in range(len(machine.resources)) if machine.capacity[owner, k]][:MAX_POOLS]


def _in_use(schedule: Schedule, owner: int, column: int, edges: FloatArray) -> FloatArray:
    """Return (n - 1,) mean amount that runs hold between n instants (ns)."""
    rows = schedule.holdings
    mine = (rows.owner == owner) & (rows.resource == column)
    return mean_over_parts(rows.begin[mine], rows.end[mine], rows.amount[mine].astype(np.float64), edges)


def _low(k: int, top: float) -> float:
    return top * (1 + _GAP + k * (_BAND + _GAP))


def _name(machine: Machine, owner: int, column: int) -> str:
    rack, resource = int(machine.rack[owner]), machine.resources[column]
    kind = "pool" if machine.type[owner] in ("memory", "pool") and resource == "memory" else f"{machine.type[owner]} pool"
    several = sum(one == owner for one, _ in _drawn(machine)) > 1
    return f"{kind}{f' {resource}' if several else ''}{f' {rack}' if rack >= 0 else ''}"


def _amount(resource: str, amount: int) -> str:
    return format_memory(amount) if resource in ("memory", "storage") else f"{amount:,}"


def _relative_time(ns: float) -> str:
    duration = format_time(to_seconds(abs(int(ns))))
    return f"{duration} {'before' if ns < 0 else 'after'} the submission"
