"""List scheduling with flow placement: order and backfill choose the jobs to start, and one flow places them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.interfaces import BackfillPolicy, Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Changes, Decision, Decisions, JobTable, Machine, Queue, Refusal, Snapshot, Start
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.devices.pooled import CompletionPolicy, Pooled
from poolwise.registry import SettingsOf, register
from poolwise.schedulers.flow.phases import solve_gangs
from poolwise.schedulers.flow.scheduler import FlowDispatcher, FlowScheduler
from poolwise.schedulers.flow.shapes import ON_LINKS, Requests, Rows
from poolwise.schedulers.list import ListScheduler
from poolwise.short_repr import short_repr


@register("schedulers", "list_flow")
@dataclass(frozen=True)
class ListFlow(Scheduler):
    """Order and backfill choose the jobs to start, as in list scheduling; one minimum-cost flow then places all of them.

    The flow gives each job its node and devices. The placement policy adds the rest: the split of memory between node and pool,
    and composed NVMe. If the rest of a job does not fit there, the placement policy places the job alone. If that also fails
    for one job, or if the flow cannot place all jobs, all of them start where the placement policy placed them. A backfilled
    job may therefore run elsewhere, and longer, than the backfill expected.

    Parameters
    ----------
    order, backfill, placement
        As in list scheduling; the placement must be able to complete a flow placement, as "pooled" does.
    costs, settings
        Registered name of the flow's cost model (group "costs") and its settings.
    """

    __repr__ = short_repr

    order: QueuePolicy = field(default_factory=FCFS)
    backfill: BackfillPolicy = field(default_factory=Easy)
    placement: PlacementPolicy = field(default_factory=Pooled)
    costs: str = "cpu_mem"
    settings: Annotated[Mapping[str, Any], SettingsOf("costs", "costs")] = field(default_factory=dict)

    @property
    def keeps_state(self) -> str:
        """State that the backfill keeps between passes."""
        return self.backfill.keeps_state

    def open(self, machine: Machine, seed: int) -> ListFlowDispatcher:
        """Start a run; raise InputError for an unsupported placement, and as list and flow scheduling do."""
        if not isinstance(self.placement, CompletionPolicy):
            message = f"{type(self.placement).__name__} cannot complete a flow placement"
            raise InputError(message, field="placement", remedy="choose 'pooled'")
        kinds = self.placement.whole_devices(machine)
        shared = any((machine.home[owners] < 0).any() for owners in kinds.values())
        flow = FlowScheduler(self.costs, self.settings, pooled=shared, kinds=tuple(kinds))
        requests = _InNode(self.placement, ("cores", "memory", *ON_LINKS, *kinds))
        listed = ListScheduler(self.order, self.backfill, self.placement)
        return ListFlowDispatcher(listed.open(machine, seed), self.placement, flow.reading(machine, requests))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError as list and flow scheduling do."""
        ListScheduler(self.order, self.backfill, self.placement).check(machine, jobs)
        self.open(machine, 0).flow.shapes.check(jobs)


@dataclass(frozen=True)
class _InNode(Requests):
    """View of jobs that the flow uses: cores, memory required in the node, devices and traffic."""

    placement: CompletionPolicy
    seen: tuple[str, ...]

    def names(self, table: JobTable) -> Iterable[str]:
        """Return the names of the requests that the flow places or reads."""
        return self.seen

    def amounts(self, table: JobTable, name: str, rows: Rows) -> IntArray:
        """Return the amounts in the job table, (k,), with only required local memory; zeros for requests outside the view."""
        if name == "memory":
            return self.placement.least(table.memory[rows])
        return table.request(name)[rows] if name in self.seen else np.zeros_like(table.tasks[rows])


@dataclass(frozen=True)
class ListFlowDispatcher(Dispatcher):
    """State of a run of `ListFlow`; it can be rebuilt at any time."""

    listed: Dispatcher
    placement: CompletionPolicy
    flow: FlowDispatcher

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Choose the jobs to start, then place them together."""
        decisions = self.listed.schedule(queue, snapshot, changes)
        starts = [decision for decision in decisions if isinstance(decision, Start)]
        moved = self._moved(starts, queue, snapshot) if starts else None
        if moved is None:
            return decisions
        others: list[Decision] = [decision for decision in decisions if not isinstance(decision, Start)]
        return Decisions((*others, *moved), decisions.next_wakeup, decisions.reasons)

    def _moved(self, starts: list[Start], queue: Queue, snapshot: Snapshot) -> list[Start] | None:
        """Return starts of the same jobs with the placements of the flow; None if it cannot place them all."""
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
            placement = self.placement.place_at(job, node[start.job], tuple(sorted(devices[start.job])), snapshot)
            if isinstance(placement, Refusal):
                placement = self.placement.place(job, snapshot)
            if isinstance(placement, Refusal):
                return None
            moved.append(Start(start.job, start.tasks, placement))
            snapshot = snapshot.with_started(start.job, placement)
        return moved
