"""List scheduling on composed devices, with a view of the compositions that is kept from pass to pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Changes, Decision, Kind, Machine, Plan, Queue, Refusal, Reject, Snapshot, Start, Workload
from poolwise.policies.order.edf import EDF
from poolwise.policies.placement.nvme.composition import CompositionPolicy, refused
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.disaggregation_aware import NvmeDisaggregationAware
from poolwise.registry import register
from poolwise.units import NEVER


@register("schedulers", "composition")
@dataclass(frozen=True)
class CompositionScheduler(Scheduler):
    """Each pass tries every waiting job in the queue's order; one that does not fit does not block the rest.

    It decides as `ListScheduler(order, Skip(), placement)` does, but instead of reading the machine anew for each job it
    looks up candidates in an index that starts and ends update, and does not ask twice for jobs that are alike.
    """

    order: QueuePolicy = field(default_factory=EDF)
    placement: PlacementPolicy = field(default_factory=NvmeDisaggregationAware)

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin a run. Raises InputError for a placement that does not work on compositions."""
        if not isinstance(self.placement, CompositionPolicy):
            raise InputError(
                f"{type(self.placement).__name__} does not place on compositions",
                field="placement",
                remedy="choose one of the nvme_ placements, or the scheduler 'list'",
            )
        return CompositionDispatcher(self.order, self.placement, _shapes(workload))


@dataclass
class CompositionDispatcher(Dispatcher):
    """A run. Everything besides the settings is a cache that `schedule` rebuilds from the snapshot if it is empty."""

    order: QueuePolicy
    placement: CompositionPolicy
    shapes: IntArray
    _view: Compositions | None = None
    _dirty: set[int] = field(default_factory=set)  # owners that the last plan gave away
    _owners: dict[int, tuple[int, ...]] = field(default_factory=dict)  # run -> owners, of the runs on the machine
    _possible: dict[int, Refusal | None] = field(default_factory=dict)  # shape -> what the empty machine says to it
    _blocked: set[int] = field(default_factory=set)  # likes (`_try`) that would be refused now
    _started: list[int] = field(default_factory=list)  # jobs that the last plan started

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Reject what can never run, then start whatever fits, in the queue's order."""
        view = self._refreshed(queue, snapshot, changes)
        rejects = self._impossible(snapshot, changes)
        if rejects and changes == Changes(arrived=tuple(reject.job for reject in rejects)):
            return Plan(tuple(rejects))  # jobs turned away at the door are no reason for a pass
        jobs = queue.jobs
        keep = ~np.isin(jobs, [reject.job for reject in rejects]) if rejects else np.ones(len(jobs), dtype=np.bool_)
        likes = 2 * self.shapes[jobs] + _late(snapshot.table, jobs, snapshot.now)
        waiting = set(likes[keep].tolist())
        if waiting <= self._blocked:
            return Plan(tuple(rejects))
        priority = self.order.priority(queue, snapshot)
        if priority.shape != jobs.shape or bool(np.isnan(priority).any()):
            raise PolicyError(f"{type(self.order).__name__} must return {len(jobs)} priorities that are numbers")
        if self.placement.counts_waiting:
            view.waiting = _demand(snapshot.table, jobs[keep])
        order = np.argsort(-priority, kind="stable")
        order = order[keep[order]]
        decisions: list[Decision] = [*rejects]
        for job, like in zip(jobs[order].tolist(), likes[order].tolist(), strict=True):
            if like not in self._blocked:
                decisions.extend(self._try(job, like, view))
                if waiting <= self._blocked:
                    break
        return Plan(tuple(decisions))

    def _refreshed(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Compositions:
        """Bring the view up to date: only what the last plan, ends and changes of capacity have touched is read again.

        What was refused before would be refused again unless something was given back, a start was not carried out, or a
        composition has become safe to join; or if the policy looks at the whole queue.
        """
        dirty, self._dirty = self._dirty, set()
        started, self._started = self._started, []
        if self._view is None:
            self._view = Compositions(snapshot)
            dirty = set(self._view.layout.nodes.tolist())
        else:
            for run in changes.ended:
                dirty.update(self._owners.pop(run, ()))
            dirty.update(changes.capacity)
            if any(snapshot.machine.kind[owner] == Kind.POOL for owner in changes.capacity):
                dirty.update(self._view.layout.devices.tolist())
            more = self._view.refresh(snapshot, dirty)
            if (
                more
                or changes.ended
                or changes.capacity
                or self.placement.counts_waiting
                or any(job in queue for job in started)
            ):
                self._blocked.clear()
        for owner in dirty:
            for run in snapshot.occupants(owner):
                if run not in self._owners:
                    self._owners[run] = snapshot.run(run).placement.owners()
        if changes.capacity:
            self._possible.clear()
        return self._view

    def _impossible(self, snapshot: Snapshot, changes: Changes) -> list[Reject]:
        rejects, empty = [], None
        for job in changes.arrived:
            shape = int(self.shapes[job])
            if shape not in self._possible:
                empty = empty or Compositions(snapshot.empty())
                found = refused(snapshot.table.job(job)) or self.placement.choose(empty.need(job), empty)
                self._possible[shape] = found if isinstance(found, Refusal) else None
            refusal = self._possible[shape]
            if refusal is not None:
                rejects.append(Reject(job, f"cannot fit on the empty machine: {refusal.reason}"))
        return rejects

    def _try(self, job: int, like: int, view: Compositions) -> list[Start]:
        """Start a job if it fits; if not, block those that are like it until something else starts on devices.

        Jobs are alike that ask for the same and are both late, or both not (`like` is twice the shape, plus 1 if late). One
        that is not late blocks others only if it would not fit without its deadline either.
        """
        need = view.need(job)
        found = self.placement.choose(need, view)
        if isinstance(found, Refusal):
            if need.late:
                self._blocked.add(like)
            elif not need.nvme or isinstance(self.placement.choose(replace(need, deadline=NEVER), view), Refusal):
                self._blocked.update((like, like | 1))
            return []
        view.take(need, found)
        self._started.append(job)
        self._dirty.update(found.owners())
        if need.nvme:
            if view.waiting is not None:
                view.waiting = (view.waiting[0] - need.bandwidth, view.waiting[1] - need.storage)
            self._blocked.clear()  # a new composition, or a new speed of an old one, may suit others
        return [Start(job, (0,), found)]


_SHAPE = ("cores", "bandwidth", "storage")


def _shapes(workload: Workload) -> IntArray:
    """(n_job,) numbers of what jobs ask for: equal for jobs that differ in nothing but id, submission and deadline."""
    columns = [workload.request(name) for name in _SHAPE] + [workload.requested, workload.duration, workload.tasks]
    named = [workload.attributes[name] for name in ("kind", "peak_bandwidth") if name in workload.attributes]
    columns += [np.unique(column, return_inverse=True)[1] for column in named]
    if not len(workload):
        return np.zeros(0, dtype=np.int64)
    numbers: IntArray = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def _late(workload: Workload, jobs: IntArray, now: int) -> IntArray:
    """(k,) 1 for jobs whose deadline has passed, else 0."""
    deadline = workload.attributes.get("deadline")
    if deadline is None:
        return np.zeros(len(jobs), dtype=np.int64)
    late: IntArray = (deadline[jobs].astype(np.int64, copy=False) <= now).astype(np.int64)
    return late


def _demand(workload: Workload, jobs: IntArray) -> tuple[int, int]:
    """(bandwidth, storage) that jobs ask for."""
    return int(workload.request("bandwidth")[jobs].sum()), int(workload.request("storage")[jobs].sum())
