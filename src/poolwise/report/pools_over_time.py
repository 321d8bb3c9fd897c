"""Pools over time, as bands above the nodes of a drawing of jobs: each as full as it was, means over equal parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model import Kind, Machine, Schedule
from poolwise.presentation.figure import Box
from poolwise.presentation.format import spoken_number
from poolwise.report.occupancy import mean_over_parts
from poolwise.units import HOUR, format_memory, format_time, to_seconds

PARTS = 120
"""Parts of the stretch whose means are drawn."""
MOST = 12
"""Pools that are drawn, the first of the machine."""
SERIES = "in use of a pool"
_BAND, _GAP = 0.09, 0.025
"""Height of a band and of what parts it from the next, over that of all nodes."""


def pools_over_time(schedule: Schedule, window: tuple[int, int], submit: int, top: float) -> Iterator[Box]:
    """Boxes of each pool's bands above `top`; `window` in ns, hours are counted from `submit`."""
    edges = np.linspace(*window, PARTS + 1)
    for k, (owner, column) in enumerate(_shown(schedule.machine)):
        low, installed = _low(k, top), int(schedule.machine.capacity[owner, column])
        name = _name(schedule.machine, owner, column)
        for begin, end, share in zip(edges, edges[1:], _in_use(schedule, owner, column, edges) / installed, strict=False):
            if share > 0:
                amount = _amount(schedule.machine.resources[column], installed)
                said = f"{name}: {spoken_number(100 * share)} % of {amount} in use {_when(begin - submit)}"
                high = low + _BAND * top * min(1.0, float(share))
                yield Box(float(begin - submit) / HOUR, float(end - submit) / HOUR, low, high, SERIES, said)


def pool_ticks(machine: Machine, top: float) -> dict[float, str]:
    """Name each pool in the middle of its band."""
    return {_low(k, top) + _BAND * top / 2: _name(machine, owner, column) for k, (owner, column) in enumerate(_shown(machine))}


def _shown(machine: Machine) -> list[tuple[int, int]]:
    """(owner, resource) of what pools have."""
    pools = np.flatnonzero(machine.kind == Kind.POOL).tolist()
    return [(owner, k) for owner in pools for k in range(len(machine.resources)) if machine.capacity[owner, k]][:MOST]


def _in_use(schedule: Schedule, owner: int, column: int, edges: FloatArray) -> FloatArray:
    """(n - 1,) mean amount that runs hold between n instants (ns)."""
    rows = schedule.holdings
    mine = (rows.owner == owner) & (rows.resource == column)
    return mean_over_parts(rows.begin[mine], rows.end[mine], rows.amount[mine].astype(np.float64), edges)


def _low(k: int, top: float) -> float:
    return top * (1 + _GAP + k * (_BAND + _GAP))


def _name(machine: Machine, owner: int, column: int) -> str:
    rack, resource = int(machine.rack[owner]), machine.resources[column]
    kind = "pool" if machine.type[owner] == resource == "memory" else f"{machine.type[owner]} pool"
    several = sum(one == owner for one, _ in _shown(machine)) > 1
    return f"{kind}{f' {resource}' if several else ''}{f' {rack}' if rack >= 0 else ''}"


def _amount(resource: str, amount: int) -> str:
    return format_memory(amount) if resource in ("memory", "storage") else f"{amount:,}"


def _when(ns: float) -> str:
    said = format_time(to_seconds(abs(int(ns))))
    return f"{said} {'before' if ns < 0 else 'after'} it was submitted"
