"""Machine model of a cluster: nodes that pods share, or whole nodes of racks with memory pools."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.fields import Bandwidth, Section
from poolwise.files.validation import validate
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.demand import NAMES
from poolwise.live.kubernetes.devices import Inventory, InventoryDevice, node_selection_key
from poolwise.live.kubernetes.link_traffic import LinkTraffic
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.quantity import available_amount
from poolwise.model import Changes, JobTable, Kind, Machine, MachineBuilder, Queue, Snapshot
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal

RACK_LABEL = "topology.kubernetes.io/rack"
BANDWIDTH, STORAGE, DEVICES, MEMORY, NODES = "bandwidth", "storage", "devices", "memory", "nodes"
_SPACE_NAMES = ("space", "storage")
SAME_KIND_RATIO = 1.05  # largest ratio of memory between nodes of one kind, for nodes that pods take whole
CONSTRAINT, PRIORITY, CLASS, KIND, PROFILE = "constraint", "priority", "class", "kind", "profile"
"""Columns of the job table: node set, priority, negative priority (for the order `classes`), and kind of work."""
NodeView = Literal["shared", "whole"]


class ClusterLayout(Section):
    """Settings by the operator that the objects of a cluster do not contain, and the keys of their file."""

    version: int = 1
    allocation: NodeView | None = None  # whether pods share nodes or take them whole; None: as the scheduler supports
    rack_label: str = RACK_LABEL  # node label with the name of the rack
    link: Bandwidth = 0  # bandwidth of each node's link (MB/s) where none is measured, 0 without a network


@dataclass(frozen=True)
class MachineMapping:
    """A machine and the cluster objects behind its owners."""

    machine: Machine
    view: NodeView  # whether pods share nodes or take them whole
    nodes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # owner -> names of its nodes
    node_owner: Mapping[str, int] = field(default_factory=dict)  # node name -> owner
    devices: Mapping[int, DeviceId] = field(default_factory=dict)  # owner -> device
    device_owner: Mapping[DeviceId, int] = field(default_factory=dict)  # device -> owner
    # node constraints of pods -> name of the node set, "" for all nodes
    sets: Mapping[NodeConstraints, str] = field(default_factory=dict)
    links: Mapping[str, int] = field(default_factory=dict)  # node name -> owner of its link
    unschedulable: Set[str] = frozenset()  # with whole nodes, names of nodes on which no pod may run now
    excluded: Mapping[str, str] = field(default_factory=dict)  # with whole nodes, name of an excluded node or device -> reason

    @classmethod
    def empty(cls) -> MachineMapping:
        """Return the machine to use before a cluster has been read."""
        return cls(Machine.flat(1), "shared")

    def column(self, resource: str) -> int:
        """Return the column of a resource, -1 if the machine does not have it."""
        return self.machine.resources.index(resource) if resource in self.machine.resources else -1


@dataclass(frozen=True)
class ClusterParts:
    """Cluster objects from which a machine is built."""

    nodes: Sequence[Node]  # usable nodes by name
    inventory: Inventory
    types: Mapping[DeviceId, str]  # device -> type, for the devices that pods request
    constraint_sets: Iterable[NodeConstraints]  # distinct node constraints of waiting pods
    links: Mapping[str, LinkTraffic]  # node -> measured traffic of its link


def is_usable(node: Node) -> bool:
    """Return whether a node is part of the machine: it is not being deleted and has allocatable resources."""
    return node.metadata.deletion_timestamp is None and bool(node.status.allocatable)


def allocatable_amounts(node: Node) -> dict[str, int]:
    """Return a node's allocatable amounts, by the resource names of schedulers."""
    return {NAMES.get(name, name): available_amount(name, text) for name, text in sorted(node.status.allocatable.items())}


def is_pool(device: InventoryDevice) -> bool:
    """Return whether a device is a memory pool."""
    return device.shared and MEMORY in device.device.capacity


def is_nvme(device: InventoryDevice) -> bool:
    """Return whether a device has bandwidth and space that claims share."""
    names = device.device.capacity
    return device.shared and BANDWIDTH in names and any(name in names for name in _SPACE_NAMES)


def space_name(names: Iterable[str]) -> str:
    """Return the name under which a device publishes its space."""
    return next(name for name in _SPACE_NAMES if name in names)


def map_cluster(parts: ClusterParts, layout: ClusterLayout, view: NodeView) -> MachineMapping:
    """Build the machine. Raise InputError if the cluster does not support the view."""
    return _Builder(parts, layout, view).build_mapping()


class _Builder:
    def __init__(self, parts: ClusterParts, layout: ClusterLayout, view: NodeView) -> None:
        self.parts, self.layout, self.view = parts, layout, view
        self.build = MachineBuilder("cluster")
        self.nodes: dict[int, tuple[str, ...]] = {}
        self.devices: dict[int, DeviceId] = {}
        self.links: dict[str, int] = {}
        names = sorted({self._rack_name(node) for node in parts.nodes})
        self.rack = {name: k for k, name in enumerate(names)}
        self.rack_served: dict[bytes, int] = {}
        self.excluded: dict[str, str] = {}
        self.unschedulable: set[str] = set()

    def build_mapping(self) -> MachineMapping:
        if self.view == "shared":
            self._shared()
        else:
            self._whole()
        columns = self.build.columns()
        owner_of = {name: owner for owner, names in self.nodes.items() for name in names}
        sets, members = self._node_sets(len(self.build.owners), owner_of)
        machine = Machine(**columns, node_sets=members, parts={"cores": 1000})
        return MachineMapping(
            machine,
            self.view,
            self.nodes,
            owner_of,
            self.devices,
            {device: owner for owner, device in self.devices.items()},
            sets,
            self.links,
            self.unschedulable,
            self.excluded,
        )

    def _rack_name(self, node: Node) -> str:
        return node.metadata.labels.get(self.layout.rack_label, "")

    def _shared(self) -> None:
        by_name: dict[str, int] = {}
        for node in self.parts.nodes:
            owner = self.build.add(
                node.metadata.name, Kind.NODE, "node", allocatable_amounts(node), rack=self.rack[self._rack_name(node)]
            )
            self.nodes[owner], by_name[node.metadata.name] = (node.metadata.name,), owner
        for id, type in sorted(self.parts.types.items()):
            device = self.parts.inventory.devices[id]
            if is_pool(device) or (device.shared and not is_nvme(device)):
                continue  # policies on shared nodes do not model these amounts; starts are checked against them
            home = by_name.get(device.node_name, -1) if device.node_name is not None else -1
            if device.node_name is not None and home < 0:
                continue  # local to a node that does not exist
            self._device(device, type, home)
        for name, owner in by_name.items():
            measured = self.parts.links.get(name)
            bandwidth = self.layout.link if measured is None else int(measured.bandwidth)
            if bandwidth:
                self.links[name] = self.build.link(f"link of {name}", owner, "switch", bandwidth=bandwidth)

    def _device(self, device: InventoryDevice, type: str, home: int) -> None:
        amounts: dict[str, int | str] = {DEVICES: 1}
        if is_nvme(device):
            capacity = device.device.capacity
            space = space_name(capacity)
            amounts = {
                BANDWIDTH: available_amount(BANDWIDTH, capacity[BANDWIDTH].value),
                STORAGE: available_amount(space, capacity[space].value),
            }
        rack = self.build.owners[home].rack if home >= 0 else self._rack_of(device)
        owner = self.build.add(str(device.id), Kind.DEVICE, type, amounts, rack=rack, home=home)
        self.devices[owner] = device.id

    def _whole(self) -> None:
        racks: dict[str, list[Node]] = {}
        for node in self.parts.nodes:
            racks.setdefault(self._rack_name(node), []).append(node)
        constraint_sets = list(self.parts.constraint_sets) or [NodeConstraints()]
        schedulable = (node for node in self.parts.nodes if any(constraints.allows(node) for constraints in constraint_sets))
        self.unschedulable = {node.metadata.name for node in self.parts.nodes} - {node.metadata.name for node in schedulable}
        for name, nodes in sorted(racks.items()):
            cores, memory = self._common_size(nodes)
            owner = self.build.whole_nodes(
                f"{name or 'cluster'}.nodes", len(nodes), rack=self.rack[name], memory=memory, cores=cores
            )
            self.nodes[owner] = tuple(node.metadata.name for node in nodes)
            for node in nodes:
                has = allocatable_amounts(node)
                if has.get("cores", 0) < cores or has.get(MEMORY, 0) < memory:
                    self.excluded[node.metadata.name] = f"it is smaller than most nodes of rack '{name}'"
        self.unschedulable |= self.excluded.keys()
        self._pools()

    def _pools(self) -> None:
        """Add the largest memory pool of each rack."""
        pools = [device for device in self.parts.inventory.devices.values() if is_pool(device)]
        sizes = {device.id: available_amount(MEMORY, device.device.capacity[MEMORY].value) for device in pools}
        served: set[int] = set()
        for device in sorted(pools, key=lambda device: (-sizes[device.id], device.id)):
            rack = self._rack_of(device)
            if rack < 0:
                self.excluded[str(device.id)] = "it does not serve exactly one rack"
            elif rack in served:
                self.excluded[str(device.id)] = "its rack already has a memory pool"
            else:
                served.add(rack)
                owner = self.build.pool(str(device.id), rack=rack, memory=sizes[device.id])
                self.devices[owner] = device.id

    def _common_size(self, nodes: Sequence[Node]) -> tuple[int, int]:
        """Return the cores and memory of each node of a rack: the smallest amounts of its most common kind of node.

        Nodes of one kind differ only in the amounts that their systems reserve. The extra capacity of larger nodes is ignored.
        """
        candidates = [node for node in nodes if node.metadata.name not in self.unschedulable] or nodes
        by_cores: dict[int, list[int]] = {}
        for node in candidates:
            has = allocatable_amounts(node)
            by_cores.setdefault(has.get("cores", 0), []).append(has.get(MEMORY, 0))
        kinds: list[tuple[int, int, int]] = []
        for cores, sizes in by_cores.items():
            sizes.sort()
            kinds += [
                (bisect_right(sizes, int(size * SAME_KIND_RATIO)) - bisect_left(sizes, size), cores, size) for size in sizes
            ]
        _, cores, memory = max(kinds)
        return cores, memory

    def _rack_of(self, device: InventoryDevice) -> int:
        """Return the rack that a device serves, -1 for several; cached per set of served nodes."""
        key = node_selection_key(device)
        if key not in self.rack_served:
            served = {self._rack_name(node) for node in self.parts.nodes if device.serves(node)}
            self.rack_served[key] = self.rack[next(iter(served))] if len(served) == 1 else -1
        return self.rack_served[key]

    def _node_sets(self, n_owner: int, owner_of: Mapping[str, int]) -> tuple[dict[NodeConstraints, str], dict[str, BoolArray]]:
        """Return the node sets of the constraints. A group of whole nodes is in a set if all of its nodes are."""
        sets: dict[NodeConstraints, str] = {}
        members: dict[str, BoolArray] = {}
        set_names: dict[bytes, str] = {}
        for constraints in self.parts.constraint_sets:
            allowed = np.zeros(n_owner, dtype=np.bool_)
            allowed[list(self.nodes)] = True
            for node in self.parts.nodes:
                if node.metadata.name not in self.unschedulable and not constraints.allows(node):
                    allowed[owner_of[node.metadata.name]] = False
            if allowed[list(self.nodes)].all():
                sets[constraints] = ""
                continue
            key = allowed.tobytes()
            if key not in set_names:
                set_names[key] = f"set{len(set_names)}"
                members[set_names[key]] = allowed
            sets[constraints] = set_names[key]
        return sets, members


def view_for(scheduler: Scheduler, parts: ClusterParts, layout: ClusterLayout) -> NodeView:
    """Return the view that a scheduler supports, shared nodes if possible; raise its InputError if it supports neither."""
    if layout.allocation is not None:
        return layout.allocation
    problems: dict[NodeView, InputError] = {}
    views: tuple[NodeView, ...] = ("shared", "whole")
    for view in views:
        try:
            _try_scheduling(
                probe_job({"nodes" if view == "whole" else "cores": 1}), map_cluster(parts, layout, view).machine, scheduler
            )
            return view
        except InputError as problem:
            problems[view] = problem
    if problems["shared"].field == problems["whole"].field:
        raise problems["shared"]
    reasons = "; ".join(f"with {view} nodes: {problem.message}" for view, problem in problems.items())
    raise InputError(f"the scheduler does not support this cluster: {reasons}", field="--scheduler")


def _try_scheduling(table: JobTable, machine: Machine, scheduler: Scheduler) -> None:
    """Run a scheduler with one small job on the idle machine; raise its InputError."""
    scheduler.check(machine, table)
    runs = RunTable(machine.capacity.size)
    snapshot = Snapshot(0, machine, table, machine.capacity, machine.capacity.copy(), runs, Ideal(), may_grow=True)
    scheduler.open(machine, 0).schedule(Queue.of(table, np.zeros(1, dtype=np.int64)), snapshot, Changes(arrived=(0,)))


def supports_resource(machine: Machine, scheduler: Scheduler, resource: str) -> bool:
    """Return whether a scheduler can place jobs that request a resource; other resources are checked when pods start.

    For devices, it must also support those that are not local to a node, if there are any.
    """
    mine = (machine.kind == Kind.DEVICE) & (np.array(machine.type) == resource)
    if (mine & (machine.home < 0)).any():
        capacity = machine.capacity.copy()
        capacity[mine & (machine.home >= 0)] = 0
        machine = machine.with_capacity(capacity)
    try:
        scheduler.check(machine, probe_job({"cores": 1, resource: 1}))
    except InputError:
        return False
    return True


def probe_job(requests: Mapping[str, int]) -> JobTable:
    """Return a job table with one small job that has the attributes of pods."""
    ones, text = np.ones(1, dtype=np.int64), np.array([""], dtype=object)
    attributes = {CONSTRAINT: text, PRIORITY: ones - 1, CLASS: ones - 1, KIND: text}
    return JobTable(ones, ones - 1, ones, ones, {name: ones * amount for name, amount in requests.items()}, attributes)


def read_layout(file: Path | None) -> ClusterLayout:
    """Read an overlay file; raise InputError for all problems, with lines and remedies."""
    return ClusterLayout() if file is None else validate(ClusterLayout, Document.read(file))
