"""From a decision to start a job to pods on nodes with devices: what is checked, and what is held from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from poolwise.errors import InputError
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.device_allocation import ChosenDevice, Devices, allocate, allocation_of
from poolwise.live.kubernetes.devices import DeviceId, Part
from poolwise.live.kubernetes.machine import amounts_offered
from poolwise.live.kubernetes.node_constraints import selects
from poolwise.live.kubernetes.objects import Node, Pod, ResourceClaim
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.recovery import InterruptedStart
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart
from poolwise.live.kubernetes.state import ClusterState
from poolwise.model import Kind, Placement, Start


@dataclass(frozen=True)
class Placed:
    """A start that fits.

    Attributes
    ----------
    pods : what is to be written
    nodes : node of each pod
    placement : what the run holds
    held : uid of the claims that were given devices
    moved : whether a pod is on another node than was decided, since the devices there do not serve it
    """

    pods: tuple[PodStart, ...]
    nodes: tuple[str, ...]
    placement: Placement
    held: tuple[str, ...]
    moved: bool = False


@dataclass(frozen=True)
class Refused:
    """A start that does not fit.

    Attributes
    ----------
    why : in words
    lasting : whether it will not fit for as long as nothing is given back, and nothing comes
    """

    why: str
    lasting: bool = False


class NoRoom(Exception):
    """A start does not fit."""


class NotNow(NoRoom):
    """A start does not fit yet; what it waits for is under way."""


@dataclass(frozen=True)
class PlacementFailures:
    """What found no room, and why. It holds for as long as nothing is given back: from what was told to what is told next.

    Attributes
    ----------
    everywhere : what a pod asks for, on any node
    served : what a pod asks for, of the devices that serve a node (`Inventory.served`)
    """

    everywhere: dict[bytes, str] = field(default_factory=dict)
    served: dict[tuple[bytes, int], str] = field(default_factory=dict)


def place(start: Start, job: PodJob, mirror: ClusterCache, state: ClusterState, vain: PlacementFailures) -> Placed | Refused:
    """Put the pods of a job where a decision says, and assume their devices; or say why that cannot be.

    Of the devices that claims may have, those that the decision names come first. What finds no room is added to `vain`, so
    that of a thousand pods that ask for the same only the first is tried on every node.
    """
    return _tried(_Placing(start, job, mirror, state, vain), _Placing.place)


def resume(found: InterruptedStart, job: PodJob, mirror: ClusterCache, state: ClusterState) -> Placed | Refused:
    """Go on with pods where another process meant them to be, and with the rest wherever there is room; or say why not."""
    nowhere = Start(job.row, (), Placement.of(()))
    return _tried(_Placing(nowhere, job, mirror, state, PlacementFailures()), lambda placing: placing.go_on(found))


def _tried(placing: _Placing, how: Callable[[_Placing], Placed]) -> Placed | Refused:
    """Put pods somewhere; what was assumed is taken back where that fails."""
    try:
        return how(placing)
    except NoRoom as problem:
        undo(placing.held, placing.mirror)
        return Refused(str(problem), not isinstance(problem, NotNow))
    except InputError as problem:
        undo(placing.held, placing.mirror)
        return Refused(problem.message, True)


def alike(jobs: Iterable[PodJob], mirror: ClusterCache, vain: PlacementFailures) -> dict[int, str]:
    """Row -> why, of the jobs of one pod that ask for what was found nowhere."""
    found = ((job.row, vain.everywhere.get(words_asked(job, 0, mirror))) for job in jobs if len(job.pods) == 1)
    return {row: why for row, why in found if why is not None}


def words_asked(job: PodJob, task: int, mirror: ClusterCache) -> bytes:
    """What a pod and its claims ask for, in words; b"" without claims, and where devices are not all that one may lack."""
    specs = []
    for key in job.claims[task]:
        claim = mirror.claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp or claim.metadata.uid in mirror.usage.claims:
            return b""
        specs.append(claim.spec)
    return msgspec.json.encode((job.demand.amounts, job.demand.where, specs)) if specs else b""


def undo(held: Sequence[str], mirror: ClusterCache) -> None:
    """Take back what was assumed of claims."""
    for uid in held:
        mirror.undo_assume(uid)


class _Placing:
    def __init__(self, start: Start, job: PodJob, mirror: ClusterCache, state: ClusterState, vain: PlacementFailures) -> None:
        self.start, self.job, self.mirror, self.state, self.vain = start, job, mirror, state, vain
        self.devices = Devices(mirror.inventory, mirror.usage, mirror.classes, state.avoided)
        self.held: list[str] = []
        self.taken: dict[str, dict[str, int]] = {}  # node -> what pods of this start take
        self.moved = False

    def place(self) -> Placed:
        rows: list[tuple[int, int, int, int]] = []
        pods: list[PodStart] = []
        nodes = self._nodes()
        whole = self.state.shape.view == "whole"
        for task, (key, name) in enumerate(zip(self.job.pods, nodes, strict=True)):
            pod = self.mirror.pending_pod(key)
            if pod is None:
                raise NotNow(f"pod {key} is gone")
            start, parts = self._start(task, pod, name)
            rows += self.state.rows_of(0 if whole else task, start.node, self.job.demand.amounts, parts)
            pods.append(start)
        return Placed(tuple(pods), tuple(start.node for start in pods), Placement.of(rows), tuple(self.held), self.moved)

    def go_on(self, found: InterruptedStart) -> Placed:
        if not any(found.starts) and not all(consumer for _, consumer in found.reserved):
            raise NoRoom("nothing says where its pods were to be")
        whole = self.state.shape.view == "whole"
        starts: dict[int, PodStart] = {}
        parts: dict[int, list[Part]] = {}
        for task, start in enumerate(found.starts):
            if start is not None:
                if start.node not in self.state.shape.node_owner or (whole and not self.is_free(start.node)):
                    raise NoRoom(f"node {start.node} is not free")
                self.fits(self.mirror.nodes[start.node])
                claims = (self.mirror.usage.claims.get(write.claim.metadata.uid, ()) for write in start.claims)
                starts[task], parts[task] = start, [part for held in claims for part in held]
        for task, key in enumerate(self.job.pods):
            pod = self.mirror.pending_pod(key)
            if task not in starts and pod is not None:
                taken = {start.node for start in starts.values()} if whole else set()
                asked = words_asked(self.job, task, self.mirror)
                starts[task], parts[task] = self._start_anywhere(task, pod, taken, asked)
        rows = [
            row
            for task, start in sorted(starts.items())
            for row in self.state.rows_of(0 if whole else task, start.node, self.job.demand.amounts, parts[task])
        ]
        pods = tuple(start for _, start in sorted(starts.items()))
        return Placed(pods, tuple(start.node for start in pods), Placement.of(rows), tuple(self.held))

    def _start(self, task: int, pod: Pod, name: str) -> tuple[PodStart, list[Part]]:
        """Put a pod on the node that was chosen for it.

        Where the devices of its claims do not serve that one, the first other node will do: policies know devices by type.
        """
        asked = words_asked(self.job, task, self.mirror)
        if why := self.vain.everywhere.get(asked):
            raise NoRoom(why)
        alone = not self.taken and not self.held
        try:
            return self._start_on(task, pod, name, asked)
        except NotNow:
            raise
        except NoRoom as problem:
            if self.state.shape.view == "whole" or not self.job.claims[task]:
                raise
            here = problem
        self.moved = True
        try:
            return self._start_anywhere(task, pod, {name}, asked)
        except NotNow:
            raise
        except NoRoom:
            why = f"{here}, and no other node will do"
            if alone and asked:  # the pods of its own group have not taken what it lacks
                self.vain.everywhere[asked] = why
            raise NoRoom(why) from None

    def _start_anywhere(self, task: int, pod: Pod, besides: Set[str], asked: bytes) -> tuple[PodStart, list[Part]]:
        """Put a pod on the first node where there is room for it."""
        why: NoRoom | None = None
        for name in sorted(self.state.shape.node_owner.keys() - besides):
            if self.state.shape.view == "shared" or self.is_free(name):
                try:
                    return self._start_on(task, pod, name, asked)
                except NotNow:
                    raise
                except NoRoom as problem:
                    why = problem
        raise why if why is not None else NoRoom("no other node is free")

    def _start_on(self, task: int, pod: Pod, name: str, asked: bytes) -> tuple[PodStart, list[Part]]:
        node = self.mirror.nodes.get(name)
        if node is None:
            raise NotNow(f"node {name} is gone")
        served = self.mirror.inventory.served(node) if asked else None
        if served is not None and (why := self.vain.served.get((asked, served))):
            raise NoRoom(why)
        self.fits(node)
        try:
            parts, writes, nominate = self._claims(task, pod, node)
        except NoRoom as problem:
            for resource, amount in self.job.demand.amounts.items():
                self.taken[name][resource] -= amount
            if served is not None and not self.held:
                self.vain.served[asked, served] = str(problem)
            raise
        return PodStart(pod, name, tuple(writes), nominate), parts

    def _nodes(self) -> tuple[str, ...]:
        """The node of each pod."""
        shape, rows = self.state.shape, self.start.placement.rows()
        if shape.view == "shared":
            chosen = {task: shape.nodes[owner][0] for task, owner, _, _ in rows if owner in shape.nodes}
            if len(chosen) < len(self.job.pods):
                raise NoRoom("the placement does not name a node for each pod")
            return tuple(chosen[task] for task in range(len(self.job.pods)))
        found: list[str] = []
        for _, owner, resource, count in rows:
            if owner in shape.nodes and resource == shape.column("nodes"):
                free = [name for name in shape.nodes[owner] if self.is_free(name)]
                if len(free) < count:
                    raise NoRoom(f"{count} free nodes of {shape.machine.owners[owner]} are wanted, {len(free)} are there")
                found += free[:count]
        if len(found) != len(self.job.pods):
            raise NoRoom("the placement does not name a node for each pod")
        return tuple(found)

    def is_free(self, name: str) -> bool:
        """Whether nobody but daemons uses a node."""
        used = any(key in self.state.ours for key in self.mirror.on_node.get(name, ())) or name in self.state.busy
        free = not used and name not in self.state.shape.barred and not self.state.taken_by_others(name)
        return free and self.job.demand.where.allows(self.mirror.nodes[name])

    def fits(self, node: Node) -> None:
        """Check a node against the pods that are there and on their way."""
        name = node.metadata.name
        if not self.job.demand.where.allows(node):
            raise NoRoom(f"node {name} is not one that the pod may run on")
        if name not in self.taken:
            self.taken[name] = self.state.taken_on(name)
        used, has = self.taken[name], amounts_offered(node)
        for resource, amount in self.job.demand.amounts.items():
            left = has.get(resource, 0) - used.get(resource, 0)
            if amount > left:
                has_left, wanted = (self.state.shape.machine.amount_text(resource, number) for number in (left, amount))
                raise NoRoom(f"node {name} has {has_left} {resource} left, {wanted} are needed")
        for resource, amount in self.job.demand.amounts.items():
            used[resource] = used.get(resource, 0) + amount

    def _claims(self, task: int, pod: Pod, node: Node) -> tuple[list[Part], list[ClaimWrite], bool]:
        """Give a pod's claims their devices; returns what it takes, what is to be written, and whether to name the node."""
        claims = []
        for key in self.job.claims[task]:
            claim = self.mirror.claims.get(key)
            if claim is None or claim.metadata.deletion_timestamp:
                raise NotNow(f"claim {key} is gone")
            claims.append(claim)
        missing = [c for c in claims if c.metadata.uid not in self.mirror.usage.claims and c.spec.devices.requests]
        for claim in claims:
            allocation = claim.status.allocation
            if claim in missing:
                continue
            if allocation is not None and not selects(allocation.node_selector, node):
                raise NoRoom(f"the devices of claim {claim.metadata.key} cannot be used on node {node.metadata.name}")
            if allocation is None and claim.metadata.uid not in self.held and claim.spec.devices.requests:
                raise NotNow(f"claim {claim.metadata.key} is being given devices")
        found = allocate(missing, node, self.devices, self._preferred(task))
        if isinstance(found, str):
            raise NoRoom(found)
        writes: dict[str, ClaimWrite] = {c.metadata.uid: ClaimWrite(c, None) for c in claims if c not in missing}
        parts: list[Part] = []
        for claim, chosen in zip(missing, found, strict=True):
            parts += self._hold(claim, chosen)
            writes[claim.metadata.uid] = ClaimWrite(claim, allocation_of(claim, chosen, node, self.devices))
        pinned = any(w.allocation is not None and w.allocation.node_selector is not None for w in writes.values())
        return parts, [writes[c.metadata.uid] for c in claims], bool(claims) and not pinned

    def _hold(self, claim: ResourceClaim, chosen: Sequence[ChosenDevice]) -> list[Part]:
        parts = [one.part for one in chosen]
        self.mirror.assume(claim, parts)
        self.held.append(claim.metadata.uid)
        return parts

    def _preferred(self, task: int) -> list[DeviceId]:
        machine, devices = self.state.shape.machine, self.state.shape.devices
        kinds = (Kind.DEVICE, Kind.POOL)
        whole = self.state.shape.view == "whole"
        return [
            devices[owner]
            for row, owner, _, _ in self.start.placement.rows()
            if (whole or row == task) and owner in devices and machine.kind[owner] in kinds
        ]
