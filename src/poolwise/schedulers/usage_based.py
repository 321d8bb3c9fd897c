"""List scheduling that reallocates pool memory by use instead of by request.

Follows Zacarias, Carpenter and Petrucci, "Dynamic Memory Provisioning on Disaggregated HPC Systems", SC-W 2023, in which the
scheduler reallocates memory according to each job's footprint. The handling of memory shortages is Poolwise's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher
from poolwise.model import Changes, Decisions, JobTable, Machine, Placement, Queue, Resize, Run, Snapshot, Stop
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.quantities import to_ns
from poolwise.registry import register
from poolwise.schedulers.list import ListDispatcher, ListScheduler
from poolwise.short_repr import short_repr


@register("schedulers", "by_use")
@dataclass(frozen=True)
class UsageBased(ListScheduler):
    """List scheduling that measures memory use at intervals and reclaims memory in excess of the use plus a margin.

    A job starts with all the memory that it requested. A run that needs more than it holds receives it at once if pools have
    it, up to the request; all other runs are then measured again. If pools have none, the run stalls until memory is released.
    Once a run has stalled for `patience_s`, it is stopped; if there are several such runs, the last started is stopped. A job
    that has already been stopped holds all the memory that it requested, so that it is not stopped twice. Without measurements
    of memory use, this is list scheduling.

    Parameters
    ----------
    order, backfill, placement
        As in list scheduling; the placement must be that of racks.
    margin
        Share of the used memory that a run keeps in addition to it.
    interval_s
        Seconds between measurements, which take place at multiples of this interval since time 0.
    patience_s
        Seconds for which a run may stall before it is stopped; 0 stops it at once.
    when_short
        "requeue" to restart a stopped job from its beginning, "lose" to end it.
    """

    __repr__ = short_repr

    margin: float = 0.1
    interval_s: float = 300.0
    patience_s: float = 600.0
    when_short: Literal["requeue", "lose"] = "requeue"

    @property
    def resizes(self) -> bool:
        """True, because the scheduler resizes running jobs."""
        return True

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run of the scheduler."""
        return UsageBasedDispatcher(self._opened())

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for settings out of range, a placement other than that of racks, and shared nodes."""
        for name, least in (("margin", 0.0), ("interval_s", 1e-3), ("patience_s", 0.0)):
            if not least <= getattr(self, name) <= 1e9:
                problem = f"{name} must be between {least:g} and 1e9, got {getattr(self, name):g}"
                raise InputError(problem, field=name, remedy="correct or remove it")
        if not isinstance(self.placement, RackPlacement):
            problem = "memory is allocated by use on racks of whole nodes only"
            raise InputError(problem, field="placement", remedy='set placement = "racks"')
        if not machine.racks.uniform:
            problem = "memory is allocated by use on nodes with the same local memory only"
            raise InputError(problem, field="machine", remedy="use nodes of one size, or another scheduler")
        super().check(machine, jobs)


@dataclass
class UsageBasedDispatcher(ListDispatcher):
    """State of a run of `UsageBased`: that of list scheduling; it stores nothing about memory."""

    scheduler: UsageBased

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Reallocate memory if any run is due for it; otherwise schedule the queue."""
        if snapshot.in_use is None:
            return super().schedule(queue, snapshot, changes)
        changed = tuple(self._reallocated(snapshot))
        decisions = Decisions(changed) if changed else super().schedule(queue, snapshot, changes)
        wake_times = [
            *self._wake_times(snapshot, decisions),
            *([] if decisions.next_wakeup is None else [decisions.next_wakeup]),
        ]
        return replace(decisions, next_wakeup=min(wake_times, default=None))

    def _wake_times(self, snapshot: Snapshot, decisions: Decisions) -> Iterator[int]:
        """Yield the next measurement (ns), and the times (ns) at which the patience with stalled runs ends."""
        interval, patience = to_ns(self.scheduler.interval_s), to_ns(self.scheduler.patience_s)
        if decisions.starts or next(snapshot.runs(), None) is not None:
            yield (snapshot.now // interval + 1) * interval
        yield from (since + patience for since in snapshot.stalled.values() if since + patience > snapshot.now)

    def _reallocated(self, snapshot: Snapshot) -> Iterator[Resize | Stop]:
        """Reclaim unused memory, then grant memory to stalled runs, then restore the margins of the others."""
        stalled, now = snapshot.stalled, snapshot.now
        due = now % to_ns(self.scheduler.interval_s) == 0 or now in stalled.values()
        if not due and not stalled:
            return
        pools = _Pools(self.scheduler, snapshot)
        others = [run for run in snapshot.runs() if run.id not in stalled] if due else []
        wanted = pools.wanted(others)
        for run, remote in zip(others, wanted, strict=True):
            if remote < pools.remote(run):
                yield from pools.give(run, remote)
        short = [snapshot.run(number) for number in stalled]
        left = []
        for run, remote in zip(short, pools.wanted(short), strict=True):
            least = max(0, snapshot.memory_of(run) - pools.local)
            resizes = list(pools.give(run, remote)) or list(pools.give(run, min(remote, least)))
            yield from resizes
            left += [] if resizes else [run.id]
        for run, remote in zip(others, wanted, strict=True):
            if remote > pools.remote(run):
                yield from pools.give(run, remote)
        over = [number for number in left if stalled[number] + to_ns(self.scheduler.patience_s) <= now]
        if over:
            yield Stop(max(over), self.scheduler.when_short == "requeue", "out of memory")


class _Pools:
    """Free memory of the pools during a reallocation."""

    def __init__(self, scheduler: UsageBased, snapshot: Snapshot) -> None:
        assert isinstance(scheduler.placement, RackPlacement)  # UsageBased.check
        self._margin, self._placement = scheduler.margin, scheduler.placement
        self._snapshot, self._free = snapshot, snapshot.free.copy()
        self.local = snapshot.machine.local_memory

    def wanted(self, runs: list[Run]) -> list[int]:
        """Return the remote MiB per node that each run should have: its use plus the margin, at most its request."""
        history, table = self._snapshot.history, self._snapshot.table
        ended = set() if history is None else set(np.intersect1d(history.job, [run.job for run in runs]).tolist())
        remote = []
        for run in runs:
            requested, used = int(table.memory[run.job]), self._snapshot.memory_of(run)
            room = requested if run.job in ended else min(requested, math.ceil(used * (1.0 + self._margin)))
            remote.append(max(0, room - self.local))
        return remote

    def remote(self, run: Run) -> int:
        """Return the remote MiB that a run holds per node, rounded up."""
        layout, placement = self._snapshot.machine.racks, run.placement
        held, nodes = (int(placement.amount[placement.resource == k].sum()) for k in (layout.memory_column, layout.node_column))
        return -(-held // nodes)

    def give(self, run: Run, remote: int) -> Iterator[Resize]:
        """Yield a resize of a run to this much remote memory per node, if pools have room for it."""
        free = self._free.copy()
        run.placement.give_to(free)
        placement = self._placement.resized(run.placement, remote, free, self._snapshot.machine)
        if isinstance(placement, Placement):
            placement.take_from(free)
            self._free = free
            yield Resize(run.id, placement)
