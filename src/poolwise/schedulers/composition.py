"""List scheduling on composed devices, with an index of compositions that is updated from pass to pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray, arrays_equal, immutable
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import (
    Changes,
    Decisions,
    JobTable,
    Kind,
    Machine,
    Queue,
    Reason,
    Refusal,
    Reject,
    Snapshot,
    Start,
    Wait,
    WaitCause,
)
from poolwise.policies.order.priorities import EDF
from poolwise.policies.placement.nvme.composition import CompositionPolicy, refused
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.policies import NvmeDisaggregationAware
from poolwise.quantities import NEVER
from poolwise.registry import register
from poolwise.schedulers.fitting import NEVER_FITS
from poolwise.short_repr import short_repr


@register("schedulers", "composition")
@dataclass(frozen=True)
class CompositionScheduler(Scheduler):
    """Tries every waiting job in queue order in each pass; a job that does not fit does not block the others.

    It makes the same decisions as `ListScheduler(order, Skip(), placement)`. Instead of reading the whole machine for each job,
    it looks up candidates in an index that starts and ends update, and evaluates identical jobs only once.
    """

    __repr__ = short_repr

    order: QueuePolicy = field(default_factory=EDF)
    placement: PlacementPolicy = field(default_factory=NvmeDisaggregationAware)

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run; raise InputError for a placement that does not support compositions."""
        if not isinstance(self.placement, CompositionPolicy):
            raise InputError(
                f"{type(self.placement).__name__} does not place on compositions",
                field="placement",
                remedy="choose one of the nvme_ placements, or the scheduler 'list'",
            )
        return CompositionDispatcher(self.order, self.placement)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and the jobs with the placement."""
        self.placement.check(machine, jobs)


@dataclass
class CompositionDispatcher(Dispatcher):
    """State of a run. Everything except the settings is a cache that `schedule` rebuilds from the snapshot if it is empty."""

    order: QueuePolicy
    placement: CompositionPolicy
    _view: Compositions | None = None
    _owners: dict[int, tuple[int, ...]] = field(default_factory=dict)  # run -> owners that it occupies
    _possible: dict[int, Refusal | None] = field(default_factory=dict)  # shape -> refusal by the empty machine, if any
    _capacity: IntArray | None = None  # capacity for which `_possible` holds
    _blocked: set[int] = field(default_factory=set)  # job classes (`_try`) that would be refused now

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Reject jobs that can never run; if there are none, start all that fit, in queue order."""
        view = self._refreshed(snapshot, changes)
        shapes, jobs = _shapes(snapshot.table), queue.jobs
        never = self._impossible(jobs, shapes, snapshot)
        if never and not snapshot.may_grow:
            return Decisions(tuple(Reject(job, f"{NEVER_FITS}: {refusal.reason}") for job, refusal in never.items()))
        decisions: list[Wait | Start] = [Wait(job, refusal) for job, refusal in never.items()]
        keep = ~np.isin(jobs, list(never)) if never else np.ones(len(jobs), dtype=np.bool_)
        likes = 2 * shapes[jobs] + _late(snapshot.table, jobs, snapshot.now)
        waiting, explain = set(likes[keep].tolist()), changes.explain
        if waiting <= self._blocked and not explain:
            return Decisions(tuple(decisions))
        priority = self.order.priority(queue, snapshot)
        if priority.shape != jobs.shape or bool(np.isnan(priority).any()):
            raise PolicyError(f"{type(self.order).__name__} must return {len(jobs)} priorities that are numbers", by=self.order)
        if self.placement.counts_waiting:
            view.waiting = _demand(snapshot.table, jobs[keep])
        order = np.argsort(-priority, kind="stable")
        order = order[keep[order]]
        reasons, ahead = dict[int, Reason](), 0
        for job, like in zip(jobs[order].tolist(), likes[order].tolist(), strict=True):
            if like not in self._blocked or job in explain:
                answer = self._try(job, like, view)
                if isinstance(answer, Start):
                    decisions.append(answer)
                    continue
                if job in explain:
                    reasons[job] = Reason.of(WaitCause.SHORT, answer.reason, answer, ahead=ahead)
                if waiting <= self._blocked and not explain:
                    break
            ahead += 1
        return Decisions(tuple(decisions), reasons=reasons)

    def _refreshed(self, snapshot: Snapshot, changes: Changes) -> Compositions:
        """Update the index; only owners affected by starts, ends and capacity changes are read again.

        Earlier refusals still hold unless resources were released, a start was not applied, a composition became safe to join,
        or the policy takes the whole queue into account.
        """
        if self._view is None:
            self._view = Compositions(snapshot)
            dirty = set(self._view.layout.nodes.tolist())
        else:
            dirty = {owner for start, _ in (*changes.started, *changes.refused) for owner in start.placement.owners()}
            for run in changes.ended:
                dirty.update(self._owners.pop(run, ()))
            dirty.update(changes.capacity)
            if any(snapshot.machine.kind[owner] == Kind.POOL for owner in changes.capacity):
                dirty.update(self._view.layout.devices.tolist())
            more = self._view.refresh(snapshot, dirty)
            if more or changes.ended or changes.capacity or changes.refused or self.placement.counts_waiting:
                self._blocked.clear()
        for owner in dirty:
            for run in snapshot.occupants(owner):
                if run not in self._owners:
                    self._owners[run] = snapshot.run(run).placement.owners()
        return self._view

    def _impossible(self, jobs: IntArray, shapes: IntArray, snapshot: Snapshot) -> dict[int, Refusal]:
        """Return the waiting jobs that do not fit on the empty machine, with reasons; evaluated once per shape."""
        if self._capacity is None or not arrays_equal(self._capacity, snapshot.capacity):
            self._capacity = immutable(snapshot.capacity)
            self._possible.clear()
        empty: Compositions | None = None
        requested = shapes[jobs].tolist()
        for shape in set(requested) - self._possible.keys():
            job = int(jobs[requested.index(shape)])
            empty = empty or Compositions(snapshot.empty())
            need = replace(empty.need(job), deadline=NEVER, late=False)  # a missed deadline does not justify a rejection
            empty.waiting = (need.bandwidth, need.storage)  # no other job waits
            placement = refused(snapshot.table.job(job)) or self.placement.choose(need, empty)
            self._possible[shape] = placement if isinstance(placement, Refusal) else None
        if all(self._possible[shape] is None for shape in set(requested)):
            return {}
        found_never = ((job, self._possible[shape]) for job, shape in zip(jobs.tolist(), requested, strict=True))
        return {job: refusal for job, refusal in found_never if refusal is not None}

    def _try(self, job: int, like: int, view: Compositions) -> Start | Refusal:
        """Start a job if it fits; otherwise return why not, and block its class until something else starts on devices.

        A class contains jobs with the same request that are all late or all not late (`like` is twice the shape, plus 1 if
        late). A job that is not late blocks its class only if it would not fit even without its deadline.
        """
        need = view.need(job)
        placement = self.placement.choose(need, view)
        if isinstance(placement, Refusal):
            if need.late:
                self._blocked.add(like)
            elif not need.nvme or isinstance(self.placement.choose(replace(need, deadline=NEVER), view), Refusal):
                self._blocked.update((like, like | 1))
            return placement
        view.allocate(need, placement)
        if need.nvme:
            if view.waiting is not None:
                view.waiting = (view.waiting[0] - need.bandwidth, view.waiting[1] - need.storage)
            self._blocked.clear()  # a new composition, or a changed speed of an old one, may suit other jobs
        return Start(job, (0,), placement)


_SHAPE = ("cores", "bandwidth", "storage")


def _shapes(table: JobTable) -> IntArray:
    """Return the jobs' shape numbers, (n_job,), equal for jobs that differ only in id, submission and deadline."""

    def columns(table: JobTable, rows: slice) -> list[NDArray[np.generic]]:
        requests: list[NDArray[np.generic]] = [table.request(name)[rows] for name in _SHAPE]
        named = [table.attributes[name][rows] for name in ("kind", "peak_bandwidth") if name in table.attributes]
        return [*requests, table.requested[rows], table.tasks[rows], *named]

    return table.kinds("composition", columns).of


def _late(table: JobTable, jobs: IntArray, now: int) -> IntArray:
    """Return 1 for each job past its deadline, else 0, (k,)."""
    deadline = table.attributes.get("deadline")
    if deadline is None:
        return np.zeros(len(jobs), dtype=np.int64)
    return (deadline[jobs].astype(np.int64, copy=False) <= now).astype(np.int64)


def _demand(table: JobTable, jobs: IntArray) -> tuple[int, int]:
    """Return the total (bandwidth, storage) that jobs request."""
    return int(table.request("bandwidth")[jobs].sum()), int(table.request("storage")[jobs].sum())
