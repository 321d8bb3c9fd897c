"""What placement policies on composed devices have in common: they choose on `Compositions`, new or kept by a scheduler."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.policies.placement.devices.requests import check_requests
from poolwise.policies.placement.nvme.compositions import Candidate, Compositions
from poolwise.policies.placement.nvme.need import Need

_TAKEN = ("cores", "bandwidth", "storage", "nodes")
"""What composition policies take of a machine; each job one node."""


@runtime_checkable
class CompositionPolicy(PlacementPolicy, Protocol):
    """A placement policy that can use an existing view of the compositions."""

    @property
    def counts_waiting(self) -> bool:
        """Whether `choose` depends on what else is waiting (`Compositions.waiting`)."""
        return False

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for requests besides cores, bandwidth and storage, of which nothing would be taken."""
        remedy = 'choose placement = "pooled", which takes whatever a datacenter has'
        check_requests(jobs, _TAKEN, "placements on compositions take nothing", remedy)

    def choose(self, need: Need, view: Compositions) -> Placement | Refusal:
        """Find nodes and devices for a workload; late ones carry no deadline (`Need.at`)."""
        ...

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place a job in what is free now. Reads the whole machine: the scheduler "composition" keeps that up to date."""
        view = Compositions(snapshot)
        return refused(job) or self.choose(view.need(job.index), view)


class Composer(CompositionPolicy, Protocol):
    """A composition policy that first chooses one node for devices from anywhere, then the devices."""

    alone: ClassVar[bool] = False
    """Whether a workload gets one device at most; otherwise free devices of a place are composed."""

    def first(self, need: Need, view: Compositions) -> int:
        """Node that the policy prefers, -1 where none has the cores."""
        ...

    def compose(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """(node, devices) for a workload that needs devices, None where there are none."""
        ...

    def choose(self, need: Need, view: Compositions) -> Placement | Refusal:
        """Find a node, and devices if the workload needs them."""
        node = self.first(need, view)
        if node < 0:
            return no_cores(need, view)
        if not need.nvme:
            return view.place(need, node)
        found = self.compose(need, view, node)
        return no_devices(need, view, self.alone) if found is None else view.place(need, *found)


def refused(job: Job) -> Refusal | None:
    """Refusal of a job that no composition policy can ever place."""
    if int(job.table.tasks[job.index]) > 1:
        return Refusal("jobs of several tasks cannot be placed on composed devices", "tasks", job.tasks, 1)
    return None


def open_to(need: Need, view: Compositions, late_shares: bool) -> list[Candidate]:
    """Groups of compositions in use where a workload has room and meets its deadline.

    A late workload has none to meet, so all are open to it. Without `late_shares` none is: a deadline that has passed can be
    met nowhere, which is how the published sharing ratios of overloaded machines come about.
    """
    if need.late and not late_shares:
        return []
    return [candidate for candidate in view.candidates(need) if view.now + candidate.time <= need.deadline]


def no_cores(need: Need, view: Compositions) -> Refusal:
    """Refusal for want of cores."""
    return Refusal("no node has enough free cores", "cores", need.cores, int(view.cores.max()))


def no_devices(need: Need, view: Compositions, alone: bool) -> Refusal:
    """Refusal for want of free devices that a node with cores can attach: of storage, of bandwidth with it, or of the fabric.

    A workload that can join nothing in use starts once what is named is there, on one of the devices that have most of it or,
    unless devices serve `alone`, on any of the place that has most of it.
    """
    places = [k for k, home in enumerate(view.layout.inside) if home < 0 or view.free_cores(home) >= need.cores]
    sizes = [size for place in places for size in view.free.offers(place, alone)]
    where = (
        "a free device that a node with enough free cores can attach"
        if alone
        else ("the free devices of a place that a node with enough free cores can attach")
    )
    most = max((storage for _, storage in sizes), default=0)
    if most < need.storage:
        return Refusal(f"not enough storage on {where}", "storage", need.storage, most)
    most = max((bandwidth for bandwidth, storage in sizes if storage >= need.storage), default=0)
    if most < need.bandwidth:
        return Refusal(f"not enough bandwidth on {where}", "bandwidth", need.bandwidth, most)
    blocked = [found for place in places if (found := view.free.blocked(place, need, alone)) is not None]
    if blocked:
        needed, free = min(blocked, key=lambda found: found[0] - found[1])
        return Refusal("the fabric of the free devices attaches no more bandwidth", "bandwidth", needed, free)
    return Refusal("no free devices to its liking can be attached to a node with enough free cores")
