"""List scheduling that takes back what jobs do not use: pool memory by use in place of by request.

The direction of Zacarias, Carpenter and Petrucci, "Dynamic Memory Provisioning on Disaggregated HPC Systems", SC-W 2023:
the scheduler reallocates memory according to the job's current footprint. What happens when memory runs out is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, opened
from poolwise.model import Changes, JobTable, Machine, Placement, Plan, Queue, Reason, Resize, Run, Snapshot, Stop
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.registry import register
from poolwise.schedulers.list import ListDispatcher, ListScheduler
from poolwise.units import to_ns


@register("schedulers", "by_use")
@dataclass(frozen=True)
class UsageBased(ListScheduler):
    """List scheduling that measures what runs use at an interval, and takes back from each what is beyond that and a margin.

    A job starts with all that it asked for. A run that needs more than it holds is given it at once, if pools have it, and
    never more than its job asked for; for that all others are measured again. Where there is none, it stands still until
    something is given back; after `patience_s` it is stopped, of several the one that started last. A job of which a run has
    ended before keeps all that it asked for, so that it is not stopped twice. Where nobody measures what runs use, this is
    list scheduling.

    Parameters
    ----------
    order, backfill, placement
        As in list scheduling; the placement is that of racks.
    margin
        Share of what is used that is left to a run on top of it.
    interval_s
        Seconds between two measurements, at whole multiples since time 0.
    patience_s
        Seconds for which a run may stand still; 0 to stop it at once.
    when_short
        Whether a job that is stopped waits again, from its beginning ("requeue"), or is over ("lose").
    """

    margin: float = 0.1
    interval_s: float = 300.0
    patience_s: float = 600.0
    when_short: Literal["requeue", "lose"] = "requeue"

    @property
    def resizes(self) -> bool:
        """It does."""
        return True

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run."""
        return UsageBasedDispatcher(replace(self, order=opened(self.order), backfill=self.backfill.open()))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for settings out of range, another placement than that of racks, and nodes that are shared."""
        for name, least in (("margin", 0.0), ("interval_s", 1e-3), ("patience_s", 0.0)):
            if not least <= getattr(self, name) <= 1e9:
                problem = f"{name} must be between {least:g} and 1e9, not {getattr(self, name):g}"
                raise InputError(problem, field=name, remedy="correct it, or leave it out")
        if not isinstance(self.placement, RackPlacement):
            problem = "memory is allocated by use on racks of whole nodes only"
            raise InputError(problem, field="placement", remedy='write placement = "racks"')
        _ = machine.racks
        super().check(machine, jobs)


@dataclass
class UsageBasedDispatcher(ListDispatcher):
    """A run of `UsageBased`; remembers what list scheduling does, and nothing of memory."""

    scheduler: UsageBased

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Reallocate memory, if there is any to take or give; else schedule the queue."""
        if snapshot.in_use is None:
            return super().schedule(queue, snapshot, changes)
        decisions = tuple(self._reallocated(snapshot))
        plan = Plan(decisions) if decisions else super().schedule(queue, snapshot, changes)
        asked = [*self._times(snapshot, plan), *([] if plan.wake_at is None else [plan.wake_at])]
        return replace(plan, wake_at=min(asked, default=None))

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Say what list scheduling says; a pass that reallocates memory is followed by one that schedules."""
        return super().why(job, queue, snapshot, plan)

    def _times(self, snapshot: Snapshot, plan: Plan) -> Iterator[int]:
        """When (ns) to measure next, and when the patience with those that stand still is over."""
        interval, patience = to_ns(self.scheduler.interval_s), to_ns(self.scheduler.patience_s)
        if plan.starts or next(snapshot.runs(), None) is not None:
            yield (snapshot.now // interval + 1) * interval
        yield from (since + patience for since in snapshot.stalled.values() if since + patience > snapshot.now)

    def _reallocated(self, snapshot: Snapshot) -> Iterator[Resize | Stop]:
        """Take what is not used, then give to those that stand still, then to those whose margin has shrunk."""
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
            given = list(pools.give(run, remote)) or list(pools.give(run, min(remote, least)))
            yield from given
            left += [] if given else [run.id]
        for run, remote in zip(others, wanted, strict=True):
            if remote > pools.remote(run):
                yield from pools.give(run, remote)
        over = [number for number in left if stalled[number] + to_ns(self.scheduler.patience_s) <= now]
        if over:
            yield Stop(max(over), self.scheduler.when_short == "requeue", "out of memory")


class _Pools:
    """What is free while memory is taken and given."""

    def __init__(self, scheduler: UsageBased, snapshot: Snapshot) -> None:
        assert isinstance(scheduler.placement, RackPlacement)  # UsageBased.check
        self._margin, self._placement = scheduler.margin, scheduler.placement
        self._snapshot, self._free = snapshot, snapshot.free.copy()
        self.local = snapshot.machine.local_memory

    def wanted(self, runs: list[Run]) -> list[int]:
        """MiB of remote memory that each node of some runs is to have: what is used and a margin, at most what was asked."""
        history, table = self._snapshot.history, self._snapshot.table
        ended = set() if history is None else set(np.intersect1d(history.job, [run.job for run in runs]).tolist())
        found = []
        for run in runs:
            asked, used = int(table.memory[run.job]), self._snapshot.memory_of(run)
            room = asked if run.job in ended else min(asked, math.ceil(used * (1.0 + self._margin)))
            found.append(max(0, room - self.local))
        return found

    def remote(self, run: Run) -> int:
        """MiB of remote memory that each node of a run has, rounded up."""
        layout, placement = self._snapshot.machine.racks, run.placement
        held, nodes = (int(placement.amount[placement.resource == k].sum()) for k in (layout.memory_column, layout.node_column))
        return -(-held // nodes)

    def give(self, run: Run, remote: int) -> Iterator[Resize]:
        """Let a run have so much remote memory on each node, if pools have it."""
        free = self._free.copy()
        run.placement.give_to(free)
        found = self._placement.resized(run.placement, remote, free, self._snapshot.machine)
        if isinstance(found, Placement):
            found.take_from(free)
            self._free = free
            yield Resize(run.id, found)
