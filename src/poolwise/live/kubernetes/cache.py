"""The cluster as it was last seen: objects by kind, what runs on each node, and what is taken of devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.demand import PodDemand, demand_of
from poolwise.live.kubernetes.devices import DeviceId, DeviceUsage, Inventory, Part
from poolwise.live.kubernetes.extended import class_of
from poolwise.live.kubernetes.informer import Seen, Synced
from poolwise.live.kubernetes.link_traffic import Traffic, measured_links, tells_links
from poolwise.live.kubernetes.objects import DeviceClass, Node, Pod, PodGroup, ResourceClaim, ResourceSlice


@dataclass
class CacheChanges:
    """What has changed since it was last asked for.

    Attributes
    ----------
    pods : keys of pods that came, changed or went
    nodes : names of nodes on which something changed
    devices : devices that were taken or given back
    claims : keys of claims that came, changed or went
    shape : whether nodes, devices or classes changed
    links : whether what goes over links changed
    """

    pods: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    devices: set[DeviceId] = field(default_factory=set)
    claims: set[str] = field(default_factory=set)
    shape: bool = False
    links: bool = False


class ClusterCache:
    """What watches have told, and what was decided but is not seen yet.

    Parameters
    ----------
    name
        The scheduler whose pods are ours.

    Attributes
    ----------
    nodes, classes, groups, claims : by name, or namespace/name
    pods : those that are ours, and all that have a node
    on_node : node -> pods there that are not over -> what each takes
    usage : what claims have of devices, as seen or as assumed
    assumed : uid of claims whose allocation is decided and not seen yet
    links : node -> what goes over its busiest link, where that is measured
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.groups: dict[str, PodGroup] = {}
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.inventory, self.usage = Inventory(), DeviceUsage()
        self.assumed: set[str] = set()
        self.links: dict[str, Traffic] = {}
        self.on_node: dict[str, dict[str, dict[str, int]]] = {}
        self.changes = CacheChanges()
        self.unsynced: set[type] = {Node, DeviceClass, Pod, ResourceClaim, ResourceSlice}
        self._slices: dict[str, ResourceSlice] = {}
        self._claim_keys: dict[str, str] = {}  # by uid
        self._demands: dict[str, tuple[str, PodDemand | InputError]] = {}  # pod -> uid, what its containers ask for
        self._backed: dict[str, str | None] = {}  # extended resource -> class of devices that it stands for

    def pop_changes(self) -> CacheChanges:
        """Return what has changed, and begin anew."""
        news, self.changes = self.changes, CacheChanges()
        return news

    def apply_event(self, told: Seen[Any] | Synced) -> None:
        """Take notice of what a watch tells."""
        if isinstance(told, Synced):
            self._forget(told)
            return
        match told.thing:
            case Pod() as pod:
                self._pod(pod, told.deleted)
            case ResourceClaim() as claim:
                self._claim(claim, told.deleted)
            case Node() as node:
                self._node(node, told.deleted)
            case ResourceSlice() as slice:
                self._slice(slice, told.deleted)
            case DeviceClass() as kind:
                self._keep(self.classes, kind, told.deleted)
                self._backed.clear()
                self.changes.shape = True
            case PodGroup() as group:
                self._keep(self.groups, group, told.deleted)
                self.changes.pods |= {key for key, pod in self.pods.items() if pod.spec.scheduling_group is not None}

    def demand(self, pod: Pod) -> PodDemand:
        """What a pod asks of a node; raises InputError for what cannot be read."""
        demand, backed = self._asked(pod), self.backed(pod)
        kept = {name: amount for name, amount in demand.amounts.items() if name not in backed}
        return replace(demand, amounts=kept) if backed else demand

    def backed(self, pod: Pod) -> dict[str, str]:
        """Extended resources of a pod that stand for devices, each with their class; those that nodes have do not."""
        named = {name: self._class_of(name) for name in self._asked(pod).amounts if "/" in name}
        return {name: kind for name, kind in named.items() if kind is not None}

    def _class_of(self, resource: str) -> str | None:
        if resource not in self._backed:
            offered = any(resource in node.status.allocatable for node in self.nodes.values())
            self._backed[resource] = None if offered else class_of(resource, self.classes.values())
        return self._backed[resource]

    def _asked(self, pod: Pod) -> PodDemand:
        known = self._demands.get(pod.metadata.key)
        if known is None or known[0] != pod.metadata.uid:
            found: PodDemand | InputError
            try:
                found = demand_of(pod)
            except InputError as problem:
                found = problem
            known = self._demands[pod.metadata.key] = pod.metadata.uid, found
        if isinstance(known[1], InputError):
            raise known[1]
        return known[1]

    def is_managed(self, pod: Pod) -> bool:
        """Whether a pod is one of this scheduler's."""
        return pod.spec.scheduler_name == self.name

    def pending_pod(self, key: str) -> Pod | None:
        """A pod of ours that is to be started, None where there is none under this key."""
        pod = self.pods.get(key)
        if pod is None or not self.is_managed(pod) or pod.spec.node_name or pod.over:
            return None
        return None if pod.metadata.deletion_timestamp or pod.spec.scheduling_gates else pod

    def assume(self, claim: ResourceClaim, parts: Iterable[Part]) -> None:
        """Count devices as a claim's before the cluster says so."""
        self.usage.hold(claim.metadata.uid, parts)
        self.assumed.add(claim.metadata.uid)
        self.changes.devices |= {part.id for part in self.usage.claims[claim.metadata.uid]}

    def undo_assume(self, uid: str) -> None:
        """Take back what was assumed of a claim; what the cluster says of it counts."""
        if uid not in self.assumed:
            return
        self.assumed.discard(uid)
        self.changes.devices |= {part.id for part in self.usage.release(uid)}
        if (claim := self.claims.get(self._claim_keys.get(uid, ""))) is not None:
            self._claim(claim, False)

    # What watches tell

    def _keep(self, held: dict[str, Any], thing: Any, deleted: bool) -> None:
        if deleted:
            held.pop(thing.metadata.key, None)
        else:
            held[thing.metadata.key] = thing

    def _forget(self, told: Synced) -> None:
        """Let go of what was not among all objects of a kind."""
        held: dict[type, dict[str, Any]] = {
            Node: self.nodes,
            DeviceClass: self.classes,
            PodGroup: self.groups,
            Pod: self.pods,
            ResourceClaim: self.claims,
            ResourceSlice: self._slices,
        }
        for key in held[told.kind].keys() - told.keys:
            self.apply_event(Seen(held[told.kind][key], deleted=True))
        self.unsynced.discard(told.kind)

    def _pod(self, pod: Pod, deleted: bool) -> None:
        key = pod.metadata.key
        before = self.pods.pop(key, None)
        if before is not None and before.spec.node_name:
            self.on_node.get(before.spec.node_name, {}).pop(key, None)
            self.changes.nodes.add(before.spec.node_name)
        if not deleted and (pod.spec.node_name or self.is_managed(pod)):
            self.pods[key] = pod
            if pod.spec.node_name and not pod.over:
                self.on_node.setdefault(pod.spec.node_name, {})[key] = self._takes(pod)
                self.changes.nodes.add(pod.spec.node_name)
        else:
            self._demands.pop(key, None)
        if self.is_managed(pod):
            self.changes.pods.add(key)

    def _takes(self, pod: Pod) -> dict[str, int]:
        """What a pod takes of its node; what cannot be read was accepted by someone who could, and is not counted."""
        try:
            return dict(self.demand(pod).amounts)
        except InputError:
            return {"pods": 1}

    def _claim(self, claim: ResourceClaim, deleted: bool) -> None:
        key, uid = claim.metadata.key, claim.metadata.uid
        self._keep(self.claims, claim, deleted)
        if deleted:
            self._claim_keys.pop(uid, None)
        else:
            self._claim_keys[uid] = key
        self.changes.claims.add(key)
        allocation = claim.status.allocation
        if deleted or (allocation is None and uid not in self.assumed):
            self.assumed.discard(uid)
            self.changes.devices |= {part.id for part in self.usage.release(uid)}
        elif allocation is not None:
            self.assumed.discard(uid)
            parts = tuple(Part.of(result) for result in allocation.devices.results if not result.admin_access)
            if self.usage.claims.get(uid) != parts:
                self.changes.devices |= {part.id for part in (*self.usage.claims.get(uid, ()), *parts)}
                self.usage.hold(uid, parts)

    def _node(self, node: Node, deleted: bool) -> None:
        before = self.nodes.get(node.metadata.name)
        self._keep(self.nodes, node, deleted)
        if deleted or before is None or _shape_of(before) != _shape_of(node):
            self._backed.clear()
            self.changes.shape = True

    def _slice(self, slice: ResourceSlice, deleted: bool) -> None:
        before = self._slices.get(slice.metadata.name)
        if before is not None and not deleted and before.spec == slice.spec:
            return
        self._keep(self._slices, slice, deleted)
        if tells_links(slice):
            self._link(slice, deleted)
        else:
            self.inventory.apply_slice(slice, deleted)
            self.changes.shape = True

    def _link(self, slice: ResourceSlice, deleted: bool) -> None:
        """Take notice of what goes over the links of a node; the machine is another one where their bandwidth is."""
        node = slice.spec.node_name or ""
        before, now = self.links.pop(node, None), measured_links([] if deleted else [slice]).get(node)
        if now is not None:
            self.links[node] = now
        self.changes.links = True
        self.changes.shape |= (before and before.bandwidth) != (now and now.bandwidth)


def _shape_of(node: Node) -> tuple[Any, ...]:
    """What of a node matters; its heartbeats do not."""
    return node.metadata.labels, node.spec, node.status.allocatable, node.metadata.deletion_timestamp is None
