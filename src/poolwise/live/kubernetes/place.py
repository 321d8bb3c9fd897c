"""From a decision to start a job to pods on nodes with devices: what is checked, and what is held from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolwise.errors import InputError
from poolwise.live.kubernetes.allocate import Chosen, Devices, allocate, allocation_of
from poolwise.live.kubernetes.bind import ClaimWrite, PodStart
from poolwise.live.kubernetes.devices import DeviceId, Part
from poolwise.live.kubernetes.mirror import Mirror
from poolwise.live.kubernetes.nodes import selects
from poolwise.live.kubernetes.objects import Node, Pod, ResourceClaim
from poolwise.live.kubernetes.shape import amounts_offered
from poolwise.live.kubernetes.state import State
from poolwise.live.kubernetes.units import PodJob
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
    """

    pods: tuple[PodStart, ...]
    nodes: tuple[str, ...]
    placement: Placement
    held: tuple[str, ...]


class NoRoom(Exception):
    """A start does not fit."""


def place(start: Start, job: PodJob, mirror: Mirror, state: State) -> Placed | str:
    """Put the pods of a job where a decision says, and assume their devices; or say why that cannot be.

    Of the devices that claims may have, those that the decision names come first.
    """
    placing = _Placing(start, job, mirror, state)
    try:
        return placing.place()
    except NoRoom as why:
        undo(placing.held, mirror)
        return str(why)
    except InputError as problem:
        undo(placing.held, mirror)
        return problem.message


def undo(held: Sequence[str], mirror: Mirror) -> None:
    """Take back what was assumed of claims."""
    for uid in held:
        mirror.forget(uid)


class _Placing:
    def __init__(self, start: Start, job: PodJob, mirror: Mirror, state: State) -> None:
        self.start, self.job, self.mirror, self.state = start, job, mirror, state
        self.devices = Devices(mirror.inventory, mirror.usage, mirror.classes, state.avoided)
        self.held: list[str] = []
        self.taken: dict[str, dict[str, int]] = {}  # node -> what pods of this start take

    def place(self) -> Placed:
        rows: list[tuple[int, int, int, int]] = []
        pods: list[PodStart] = []
        nodes = self._nodes()
        for task, (key, name) in enumerate(zip(self.job.pods, nodes, strict=True)):
            pod, node = self.mirror.waits(key), self.mirror.nodes.get(name)
            if pod is None or node is None:
                raise NoRoom(f"pod {key} or node {name} is gone")
            self._fits(node)
            parts, writes, nominate = self._claims(task, pod, node)
            whole = self.state.shape.view == "whole"
            rows += self.state.rows_of(0 if whole else task, name, self.job.demand.amounts, parts)
            pods.append(PodStart(pod, name, tuple(writes), nominate))
        return Placed(tuple(pods), nodes, Placement.of(rows), tuple(self.held))

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
                free = [name for name in shape.nodes[owner] if self._is_free(name)]
                if len(free) < count:
                    raise NoRoom(f"{count} free nodes of {shape.machine.owners[owner]} are wanted, {len(free)} are there")
                found += free[:count]
        if len(found) != len(self.job.pods):
            raise NoRoom("the placement does not name a node for each pod")
        return tuple(found)

    def _is_free(self, name: str) -> bool:
        used = any(key in self.state.ours for key in self.mirror.on_node.get(name, ())) or name in self.state.busy
        return not used and not self.state.taken_by_others(name) and self.job.demand.where.allows(self.mirror.nodes[name])

    def _fits(self, node: Node) -> None:
        """Check a node against the pods that are there and on their way."""
        name = node.metadata.name
        if not self.job.demand.where.allows(node):
            raise NoRoom(f"node {name} is not one that the pod may run on")
        used = self.taken.setdefault(name, self.state.taken_on(name))
        has = amounts_offered(node)
        for resource, amount in self.job.demand.amounts.items():
            used[resource] = used.get(resource, 0) + amount
            if used[resource] > has.get(resource, 0):
                left = has.get(resource, 0) - used[resource] + amount
                raise NoRoom(f"node {name} has {left} {resource} left, {amount} are needed")

    def _claims(self, task: int, pod: Pod, node: Node) -> tuple[list[Part], list[ClaimWrite], bool]:
        """Give a pod's claims their devices; returns what it takes, what is to be written, and whether to name the node."""
        claims = []
        for key in self.job.claims[task]:
            claim = self.mirror.claims.get(key)
            if claim is None or claim.metadata.deletion_timestamp:
                raise NoRoom(f"claim {key} is gone")
            claims.append(claim)
        missing = [c for c in claims if c.metadata.uid not in self.mirror.usage.claims and c.spec.devices.requests]
        for claim in claims:
            allocation = claim.status.allocation
            if claim in missing:
                continue
            if allocation is not None and not selects(allocation.node_selector, node):
                raise NoRoom(f"the devices of claim {claim.metadata.key} cannot be used on node {node.metadata.name}")
            if allocation is None and claim.metadata.uid not in self.held and claim.spec.devices.requests:
                raise NoRoom(f"claim {claim.metadata.key} is being given devices")
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

    def _hold(self, claim: ResourceClaim, chosen: Sequence[Chosen]) -> list[Part]:
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
