"""Memory of one job over its runs: memory held in nodes and pools, memory used, and stalls."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from poolwise.model import Kind, Outcome, Schedule


@dataclass(frozen=True, slots=True)
class MemoryStretch:
    """Interval of a run over which held and used memory are constant.

    Attributes
    ----------
    run : run number
    begin, end : ns
    local, pooled : MiB held in nodes and in pools
    used : MiB used on all of its nodes together; None if the workload does not state memory use
    stood_still : True if the run was stalled for lack of memory
    outcome : outcome of the run
    """

    run: int
    begin: int
    end: int
    local: int
    pooled: int
    used: int | None
    stood_still: bool
    outcome: Outcome

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `poolwise explain --json` prints it."""
        names = {"begin": "from_ns", "end": "to_ns", "local": "local_mib", "pooled": "pooled_mib", "used": "used_mib"}
        return {names.get(name, name): value for name, value in asdict(self).items()}


def memory_stretches(schedule: Schedule, job: int) -> tuple[MemoryStretch, ...]:
    """Return the memory of all runs of a job (a workload row), in time order; empty if it never ran."""
    return tuple(stretch for run in np.flatnonzero(schedule.job == job).tolist() for stretch in _of_run(schedule, run))


def _of_run(schedule: Schedule, run: int) -> list[MemoryStretch]:
    machine, begin, end = schedule.machine, int(schedule.start[run]), int(schedule.end[run])
    if "memory" not in machine.resources:
        return []
    rows = schedule.holdings
    own_rows = (rows.run == run) & (rows.end > rows.begin)
    steps = [step for step in schedule.memory_steps if step.run == run]
    stalls = [stall for stall in schedule.stalls if stall.run == run]
    boundaries = {begin, end, *rows.begin[own_rows].tolist(), *(step.time for step in steps)}
    boundaries |= {time for stall in stalls for time in (stall.begin, stall.end)}
    times = sorted(time for time in boundaries if begin <= time <= end)
    nodes = node_memory = 0
    if "nodes" in machine.resources:
        whole = own_rows & (rows.begin == begin) & (rows.resource == machine.resource("nodes"))
        nodes = int(rows.amount[whole].sum())
        if "memory" in machine.per_node:
            node_memory = int((rows.amount[whole] * machine.per_node["memory"][rows.owner[whole]]).sum())
    stretches = []
    for low, high in pairwise(times):
        current = own_rows & (rows.begin <= low) & (rows.end > low)
        local, pooled = (_held(schedule, current, "memory", kind) for kind in (Kind.NODE, Kind.POOL))
        used = next((step.memory * nodes for step in reversed(steps) if step.time <= low), None)
        stalled = any(stall.begin <= low < stall.end for stall in stalls)
        stretches.append(MemoryStretch(run, low, high, local + node_memory, pooled, used, stalled, schedule.outcome[run]))
    return stretches


def _held(schedule: Schedule, selected: np.ndarray, resource: str, kind: Kind) -> int:
    """Return the amount of a resource in the selected rows of the holdings, on owners of one kind."""
    rows, machine = schedule.holdings, schedule.machine
    return int(rows.amount[selected & (rows.resource == machine.resource(resource)) & (machine.kind[rows.owner] == kind)].sum())
