"""What placement policies on composed devices have in common: they choose on `Compositions`, new or kept by a scheduler."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, Placement, Refusal, Snapshot
from poolwise.policies.placement.nvme.compositions import Candidate, Compositions
from poolwise.policies.placement.nvme.need import Need


@runtime_checkable
class CompositionPolicy(PlacementPolicy, Protocol):
    """A placement policy that can use an existing view of the compositions."""

    @property
    def counts_waiting(self) -> bool:
        """Whether `choose` depends on what else is waiting (`Compositions.waiting`)."""
        return False

    def choose(self, need: Need, view: Compositions) -> Placement | Refusal:
        """Find nodes and devices for a workload; late ones carry no deadline (`Need.at`)."""
        ...

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place a job in what is free now. Reads the whole machine: the scheduler "composition" keeps that up to date."""
        view = Compositions(snapshot)
        return refused(job) or self.choose(view.need(job.index), view)


class Composer(CompositionPolicy, Protocol):
    """A composition policy that first chooses one node for devices from anywhere, then the devices."""

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
        return no_devices(need) if found is None else view.place(need, *found)


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


def no_devices(need: Need) -> Refusal:
    """Refusal for want of devices that can be reached from a node with cores."""
    resource, amount = ("storage", need.storage) if need.storage else ("bandwidth", need.bandwidth)
    return Refusal("no devices with enough room can be attached to a node with enough free cores", resource, amount)
