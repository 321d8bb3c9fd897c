"""Scheduler state of a cluster: machine, job table and runs, rebuilt when the machine changes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.devices import DeviceShare, InventoryDevice
from poolwise.live.kubernetes.job_columns import JobColumns
from poolwise.live.kubernetes.machine import (
    BANDWIDTH,
    DEVICES,
    MEMORY,
    NODES,
    STORAGE,
    ClusterLayout,
    ClusterParts,
    MachineMapping,
    NodeView,
    allocatable_amounts,
    is_nvme,
    is_pool,
    is_usable,
    map_cluster,
    space_name,
    view_for,
)
from poolwise.live.kubernetes.node_constraints import NodeConstraints, untolerated_taint
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.objects.node import Node, Toleration
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.quantity import requested_amount
from poolwise.live.kubernetes.topology_spread import KnownDomains
from poolwise.live.logs import log_event
from poolwise.model import Placement, Run
from poolwise.model.run_table import RunTable


class ClusterState:
    """The cluster as schedulers see it."""

    def __init__(self, cache: ClusterCache, scheduler: Scheduler, layout: ClusterLayout, epoch: int) -> None:
        self.cache, self.scheduler, self.layout = cache, scheduler, layout
        self.view: NodeView | None = layout.allocation
        self.classes: dict[str, str] = {}  # class -> type of its devices
        self._columns = JobColumns(cache, scheduler, epoch)
        self.mapping = MachineMapping.empty()
        self.table = self._columns.table([])
        self.capacity = self.mapping.machine.capacity.copy()  # (n_owner, n_resource) that others do not use
        self.held = np.zeros_like(self.capacity)  # by runs
        self.runs = RunTable(self.capacity.size)  # runs that are active or being bound
        self.run_pods: dict[str, PodJob] = {}  # uid of a pod with a run -> its job; a successor may have the key of a pod
        self.run_pods_on: dict[str, dict[str, str]] = {}  # node -> uid of each pod with a run there -> its key
        self.related: dict[str, str] = {}  # key -> node, for pods with a run and affinity or anti-affinity to other pods
        self.avoided: dict[DeviceId, int] = {}  # device -> end of its exclusion after a failed attachment (monotonic ns)
        self.avoided_volumes: dict[tuple[str, str], int] = {}  # (claim uid, node) -> end of its exclusion (monotonic ns)
        self.traffic: FloatArray | None = None  # (n_owner,) measured link traffic (MB/s); None without measurements
        self._tolerated = frozenset[Toleration]()
        self._allocatable: dict[str, tuple[Node, Mapping[str, int]]] = {}
        self.spread_domains: KnownDomains = {}
        self._allowed: dict[NodeConstraints, list[str]] = {}  # names of the nodes of the machine that constraints allow, sorted

    @property
    def free(self) -> IntArray:
        """(n_owner, n_resource) free amounts; negative if runs hold more than the current capacity."""
        free: IntArray = self.capacity - self.held
        return free

    # Machine

    def rebuild_machine(self, jobs: Sequence[PodJob]) -> None:
        """Rebuild machine, table and runs for the current jobs; known jobs keep their rows, and new jobs get new rows."""
        before, constraint_sets = self.mapping, {job.demand.constraints for job in jobs}
        self.mapping = self._build_mapping(constraint_sets)
        self._allowed.clear()
        self.spread_domains.clear()
        self._columns.rebuild(self.mapping, self.classes, jobs)
        with_rows = [job for job in jobs if job.row >= 0]
        self.table = self.table.replaced([job.row for job in with_rows], self._columns.table(with_rows))
        self._append([job for job in jobs if job.row < 0])
        self._transfer_runs(before)

    def _build_mapping(self, constraint_sets: Iterable[NodeConstraints]) -> MachineMapping:
        cache = self.cache
        nodes = [node for _, node in sorted(cache.nodes.items()) if is_usable(node)]
        types, self.classes = device_types(cache)
        self._tolerated = tolerations(cache.claims.values())
        ordered = sorted(
            constraint_sets, key=lambda constraints: (constraints.labels, constraints.selector, constraints.tolerations)
        )
        parts = ClusterParts(nodes, cache.inventory, types, ordered, cache.links)
        if self.view is None and nodes:
            self.view = view_for(self.scheduler, parts, self.layout)
        mapping = map_cluster(parts, self.layout, self.view or "shared")
        for name, why in sorted(mapping.excluded.items()):
            if self.mapping.excluded.get(name) != why:
                log_event("resource_excluded", logging.WARNING, name=name, why=why)
        return mapping

    def _transfer_runs(self, before: MachineMapping) -> None:
        """Transfer runs and capacities to the new machine, matching owners by name."""
        machine, old = self.mapping.machine, before.machine
        owners = {k: new for k, name in enumerate(old.owners) if (new := machine._numbers.get(name)) is not None}
        columns = {k: machine.resources.index(name) for k, name in enumerate(old.resources) if name in machine.resources}
        runs, self.runs = list(self.runs), RunTable(machine.capacity.size)
        self.held = np.zeros_like(machine.capacity)
        self.capacity = machine.capacity.copy()
        for run in runs:
            transferred = [
                (task, owners[owner], columns[resource], amount)
                for task, owner, resource, amount in run.placement.rows()
                if owner in owners and resource in columns
            ]
            self.add(replace(run, placement=Placement.of(transferred)))
        for name in self.mapping.node_owner:
            self.refresh_node(name)
        for id, owner in self.mapping.device_owner.items():
            if (device := self.cache.inventory.devices.get(id)) is not None:
                self._refresh_one(device, owner)
        self.refresh_links()

    # Jobs

    def add_jobs(self, jobs: Sequence[PodJob]) -> bool:
        """Append jobs to the table, or return False, without a change, if the machine must be rebuilt for them.

        A rebuild is necessary if the table lacks a column or node set, or if the jobs tolerate a device taint that no earlier
        job did.
        """
        if not self._columns.supports(jobs) or not self._tolerations(jobs) <= self._tolerated:
            return False
        self._append(jobs)
        return True

    def _append(self, jobs: Sequence[PodJob]) -> None:
        for job, row in zip(jobs, self.table.append(self._columns.table(jobs)), strict=True):
            job.row = row

    def models(self, resource: str) -> bool:
        """Return whether the scheduler models a resource that jobs request."""
        return self._columns.includes(resource)

    def _tolerations(self, jobs: Iterable[PodJob]) -> frozenset[Toleration]:
        keys = (key for job in jobs for keys in job.claims for key in keys)
        return tolerations(claim for key in keys if (claim := self.cache.claims.get(key)) is not None)

    # Amounts

    def refresh_links(self) -> None:
        """Read the link traffic from the cache."""
        self.traffic = None
        if self.cache.links and self.mapping.links:
            self.traffic = np.zeros(self.mapping.machine.n_owner)
            for node, traffic in self.cache.links.items():
                if node in self.mapping.links:
                    self.traffic[self.mapping.links[node]] = traffic.used
            self.traffic.setflags(write=False)

    def refresh_node(self, node: str) -> bool:
        """Recompute the capacity of a node that others do not use; return whether it changed."""
        owner = self.mapping.node_owner.get(node)
        if owner is None:
            return False
        row = self.mapping.machine.capacity[owner].copy()
        if self.mapping.view == "whole":
            taken = sum(self._is_unavailable(name) for name in self.mapping.nodes[owner])
            row[self.mapping.column(NODES)] -= taken
        else:
            for key, amounts in self.cache.on_node.get(node, {}).items():
                # a run holds the amounts of its pods when it began; resizing a pod changes what is left for others
                job = self.run_pods.get(self.cache.pods[key].metadata.uid)
                held = job.held.get(key, amounts) if job is not None else {}
                for name in amounts.keys() | held.keys():
                    if (column := self.mapping.column(name)) >= 0:
                        row[column] -= amounts.get(name, 0) - held.get(name, 0)
        changed = not np.array_equal(self.capacity[owner], row)
        self.capacity[owner] = row
        return changed

    def _is_unavailable(self, node: str) -> bool:
        """Return whether a whole node is neither held by a run nor available to one."""
        if node in self.mapping.unschedulable:
            return node not in self.run_pods_on and not any(map(self.has_run, self.cache.on_node.get(node, ())))
        return self.used_by_others(node)

    def has_run(self, key: str) -> bool:
        """Return whether the pod under a key has a run; a run of an earlier pod of that key does not count."""
        pod = self.cache.pods.get(key)
        return pod is not None and pod.metadata.uid in self.run_pods

    def used_by_others(self, node: str) -> bool:
        """Return whether pods without a run request resources of a node; daemon pods do not count."""
        for key, amounts in self.cache.on_node.get(node, {}).items():
            daemon = any(owner.kind == "DaemonSet" for owner in self.cache.pods[key].metadata.owner_references)
            if not self.has_run(key) and not daemon and len(amounts) > 1:
                return True
        return False

    def refresh_device(self, id: DeviceId) -> list[int]:
        """Recompute the capacity of a device and of those that share its counters; return the owners that changed."""
        device = self.cache.inventory.devices.get(id)
        if device is None:
            return []
        peers = ((peer, self.mapping.device_owner.get(peer.id)) for peer in self.cache.inventory.counter_peers(device))
        return [owner for peer, owner in peers if owner is not None and self._refresh_one(peer, owner)]

    def _refresh_one(self, device: InventoryDevice, owner: int) -> bool:
        """Recompute the capacity of one device; return whether it changed."""
        row = self.held[owner] + self._remaining(device, owner)
        changed = not np.array_equal(self.capacity[owner], row)
        self.capacity[owner] = row
        return changed

    def _remaining(self, device: InventoryDevice, owner: int) -> IntArray:
        """Return the free amounts of a device, (n_resource,); if it must not be used, minus the amounts that runs hold."""
        usage, none = self.cache.usage, np.zeros(self.capacity.shape[1], dtype=np.int64)
        has: IntArray = self.mapping.machine.capacity[owner].copy()
        if device.id in self.avoided or untolerated_taint(self.cache.inventory.taints(device), self._tolerated) is not None:
            owed: IntArray = -self.held[owner]
            return owed
        if not device.shared:
            in_use = usage.in_use(device.id) or not usage.counters_left(device, self.cache.inventory)
            return none if in_use else has
        if device.id in usage.whole:
            return none
        for name, amount in usage.consumed.get(device.id, {}).items():
            column = self.mapping.column(STORAGE if name in ("space", STORAGE) else name)
            if column >= 0:
                has[column] -= requested_amount(name, str(float(amount)))
        return np.maximum(has, 0)

    def used_on(self, node: str) -> dict[str, int]:
        """Return the amounts in use on a node, including pods that are being bound."""
        taken: dict[str, int] = {}
        there, coming = self.cache.on_node.get(node, {}), []
        for uid, key in self.run_pods_on.get(node, {}).items():
            pod = self.cache.pods.get(key)
            if pod is None or pod.metadata.uid != uid:
                coming.append(self.run_pods[uid].held[key])  # its run returns its resources once all pods have ended
            elif key not in there:
                coming.append(self.cache.amounts(pod))  # it may have been resized
        for amounts in (*there.values(), *coming):
            for name, amount in amounts.items():
                taken[name] = taken.get(name, 0) + amount
        return taken

    def allocatable(self, node: Node) -> Mapping[str, int]:
        """Return a node's allocatable amounts, by the resource names of schedulers."""
        cached = self._allocatable.get(node.metadata.name)
        if cached is None or cached[0] is not node:
            cached = self._allocatable[node.metadata.name] = node, allocatable_amounts(node)
        return cached[1]

    def allowed_nodes(self, constraints: NodeConstraints) -> Sequence[str]:
        """Return the names of the nodes of the machine that constraints allow, sorted; cached until the machine changes."""
        if constraints not in self._allowed:
            nodes = ((name, self.cache.nodes.get(name)) for name in sorted(self.mapping.node_owner))
            self._allowed[constraints] = [name for name, node in nodes if node is not None and constraints.allows(node)]
        return self._allowed[constraints]

    def pods_on(self, node: str) -> Iterator[Pod]:
        """Yield the pods on a node that have not terminated, and those that are being bound to it."""
        there = self.cache.on_node.get(node, {})
        yield from (self.cache.pods[key] for key in there)
        for uid, key in self.run_pods_on.get(node, {}).items():
            pod = self.cache.pods.get(key) if key not in there else None
            if pod is not None and pod.metadata.uid == uid and not pod.terminated:
                yield pod

    # Runs

    def rows_of(
        self, task: int, node: str, amounts: Mapping[str, int], shares: Iterable[DeviceShare]
    ) -> list[tuple[int, int, int, int]]:
        """Return the amounts that a pod takes of a node and of devices, as rows of a placement."""
        mapping = self.mapping
        if mapping.view == "whole":
            rows = [(task, mapping.node_owner[node], mapping.column(NODES), 1)]
        else:
            columns = [(mapping.column(name), amount) for name, amount in amounts.items()]
            rows = [
                (task, mapping.node_owner[node], column, amount) for column, amount in sorted(columns) if column >= 0 and amount
            ]
            rows = rows or [(task, mapping.node_owner[node], 0, 0)]
        for share in shares:
            owner = mapping.device_owner.get(share.id)
            if owner is not None:
                rows += [(task, owner, column, amount) for column, amount in self._share_amounts(share)]
        return rows

    def _share_amounts(self, share: DeviceShare) -> list[tuple[int, int]]:
        device = self.cache.inventory.devices.get(share.id)
        if share.amounts is None:
            return [(self.mapping.column(DEVICES), 1)]
        if device is None:
            return []
        amounts = dict(share.amounts)
        if is_nvme(device):
            space = space_name(device.device.capacity)
            amounts_by_name = [
                (BANDWIDTH, requested_amount(BANDWIDTH, str(float(amounts[BANDWIDTH])))),
                (STORAGE, requested_amount(space, str(float(amounts[space])))),
            ]
        elif is_pool(device):
            amounts_by_name = [(MEMORY, requested_amount(MEMORY, str(float(amounts[MEMORY]))))]
        else:
            amounts_by_name = []
        return [(self.mapping.column(name), amount) for name, amount in amounts_by_name]

    def add(self, run: Run) -> None:
        """Add a run; it holds its placement."""
        run.placement.give_to(self.held)
        cells = run.placement.owner * len(self.mapping.machine.resources) + run.placement.resource
        self.runs.add(run, cells, ())

    def remove(self, number: int) -> Run:
        """Remove a run and release its placement."""
        run = self.runs.remove(number)
        run.placement.take_from(self.held)
        return run


def tolerations(claims: Iterable[ResourceClaim]) -> frozenset[Toleration]:
    """Return the device taints that claims tolerate."""
    return frozenset(toleration for claim in claims for wanted in claim.wanted for toleration in wanted.tolerations)


def device_types(cache: ClusterCache) -> tuple[dict[DeviceId, str], dict[str, str]]:
    """Return device -> type, for all devices of requested classes, and class -> type.

    Classes that share devices, or are alternatives in a request, are one type: the class with most devices.
    """
    together = [
        [wanted.device_class_name for wanted in request.alternatives]
        for claim in cache.claims.values()
        for request in claim.spec.devices.requests
    ]
    requested = sorted({name for names in together for name in names if name in cache.classes})
    members = {
        name: {
            id for id, device in cache.inventory.devices.items() if device.described.matches(cache.classes[name].spec.selectors)
        }
        for name in requested
    }
    by_device: dict[DeviceId, list[str]] = {}
    for name in requested:
        for id in members[name]:
            by_device.setdefault(id, []).append(name)
    group = {name: {name} for name in requested}
    for names in {frozenset(names) for names in (*by_device.values(), *together)}:
        union = {other for name in names & members.keys() for other in group[name]}
        group |= dict.fromkeys(union, union)
    classes = {name: min(group[name], key=lambda k: (-len(members[k]), k)) for name in requested}
    return {id: classes[name] for name in requested for id in members[name]}, classes
