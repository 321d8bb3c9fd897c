"""The machine that a cluster is, as a scheduler can use it: nodes that pods share, or whole nodes of racks with pools."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.demand import NAMES
from poolwise.live.kubernetes.devices import DeviceId, Inventory, Published, words_of
from poolwise.live.kubernetes.link_traffic import Traffic
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects import Node
from poolwise.live.kubernetes.quantity import offered
from poolwise.model import Changes, JobTable, Kind, Machine, MachineBuilder, Queue, Snapshot
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal

RACK_LABEL = "topology.kubernetes.io/rack"
BANDWIDTH, STORAGE, DEVICES, MEMORY, NODES = "bandwidth", "storage", "devices", "memory", "nodes"
_SPACE = ("space", "storage")
ALIKE = 1.05
"""Nodes that pods take whole are of one kind where one has at most so many times the memory of the other."""
CONSTRAINT, PRIORITY, CLASS, KIND = "constraint", "priority", "class", "kind"
"""Columns of the job table: set of nodes, priority, its negative, by which the order `classes` goes, and kind of work."""
NodeView = Literal["shared", "whole"]


@dataclass(frozen=True)
class ClusterLayout:
    """What an operator says of a cluster that its objects do not.

    Attributes
    ----------
    view : whether pods share nodes or take them whole; None takes what the scheduler works on
    rack_label : label of nodes that names their rack
    link : MB/s of the link of each node where nobody measures it, 0 without a network
    """

    view: NodeView | None = None
    rack_label: str = RACK_LABEL
    link: int = 0


@dataclass(frozen=True)
class Shape:
    """A machine, and which objects its owners are.

    Attributes
    ----------
    machine : what schedulers see
    view : how pods take nodes
    nodes : owner -> names of its nodes
    node_owner : name of a node -> owner
    devices : owner -> device
    device_owner : device -> owner
    types : device -> type of the devices among which jobs choose
    sets : what pods say of nodes -> name of the set of nodes, empty where it is all
    links : name of a node -> owner that is its link
    barred : of nodes that pods take whole, those that no pod may have now
    left_out : name of a node or device -> why it is no part of a machine of whole nodes
    """

    machine: Machine
    view: NodeView
    nodes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    node_owner: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[int, DeviceId] = field(default_factory=dict)
    device_owner: Mapping[DeviceId, int] = field(default_factory=dict)
    types: Mapping[DeviceId, str] = field(default_factory=dict)
    sets: Mapping[NodeConstraints, str] = field(default_factory=dict)
    links: Mapping[str, int] = field(default_factory=dict)
    barred: Set[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_nothing(cls) -> Shape:
        """A machine before any cluster was seen."""
        return cls(Machine.flat(1), "shared")

    def column(self, resource: str) -> int:
        """Column of a resource, -1 where the machine has none."""
        return self.machine.resources.index(resource) if resource in self.machine.resources else -1


@dataclass(frozen=True)
class ClusterParts:
    """What a machine is put together from.

    Attributes
    ----------
    nodes : in the order of their names
    inventory : devices
    types : device -> type, of the devices that pods ask for
    wheres : what waiting pods say of nodes
    links : node -> what goes over its link, where that is measured
    """

    nodes: Sequence[Node]
    inventory: Inventory
    types: Mapping[DeviceId, str]
    wheres: Iterable[NodeConstraints]
    links: Mapping[str, Traffic]


def usable(node: Node) -> bool:
    """Whether a node is part of the machine: it stays, and somebody may use it."""
    return node.metadata.deletion_timestamp is None and bool(node.status.allocatable)


def amounts_offered(node: Node) -> dict[str, int]:
    """What a node has for pods, by the names that schedulers know."""
    return {NAMES.get(name, name): offered(name, text) for name, text in sorted(node.status.allocatable.items())}


def is_pool(device: Published) -> bool:
    """Whether a device is a pool of memory."""
    return device.shared and MEMORY in device.device.capacity


def is_nvme(device: Published) -> bool:
    """Whether a device has bandwidth and space that claims share."""
    names = device.device.capacity
    return device.shared and BANDWIDTH in names and any(name in names for name in _SPACE)


def space_of(names: Iterable[str]) -> str:
    """What a device calls its space."""
    return next(name for name in _SPACE if name in names)


def shape_of(parts: ClusterParts, layout: ClusterLayout, view: NodeView) -> Shape:
    """Build the machine. Raises InputError where the cluster cannot be seen that way."""
    return _Builder(parts, layout, view).shape()


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
        self.left_out: dict[str, str] = {}
        self.barred: set[str] = set()

    def shape(self) -> Shape:
        if self.view == "shared":
            self._shared()
        else:
            self._whole()
        columns = self.build.columns()
        owner_of = {name: owner for owner, names in self.nodes.items() for name in names}
        sets, members = self._sets(len(self.build.owners), owner_of)
        machine = Machine(**columns, node_sets=members, parts={"cores": 1000})
        return Shape(
            machine,
            self.view,
            self.nodes,
            owner_of,
            self.devices,
            {device: owner for owner, device in self.devices.items()},
            self.parts.types,
            sets,
            self.links,
            self.barred,
            self.left_out,
        )

    def _rack_name(self, node: Node) -> str:
        return node.metadata.labels.get(self.layout.rack_label, "")

    def _shared(self) -> None:
        by_name: dict[str, int] = {}
        for node in self.parts.nodes:
            owner = self.build.add(
                node.metadata.name, Kind.NODE, "node", amounts_offered(node), rack=self.rack[self._rack_name(node)]
            )
            self.nodes[owner], by_name[node.metadata.name] = (node.metadata.name,), owner
        for id, type in sorted(self.parts.types.items()):
            device = self.parts.inventory.devices[id]
            if is_pool(device) or (device.shared and not is_nvme(device)):
                continue  # amounts that a policy on shared nodes knows nothing of; a start is checked against them
            home = by_name.get(device.node_name, -1) if device.node_name is not None else -1
            if device.node_name is not None and home < 0:
                continue  # of a node that is not there
            self._device(device, type, home)
        for name, owner in by_name.items():
            measured = self.parts.links.get(name)
            bandwidth = self.layout.link if measured is None else int(measured.bandwidth)
            if bandwidth:
                self.links[name] = self.build.link(f"link of {name}", owner, "switch", bandwidth=bandwidth)

    def _device(self, device: Published, type: str, home: int) -> None:
        amounts: dict[str, int | str] = {DEVICES: 1}
        if is_nvme(device):
            capacity = device.device.capacity
            space = space_of(capacity)
            amounts = {BANDWIDTH: offered(BANDWIDTH, capacity[BANDWIDTH].value), STORAGE: offered(space, capacity[space].value)}
        rack = self.build.owners[home].rack if home >= 0 else self._rack_of(device)
        owner = self.build.add(str(device.id), Kind.DEVICE, type, amounts, rack=rack, home=home)
        self.devices[owner] = device.id

    def _whole(self) -> None:
        racks: dict[str, list[Node]] = {}
        for node in self.parts.nodes:
            racks.setdefault(self._rack_name(node), []).append(node)
        self.barred |= self._forbidden()
        for name, nodes in sorted(racks.items()):
            cores, memory = self._common(nodes)
            owner = self.build.whole_nodes(
                f"{name or 'cluster'}.nodes", len(nodes), rack=self.rack[name], memory=memory, cores=cores
            )
            self.nodes[owner] = tuple(node.metadata.name for node in nodes)
            for node in nodes:
                has = amounts_offered(node)
                if has.get("cores", 0) < cores or has.get(MEMORY, 0) < memory:
                    self.left_out[node.metadata.name] = f"it has less than most nodes of rack '{name}'"
        self.barred |= self.left_out.keys()
        self._pools()

    def _pools(self) -> None:
        """The largest pool of memory of each rack."""
        pools = [device for device in self.parts.inventory.devices.values() if is_pool(device)]
        sizes = {device.id: offered(MEMORY, device.device.capacity[MEMORY].value) for device in pools}
        served: set[int] = set()
        for device in sorted(pools, key=lambda device: (-sizes[device.id], device.id)):
            rack = self._rack_of(device)
            if rack < 0:
                self.left_out[str(device.id)] = "it does not serve the nodes of one rack"
            elif rack in served:
                self.left_out[str(device.id)] = "its rack has another pool of memory"
            else:
                served.add(rack)
                owner = self.build.pool(str(device.id), rack=rack, memory=sizes[device.id])
                self.devices[owner] = device.id

    def _forbidden(self) -> set[str]:
        """Names of nodes on which no pod that is known may run, such as cordoned ones."""
        wheres = list(self.parts.wheres) or [NodeConstraints()]
        return {node.metadata.name for node in self.parts.nodes if not any(where.allows(node) for where in wheres)}

    def _common(self, nodes: Sequence[Node]) -> tuple[int, int]:
        """Cores and memory by which the nodes of a rack count: the least of those that most of them are like.

        Nodes of one kind differ by what their systems keep for themselves. One that has more counts as if it had not.
        """
        usable = [node for node in nodes if node.metadata.name not in self.barred] or nodes
        by_cores: dict[int, list[int]] = {}
        for node in usable:
            has = amounts_offered(node)
            by_cores.setdefault(has.get("cores", 0), []).append(has.get(MEMORY, 0))
        found: list[tuple[int, int, int]] = []
        for cores, sizes in by_cores.items():
            sizes.sort()
            found += [(bisect_right(sizes, int(size * ALIKE)) - bisect_left(sizes, size), cores, size) for size in sizes]
        _, cores, memory = max(found)
        return cores, memory

    def _rack_of(self, device: Published) -> int:
        """The one rack that a device serves, -1 for several; asked once for all that serve the same nodes."""
        words = words_of(device)
        if words not in self.rack_served:
            served = {self._rack_name(node) for node in self.parts.nodes if device.serves(node)}
            self.rack_served[words] = self.rack[next(iter(served))] if len(served) == 1 else -1
        return self.rack_served[words]

    def _sets(self, n_owner: int, owner_of: Mapping[str, int]) -> tuple[dict[NodeConstraints, str], dict[str, BoolArray]]:
        """Sets of nodes on which pods may run. A group of whole nodes is in a set if all of them are."""
        sets: dict[NodeConstraints, str] = {}
        members: dict[str, BoolArray] = {}
        known: dict[bytes, str] = {}
        for where in self.parts.wheres:
            allowed = np.zeros(n_owner, dtype=np.bool_)
            allowed[list(self.nodes)] = True
            for node in self.parts.nodes:
                if node.metadata.name not in self.barred and not where.allows(node):
                    allowed[owner_of[node.metadata.name]] = False
            if allowed[list(self.nodes)].all():
                sets[where] = ""
                continue
            key = allowed.tobytes()
            if key not in known:
                known[key] = f"set{len(known)}"
                members[known[key]] = allowed
            sets[where] = known[key]
        return sets, members


def view_for(scheduler: Scheduler, parts: ClusterParts, layout: ClusterLayout) -> NodeView:
    """How a scheduler can see a cluster: as nodes that pods share if it works on them, else as whole nodes.

    Raises its InputError where it works on neither.
    """
    if layout.view is not None:
        return layout.view
    problems: dict[NodeView, InputError] = {}
    views: tuple[NodeView, ...] = ("shared", "whole")
    for view in views:
        try:
            _try(scheduler, shape_of(parts, layout, view).machine, probe({"nodes" if view == "whole" else "cores": 1}))
            return view
        except InputError as problem:
            problems[view] = problem
    if problems["shared"].field == problems["whole"].field:
        raise problems["shared"]
    said = "; ".join(f"with nodes that are {view}: {problem.message}" for view, problem in problems.items())
    raise InputError(f"the scheduler can work on this cluster neither way: {said}", field="--scheduler")


def _try(scheduler: Scheduler, machine: Machine, table: JobTable) -> None:
    """Let a scheduler decide about one small job on the idle machine; raises its InputError."""
    scheduler.check(machine, table)
    runs = RunTable(machine.capacity.size)
    snapshot = Snapshot(0, machine, table, machine.capacity, machine.capacity.copy(), runs, Ideal(), may_grow=True)
    scheduler.open(machine, 0).schedule(Queue.of(table, np.zeros(1, dtype=np.int64)), snapshot, Changes(arrived=(0,)))


def knows(scheduler: Scheduler, machine: Machine, resource: str) -> bool:
    """Whether a scheduler can place jobs that ask for a resource; what it does not know is checked when jobs start.

    Of devices it must also know those that stand in no node, where there are any.
    """
    mine = (machine.kind == Kind.DEVICE) & (np.array(machine.type) == resource)
    if (mine & (machine.home < 0)).any():
        capacity = machine.capacity.copy()
        capacity[mine & (machine.home >= 0)] = 0
        machine = machine.with_capacity(capacity)
    try:
        scheduler.check(machine, probe({"cores": 1, resource: 1}))
    except InputError:
        return False
    return True


def probe(requests: Mapping[str, int]) -> JobTable:
    """A table of one small job, with the attributes that pods have."""
    one, text = np.ones(1, dtype=np.int64), np.array([""], dtype=object)
    attributes = {CONSTRAINT: text, PRIORITY: one - 1, CLASS: one - 1, KIND: text}
    return JobTable(one, one - 1, one, one, {name: one * amount for name, amount in requests.items()}, attributes)
