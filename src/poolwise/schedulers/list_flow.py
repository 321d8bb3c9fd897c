"""List scheduling in which a flow decides where: order and backfill choose who starts, one flow where all of them go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.interfaces import BackfillPolicy, Dispatcher, PlacementPolicy, QueuePolicy, Scheduler, reason_of
from poolwise.model import Changes, Decision, JobTable, Machine, Plan, Queue, Reason, Refusal, Snapshot, Start
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.devices.completion import CompletionPolicy
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.registry import register
from poolwise.schedulers.flow.phases import solve_gangs
from poolwise.schedulers.flow.scheduler import FlowDispatcher, FlowScheduler
from poolwise.schedulers.flow.shapes import ON_LINKS, Requests, Rows
from poolwise.schedulers.list import ListScheduler


@register("schedulers", "list_flow")
@dataclass(frozen=True)
class ListFlow(Scheduler):
    """Order and backfill choose the jobs that start now, as in list scheduling; then one flow places all of them at least cost.

    The flow gives each job its node and its devices; the placement adds the rest: the split of memory between node and
    pool, and composed NVMe. A job for which the rest is not there is placed by the placement alone; where that finds no room
    for one of them, or the flow no place, all start where the placement had put them. So a backfilled job may run elsewhere,
    and longer, than the backfill expected.

    Parameters
    ----------
    order, backfill, placement
        As in list scheduling; the placement can complete what a flow has begun, as "pooled" can.
    costs, settings
        Cost model of the flow, by its name in the group "costs", and its settings.
    """

    order: QueuePolicy = field(default_factory=FCFS)
    backfill: BackfillPolicy = field(default_factory=Easy)
    placement: PlacementPolicy = field(default_factory=Pooled)
    costs: str = "cpu_mem"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remembers(self) -> str:
        """What the backfill remembers."""
        return self.backfill.remembers

    def open(self, machine: Machine, seed: int) -> ListFlowDispatcher:
        """Begin a run. Raises InputError for another placement, and as list and flow scheduling do."""
        if not isinstance(self.placement, CompletionPolicy):
            message = f"{type(self.placement).__name__} cannot add to what a flow has placed"
            raise InputError(message, field="placement", remedy="choose 'pooled'")
        kinds = self.placement.whole_devices(machine)
        shared = any((machine.home[owners] < 0).any() for owners in kinds.values())
        flow = FlowScheduler(self.costs, self.settings, pooled=shared, kinds=tuple(kinds))
        requests = _InNode(self.placement, ("cores", "memory", *ON_LINKS, *kinds))
        listed = ListScheduler(self.order, self.backfill, self.placement)
        return ListFlowDispatcher(listed, listed.open(machine, seed), self.placement, flow.reading(machine, requests))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError as list and flow scheduling do."""
        ListScheduler(self.order, self.backfill, self.placement).check(machine, jobs)
        self.open(machine, 0).flow.shapes.check(jobs)


@dataclass(frozen=True)
class _InNode(Requests):
    """What the flow sees of jobs: cores, the memory that must be in the node, devices, traffic."""

    placement: CompletionPolicy
    seen: tuple[str, ...]

    def names(self, table: JobTable) -> Iterable[str]:
        """Names of the requests that the flow places, or looks at."""
        return self.seen

    def amounts(self, table: JobTable, name: str, rows: Rows) -> IntArray:
        """(k,) amounts as in the job table, except for memory; of all else the flow sees zeros."""
        if name == "memory":
            return self.placement.least(table.memory[rows])
        return table.request(name)[rows] if name in self.seen else np.zeros_like(table.tasks[rows])


@dataclass(frozen=True)
class ListFlowDispatcher(Dispatcher):
    """A run of the scheduler; what its parts hold can be rebuilt."""

    listed: ListScheduler
    whole: Dispatcher
    placement: CompletionPolicy
    flow: FlowDispatcher

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Choose starts, then place them together."""
        plan = self.whole.schedule(queue, snapshot, changes)
        starts = [decision for decision in plan.decisions if isinstance(decision, Start)]
        moved = self._moved(starts, queue, snapshot) if starts else None
        if moved is None:
            return plan
        others: list[Decision] = [decision for decision in plan.decisions if not isinstance(decision, Start)]
        return Plan((*others, *moved), plan.wake_at)

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Ask list scheduling about the starts as they were before the flow moved them: those decided who else may start."""
        listed = self.listed.open(snapshot.machine, 0)
        return reason_of(listed, job, queue, snapshot, listed.schedule(queue, snapshot, Changes()))

    def _moved(self, starts: list[Start], queue: Queue, snapshot: Snapshot) -> list[Start] | None:
        """Starts of the same jobs where the flow puts them, None where it cannot place them all."""
        state = self.flow.state(queue.only(np.array([start.job for start in starts])), snapshot)
        outcome, _ = solve_gangs(state, np.arange(len(state.jobs)))
        if not outcome.whole.all():
            return None
        node = dict(zip(state.jobs[outcome.job].tolist(), state.layout.nodes[outcome.node].tolist(), strict=True))
        devices: dict[int, list[int]] = {job: [] for job in node}
        for kind, owners in outcome.owner.items():
            for task, owner in zip(outcome.sub_task[kind].tolist(), owners.tolist(), strict=True):
                devices[int(state.jobs[outcome.job[task]])].append(owner)
        moved = []
        for start in starts:
            job = queue.job(start.job)
            found = self.placement.place_at(job, node[start.job], tuple(sorted(devices[start.job])), snapshot)
            if isinstance(found, Refusal):
                found = self.placement.place(job, snapshot)
            if isinstance(found, Refusal):
                return None
            moved.append(Start(start.job, start.tasks, found))
            snapshot = snapshot.with_started(start.job, found)
        return moved
