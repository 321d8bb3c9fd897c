"""Base classes of placement policies on composed devices, which decide on a `Compositions` view."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.policies.placement.nvme.composition_request import CompositionRequest
from poolwise.policies.placement.nvme.compositions import Candidate, Compositions
from poolwise.policies.placement.requests import check_requests

_TAKEN = ("cores", "bandwidth", "storage", "nodes")
"""Resources that composition policies allocate; each job uses one node."""


@runtime_checkable
class CompositionPolicy(PlacementPolicy, Protocol):
    """Placement policy that can decide on an existing view of the compositions."""

    @property
    def counts_waiting(self) -> bool:
        """True if `choose` depends on the waiting jobs (`Compositions.waiting`)."""
        return False

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for requests besides cores, bandwidth and storage, which would not be allocated."""
        remedy = 'use placement = "pooled", which allocates all resources'
        check_requests(jobs, _TAKEN, "composition placements do not allocate", remedy)

    def choose(self, need: CompositionRequest, view: Compositions) -> Placement | Refusal:
        """Choose a node and devices for a workload; late workloads carry no deadline (`CompositionRequest.at`)."""
        ...

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place a job in the free resources. Reads the whole machine; the scheduler "composition" updates a view instead."""
        view = Compositions(snapshot)
        return refused(job) or self.choose(view.need(job.index), view)


class Composer(CompositionPolicy, Protocol):
    """Composition policy that first chooses one node for pooled devices, then the devices."""

    single_device: ClassVar[bool] = False
    """Whether a workload gets at most one device; otherwise free devices of one location are composed."""

    def first(self, need: CompositionRequest, view: Compositions) -> int:
        """Return the node that the policy prefers, -1 if no node has enough cores."""
        ...

    def compose(self, need: CompositionRequest, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Return (node, devices) for a workload that needs devices, None if there are none."""
        ...

    def choose(self, need: CompositionRequest, view: Compositions) -> Placement | Refusal:
        """Choose a node, and devices if the workload needs them."""
        node = self.first(need, view)
        if node < 0:
            return no_cores(need, view)
        if not need.nvme:
            return view.place(need, node)
        placement = self.compose(need, view, node)
        return no_devices(need, view, self.single_device) if placement is None else view.place(need, *placement)


def refused(job: Job) -> Refusal | None:
    """Return the refusal of a job that no composition policy can ever place, else None."""
    if int(job.table.tasks[job.index]) > 1:
        return Refusal("jobs with several tasks cannot be placed on composed devices", "tasks", job.tasks, 1)
    return None


def joinable_groups(need: CompositionRequest, view: Compositions, late_shares: bool) -> list[Candidate]:
    """Return the groups of compositions in use where a workload has room and meets its deadline.

    A late workload has no deadline left to meet, so it may join all of them. Without `late_shares`, it may join none, since a
    passed deadline cannot be met anywhere; this reproduces the published sharing ratios of overloaded machines.
    """
    if need.late and not late_shares:
        return []
    return [candidate for candidate in view.candidates(need) if view.now + candidate.time <= need.deadline]


def no_cores(need: CompositionRequest, view: Compositions) -> Refusal:
    """Return the refusal for lack of cores."""
    return Refusal("no node has enough free cores", "cores", need.cores, int(view.cores.max()))


def no_devices(need: CompositionRequest, view: Compositions, single_device: bool) -> Refusal:
    """Return the shortage of the free devices that a node with enough cores can attach: of storage, bandwidth or the fabric.

    A workload that cannot join a composition starts once the stated amount is available: on one of the devices with the most of
    it or, unless `single_device` is set, on any device of the location with the most.
    """
    places = [k for k, home in enumerate(view.layout.inside) if home < 0 or view.free_cores(home) >= need.cores]
    sizes = [size for place in places for size in view.free.offers(place, single_device)]
    where = (
        "any free device that a node with enough free cores can attach"
        if single_device
        else "the free devices of any one location that a node with enough free cores can attach"
    )
    most = max((storage for _, storage in sizes), default=0)
    if most < need.storage:
        return Refusal(f"not enough storage on {where}", "storage", need.storage, most)
    most = max((bandwidth for bandwidth, storage in sizes if storage >= need.storage), default=0)
    if most < need.bandwidth:
        return Refusal(f"not enough bandwidth on {where}", "bandwidth", need.bandwidth, most)
    blocked = [shortage for place in places if (shortage := view.free.blocked(place, need, single_device)) is not None]
    if blocked:
        needed, free = min(blocked, key=lambda shortage: shortage[0] - shortage[1])
        return Refusal("the fabric of the free devices has too little bandwidth left", "bandwidth", needed, free)
    return Refusal("the policy accepts no free devices that a node with enough free cores can attach")
