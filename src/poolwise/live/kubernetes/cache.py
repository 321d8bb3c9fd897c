"""Informer cache: objects by kind, the pods on each node, and device usage, including assumed allocations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.demand import PodDemand, demand_of
from poolwise.live.kubernetes.devices import DeviceShare, DeviceUsage, Inventory
from poolwise.live.kubernetes.extended import device_class_of
from poolwise.live.kubernetes.informer import Synced, WatchEvent
from poolwise.live.kubernetes.link_traffic import LinkTraffic, measured_links, publishes_links
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceClass, DeviceId, DeviceTaintRule, ResourceSlice
from poolwise.live.kubernetes.objects.meta import Namespace
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.pod_group import PodGroup
from poolwise.live.kubernetes.objects.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from poolwise.live.kubernetes.pod_rules import PodRules

KINDS: tuple[type, ...] = (
    Namespace,
    Node,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
    ResourceClaim,
    StorageClass,
    PersistentVolume,
    PersistentVolumeClaim,
    PodGroup,
    Pod,
)
"""Kinds of objects that scheduling depends on. Clusters may not serve taint rules and pod groups."""


@dataclass
class CacheChanges:
    """Changes since the last `pop_changes`."""

    pods: set[str] = field(default_factory=set)  # keys of added, changed or deleted pods
    nodes: set[str] = field(default_factory=set)  # names of nodes whose pods changed
    devices: set[DeviceId] = field(default_factory=set)  # devices that were allocated or deallocated
    claims: set[str] = field(default_factory=set)  # keys of added, changed or deleted claims
    machine: bool = False  # whether nodes, devices or device classes changed
    links: bool = False  # whether measured link traffic changed
    namespaces: bool = False  # whether namespaces or their labels changed
    volumes: bool = False  # whether volumes, volume claims or storage classes changed
    taints: bool = False  # whether taints of devices changed


class ClusterCache:
    """The cluster as its watches report it, plus decisions that the watches have not confirmed yet."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)  # schedulerNames of managed pods
        self.nodes: dict[str, Node] = {}  # nodes and classes by name
        self.classes: dict[str, DeviceClass] = {}
        self.groups: dict[str, PodGroup] = {}
        self.pods: dict[str, Pod] = {}  # managed pods, and all pods that have a node
        self.claims: dict[str, ResourceClaim] = {}  # groups, pods and claims by namespace/name
        self.rules: dict[str, DeviceTaintRule] = {}
        self.inventory, self.usage = Inventory(self.classes), DeviceUsage()
        self.assumed: set[str] = set()  # uid of claims with an allocation that is decided but not observed yet
        self.links: dict[str, LinkTraffic] = {}  # node -> measured traffic of its busiest link
        self.on_node: dict[str, dict[str, dict[str, int]]] = {}  # node -> pod that has not terminated -> amounts
        self.namespaces: dict[str, Namespace] = {}  # by name
        self.volumes: dict[str, PersistentVolume] = {}  # volumes and storage classes by name
        self.storage_classes: dict[str, StorageClass] = {}
        self.volume_claims: dict[str, PersistentVolumeClaim] = {}  # by namespace/name
        self.pod_rules: dict[str, PodRules] = {}  # key -> placement rules, for the pods that have any
        self.related: dict[str, str] = {}  # key -> node, for pods on nodes with affinity or anti-affinity to other pods
        self.soft_tainted: set[str] = set()  # names of nodes with a `PreferNoSchedule` taint
        self.changes = CacheChanges()
        self.unsynced: set[type] = {*KINDS}  # kinds whose list is incomplete
        self._slices: dict[str, ResourceSlice] = {}
        self._claim_keys: dict[str, str] = {}  # by uid
        self._demands: dict[str, tuple[Pod, PodDemand | InputError]] = {}  # key -> pod, demand of its containers
        self._backing_class: dict[str, str | None] = {}  # extended resource -> device class that backs it
        self._stores: dict[type, dict[str, Any]] = {  # kind -> its objects
            Namespace: self.namespaces,
            Node: self.nodes,
            DeviceClass: self.classes,
            PodGroup: self.groups,
            DeviceTaintRule: self.rules,
            Pod: self.pods,
            ResourceClaim: self.claims,
            ResourceSlice: self._slices,
            StorageClass: self.storage_classes,
            PersistentVolume: self.volumes,
            PersistentVolumeClaim: self.volume_claims,
        }

    def pop_changes(self) -> CacheChanges:
        """Return the changes and reset them."""
        changes, self.changes = self.changes, CacheChanges()
        return changes

    def apply_event(self, event: WatchEvent[Any] | Synced) -> None:
        """Apply a watch event, or the completion of a list.

        A new list may contain an object that has taken the name of another whose deletion the watch did not report.
        """
        if isinstance(event, Synced):
            self._forget(event)
            return
        before = self._stores[type(event.item)].get(event.item.metadata.key)
        has_state = isinstance(event.item, Pod | ResourceClaim)  # by uid; other kinds are only read
        if has_state and before is not None and before.metadata.uid != event.item.metadata.uid:
            if event.deleted:
                return  # the object has a successor already
            self.apply_event(WatchEvent(before, deleted=True))
        match event.item:
            case Pod() as pod:
                self._pod(pod, event.deleted)
            case ResourceClaim() as claim:
                self._claim(claim, event.deleted)
            case Node() as node:
                self._node(node, event.deleted)
            case Namespace() as namespace:
                self._store(self.namespaces, namespace, event.deleted)
                self.changes.namespaces = True
            case StorageClass() | PersistentVolume() | PersistentVolumeClaim() as item:
                self._store(self._stores[type(item)], item, event.deleted)
                self.changes.volumes = True
            case ResourceSlice() as slice:
                self._slice(slice, event.deleted)
            case DeviceClass() as kind:
                self._store(self.classes, kind, event.deleted)
                self._backing_class.clear()
                self.changes.machine = True
                self._note_taints(self.inventory.refresh_taints())
            case DeviceTaintRule() as rule:
                self._store(self.rules, rule, event.deleted)
                self._note_taints(self.inventory.apply_rule(rule, event.deleted))
            case PodGroup() as group:
                self._store(self.groups, group, event.deleted)
                self.changes.pods |= {key for key, pod in self.pods.items() if pod.spec.scheduling_group is not None}

    def demand(self, pod: Pod) -> PodDemand:
        """Return a pod's demand on its node; raise InputError for an invalid quantity or annotation."""
        demand, extended_resources = self._container_demand(pod), self.extended_resources(pod)
        own_amounts = {name: amount for name, amount in demand.amounts.items() if name not in extended_resources}
        return replace(demand, amounts=own_amounts) if extended_resources else demand

    def amounts(self, pod: Pod) -> dict[str, int]:
        """Return the amounts that a pod takes of its node; with an invalid quantity, it only counts as a pod."""
        try:
            return dict(self.demand(pod).amounts)
        except InputError:
            return {"pods": 1}

    def extended_resources(self, pod: Pod) -> dict[str, str]:
        """Return the extended resources of a pod that devices back, with their class; nodes offer the others themselves."""
        named = {name: self._device_class_of(name) for name in self._container_demand(pod).amounts if "/" in name}
        return {name: kind for name, kind in named.items() if kind is not None}

    def _device_class_of(self, resource: str) -> str | None:
        if resource not in self._backing_class:
            offered = any(resource in node.status.allocatable for node in self.nodes.values())
            self._backing_class[resource] = None if offered else device_class_of(resource, self.classes.values())
        return self._backing_class[resource]

    def _container_demand(self, pod: Pod) -> PodDemand:
        cached = self._demands.get(pod.metadata.key)
        if cached is None or cached[0] is not pod:  # any change of a pod may change its demand: its containers can be resized
            demand: PodDemand | InputError
            try:
                demand = demand_of(pod)
            except InputError as problem:
                demand = problem
            cached = self._demands[pod.metadata.key] = pod, demand
        if isinstance(cached[1], InputError):
            raise cached[1]
        return cached[1]

    def is_managed(self, pod: Pod) -> bool:
        """Return whether this scheduler manages a pod."""
        return pod.spec.scheduler_name in self.names

    def pending_pod(self, key: str) -> Pod | None:
        """Return a managed pod that can be scheduled, or None if there is none under this key."""
        pod = self.pods.get(key)
        if pod is None or not self.is_managed(pod) or pod.spec.node_name or pod.terminated:
            return None
        return None if pod.metadata.deletion_timestamp or pod.spec.scheduling_gates else pod

    def assume(self, claim: ResourceClaim, shares: Iterable[DeviceShare]) -> None:
        """Assume that devices are allocated to a claim before the cluster confirms it."""
        self.usage.hold(claim.metadata.uid, shares)
        self.assumed.add(claim.metadata.uid)
        self.changes.devices |= {share.id for share in self.usage.claims[claim.metadata.uid]}

    def undo_assumed(self, uids: Iterable[str]) -> None:
        """Drop the assumed allocations of claims and use the observed ones."""
        for uid in self.assumed.intersection(uids):
            self.assumed.discard(uid)
            self.changes.devices |= {share.id for share in self.usage.release(uid)}
            if (claim := self.claims.get(self._claim_keys.get(uid, ""))) is not None:
                self._claim(claim, False)

    # Watch events

    def _note_taints(self, devices: set[DeviceId]) -> None:
        self.changes.devices |= devices
        self.changes.taints |= bool(devices)

    def _store(self, store: dict[str, Any], item: Any, deleted: bool) -> None:
        if deleted:
            store.pop(item.metadata.key, None)
        else:
            store[item.metadata.key] = item

    def _forget(self, event: Synced) -> None:
        """Delete cached objects that a complete list of their kind does not contain."""
        store = self._stores[event.kind]
        for key in store.keys() - event.keys:
            self.apply_event(WatchEvent(store[key], deleted=True))
        self.unsynced.discard(event.kind)

    def _pod(self, pod: Pod, deleted: bool) -> None:
        key = pod.metadata.key
        before = self.pods.pop(key, None)
        if self.pod_rules.pop(key, None) is not None:
            self.related.pop(key, None)
        if before is not None and before.spec.node_name:
            self.on_node.get(before.spec.node_name, {}).pop(key, None)
            self.changes.nodes.add(before.spec.node_name)
        if not deleted and (pod.spec.node_name or self.is_managed(pod)):
            self.pods[key] = pod
            if (rules := PodRules.of(pod)) is not None:
                self.pod_rules[key] = rules
                if pod.spec.node_name and not pod.terminated and rules.relates_to_pods:
                    self.related[key] = pod.spec.node_name
            if pod.spec.node_name and not pod.terminated:
                self.on_node.setdefault(pod.spec.node_name, {})[key] = self.amounts(pod)
                self.changes.nodes.add(pod.spec.node_name)
        else:
            self._demands.pop(key, None)
        if self.is_managed(pod):
            self.changes.pods.add(key)

    def _claim(self, claim: ResourceClaim, deleted: bool) -> None:
        key, uid = claim.metadata.key, claim.metadata.uid
        self._store(self.claims, claim, deleted)
        if deleted:
            self._claim_keys.pop(uid, None)
        else:
            self._claim_keys[uid] = key
        self.changes.claims.add(key)
        allocation = claim.status.allocation
        if deleted or (allocation is None and uid not in self.assumed):
            self.assumed.discard(uid)
            self.changes.devices |= {share.id for share in self.usage.release(uid)}
        elif allocation is not None:
            self.assumed.discard(uid)
            shares = tuple(DeviceShare.of(result) for result in claim.allocated_devices if not result.admin_access)
            if self.usage.claims.get(uid) != shares:
                self.changes.devices |= {share.id for share in (*self.usage.claims.get(uid, ()), *shares)}
                self.usage.hold(uid, shares)

    def _node(self, node: Node, deleted: bool) -> None:
        before = self.nodes.get(node.metadata.name)
        self._store(self.nodes, node, deleted)
        self.soft_tainted.discard(node.metadata.name)
        if not deleted and any(taint.effect == "PreferNoSchedule" for taint in node.spec.taints):
            self.soft_tainted.add(node.metadata.name)
        if deleted or before is None or _scheduling_fields(before) != _scheduling_fields(node):
            self._backing_class.clear()
            self.changes.machine = True

    def _slice(self, slice: ResourceSlice, deleted: bool) -> None:
        before = self._slices.get(slice.metadata.name)
        if before is not None and not deleted and before.spec == slice.spec:
            return
        self._store(self._slices, slice, deleted)
        if publishes_links(slice):
            self._link(slice, deleted)
        else:
            self.inventory.apply_slice(slice, deleted)
            self.changes.machine = True

    def _link(self, slice: ResourceSlice, deleted: bool) -> None:
        """Update the measured traffic of a node's link; a new bandwidth changes the machine."""
        node = slice.spec.node_name or ""
        before, now = self.links.pop(node, None), measured_links([] if deleted else [slice]).get(node)
        if now is not None:
            self.links[node] = now
        self.changes.links = True
        self.changes.machine |= (before and before.bandwidth) != (now and now.bandwidth)


def _scheduling_fields(node: Node) -> tuple[Any, ...]:
    """Return the fields of a node that affect scheduling, which heartbeats do not change."""
    return node.metadata.labels, node.spec, node.status.allocatable, node.metadata.deletion_timestamp is None
