"""Pool memory that runs hold and need over time, and the node hours lost when memory runs out."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.metrics.window import Window
from poolwise.model import Kind, Outcome, Schedule
from poolwise.quantities import HOUR


def ran_out_of_memory(schedule: Schedule) -> BoolArray:
    """Return an (n_run,) mask of the runs that were terminated for lack of memory."""
    return np.array([outcome is Outcome.OUT_OF_MEMORY for outcome in schedule.outcome], dtype=np.bool_)


def whole_nodes(schedule: Schedule, owners: IntArray | None = None) -> IntArray:
    """Return the number of whole nodes of each run, (n_run,), counting all owners or only some."""
    rows = schedule.resource == schedule.machine.resource("nodes")
    if owners is not None:
        rows = rows & np.isin(schedule.owner, owners)
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    return np.bincount(run[rows], schedule.amount[rows], schedule.n_run).astype(np.int64)


def lost_node_hours(schedule: Schedule) -> float:
    """Return the node hours of runs that were terminated for lack of memory: their work is lost."""
    hours = (schedule.end - schedule.start) / HOUR * whole_nodes(schedule)
    return float(hours[ran_out_of_memory(schedule)].sum())


def stalled_node_hours(schedule: Schedule) -> float:
    """Return the node hours during which runs stalled for lack of memory, including runs that were terminated later."""
    nodes = whole_nodes(schedule)
    return float(sum((stall.end - stall.begin) / HOUR * nodes[stall.run] for stall in schedule.stalls))


def pool_memory(schedule: Schedule, window: Window) -> tuple[float, float]:
    """Return the shares of all pool memory that runs hold, and that they need, averaged over a window.

    A run needs pool memory for its use above the memory of its nodes, even while it is stalled for lack of that memory.
    The shares are NaN without pools and for an empty window.
    """
    machine, memory = schedule.machine, schedule.machine.resource("memory")
    installed = int(machine.capacity[machine.of_kind(Kind.POOL), memory].sum())
    if not installed or window.end <= window.begin:
        return float("nan"), float("nan")
    rows = schedule.holdings
    pooled = (rows.resource == memory) & (machine.kind[rows.owner] == Kind.POOL)
    held = _mean(rows.amount[pooled], rows.begin[pooled], rows.end[pooled], window)
    steps = sorted(schedule.memory_steps, key=lambda step: (step.run, step.time))
    run, begin, each = (np.array([getattr(step, name) for step in steps], dtype=np.int64) for name in ("run", "time", "memory"))
    last = np.append(run[1:] != run[:-1], True)[: len(run)]
    end = np.where(last, schedule.end[run], np.append(begin[1:], 0)[: len(run)])
    needed = 0.0
    for size in np.unique(machine.racks.local).tolist():
        nodes = whole_nodes(schedule, machine.racks.nodes[machine.racks.local == size])
        needed += _mean(np.maximum(each - size, 0) * nodes[run], begin, end, window)
    return held / installed, needed / installed


def _mean(amount: IntArray, begin: IntArray, end: IntArray, window: Window) -> float:
    """Return the sum of amounts, each valid from begin to end (ns), averaged over a window."""
    inside = np.clip(end, window.begin, window.end) - np.clip(begin, window.begin, window.end)
    return float((amount.astype(np.float64) * inside).sum() / (window.end - window.begin))
