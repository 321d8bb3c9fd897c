"""The machine: owners of resources, their capacities, their positions and the network between them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, frozen
from poolwise.errors import InputError, UnknownNameError
from poolwise.model.fabric import Fabric
from poolwise.model.failures import Failures
from poolwise.model.html import html_table
from poolwise.model.kind import Kind
from poolwise.model.machine_builder import MachineBuilder
from poolwise.model.partition import AssociationLimits, Partition, QualityOfService, ReservedWindow
from poolwise.model.placement import Placement
from poolwise.quantities import format_memory
from poolwise.short_repr import fit_repr, short_repr


@dataclass(frozen=True, eq=False, repr=False)
class Machine:
    """A machine: owners of resources in a fixed order, and the capacity of each.

    Whole nodes of one type are interchangeable within a rack, so one owner represents them and its resource "nodes" counts them
    (`per_node` is what each of them brings). A shared node is an owner of its own.

    Make one with `Machine.of_racks`, `Machine.flat`, `poolwise.load_machine` or a `MachineBuilder`.

    Attributes
    ----------
    name : name in reports
    owners : n_owner names, unique
    kind : (n_owner,) `Kind`
    type : n_owner names of the node, pool, device or link type
    rack : (n_owner,) rack number, -1 outside racks
    position : (n_owner, 2) coordinates (x, y) = (rack, shelf)
    home : (n_owner,) node that contains a device, -1 for pooled devices and other owners
    resources : n_resource names
    capacity : (n_owner, n_resource) int64, base units (MiB, MB/s, cores, nodes, devices)
    per_node : resource name -> (n_owner,) int64, what each whole node of the owner brings (MiB, cores)
    attributes : name -> (n_owner,) numbers that models and policies read (frequency, watts, price, ...)
    fabric : the network; None where it is not modeled
    node_sets : name -> (n_owner,) owners of a partition, or with a feature (see `model.eligibility`)
    partitions, qos, associations, windows : limits and reservations (see `model.partition`)
    failures : failures of nodes; None in the view given to schedulers
    parts : resource -> number of parts of one unit that amounts count, such as {"cores": 1000} for thousandths
    licenses : name of a license -> number of them in the whole machine (see `model.licenses`)

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(4, 48, local="64 GiB", pool="1280 GiB", cores=12)
    >>> machine
    Machine '4 x 48 nodes': 192 whole nodes, 4 pools, 5 TiB memory in pools, 64 GiB memory in each whole node
    >>> int(machine.capacity[machine.owner("rack0.pool"), machine.resource("memory")])  # MiB
    1310720
    """

    name: str
    owners: tuple[str, ...]
    kind: IntArray
    type: tuple[str, ...]
    rack: IntArray
    position: IntArray
    home: IntArray
    resources: tuple[str, ...]
    capacity: IntArray
    per_node: Mapping[str, IntArray] = field(default_factory=dict)
    attributes: Mapping[str, FloatArray] = field(default_factory=dict)
    fabric: Fabric | None = None
    node_sets: Mapping[str, BoolArray] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    qos: tuple[QualityOfService, ...] = ()
    associations: tuple[AssociationLimits, ...] = ()
    windows: tuple[ReservedWindow, ...] = ()
    failures: Failures | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    licenses: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (
            self.kind,
            self.rack,
            self.position,
            self.home,
            self.capacity,
            *self.per_node.values(),
            *self.attributes.values(),
            *self.node_sets.values(),
        ):
            frozen(array)
        for name, members in self.node_sets.items():
            if members.shape != (len(self.owners),):
                raise ValueError(f"node set '{name}' has shape {members.shape}, expected {(len(self.owners),)}")
        if missing := [part.name for part in self.partitions if part.name not in self.node_sets]:
            raise ValueError(f"partition '{missing[0]}' has no nodes in node_sets")
        if self.capacity.shape != (len(self.owners), len(self.resources)):
            raise ValueError(f"capacity has shape {self.capacity.shape}, expected {(len(self.owners), len(self.resources))}")
        if len(set(self.owners)) != len(self.owners):
            raise InputError("owner names are not unique", field="name", remedy="give each node, pool, device and link its own")
        if any(parts < 1 for parts in self.parts.values()):
            raise InputError("the number of parts of a resource is below 1", field="parts", remedy="such as cores = 1000")
        if negative := [name for name, count in self.licenses.items() if count < 0]:
            raise InputError(f"the number of licenses '{negative[0]}' is negative", field="licenses")
        if self.capacity.size and int(self.capacity.min()) < 0:
            raise InputError("a capacity is negative", field="capacity")

    @classmethod
    def of(cls, build: MachineBuilder) -> Machine:
        """Return the machine that a builder describes."""
        return cls(**build.columns())

    @classmethod
    def of_racks(
        cls,
        racks: int,
        nodes: int,
        *,
        local: int | str = 0,
        pool: int | str | None = None,
        cores: int = 1,
        name: str | None = None,
    ) -> Machine:
        """Make racks of identical whole nodes, each rack with a memory pool.

        Parameters
        ----------
        racks, nodes
            Number of racks, and of nodes in each.
        local
            Local memory per node: text such as "64 GiB", or MiB.
        pool
            Memory of the pool of each rack: text such as "1280 GiB", or MiB; None for no pools.
        cores
            Cores per node.
        name
            Name in reports.

        Returns
        -------
        Machine

        Raises
        ------
        InputError
            An amount cannot be read.

        Examples
        --------
        >>> import poolwise
        >>> poolwise.Machine.of_racks(2, 16, local="64 GiB", pool="1 TiB").local_memory  # MiB
        65536
        """
        build = MachineBuilder(name or f"{racks} x {nodes} nodes", ("nodes", "memory"))
        for r in range(racks):
            build.whole_nodes(f"rack{r}.nodes", nodes, rack=r, memory=local, cores=cores)
        if pool is not None:
            for r in range(racks):
                build.pool(f"rack{r}.pool", rack=r, memory=pool)
        return cls.of(build)

    @classmethod
    def flat(cls, processors: int) -> Machine:
        """Make one rack of one-processor nodes without memory, the machine of `--processors N`.

        Parameters
        ----------
        processors
            Number of processors.

        Returns
        -------
        Machine

        Examples
        --------
        >>> import poolwise
        >>> poolwise.Machine.flat(64)
        Machine '64 processors': 64 whole nodes
        """
        return cls.of_racks(1, processors, name=f"{processors} processors")

    @property
    def n_owner(self) -> int:
        """Number of owners."""
        return len(self.owners)

    def resource(self, name: str) -> int:
        """Return the column of a resource; raises UnknownNameError."""
        if name not in self.resources:
            raise UnknownNameError.of("resource", name, self.resources)
        return self.resources.index(name)

    def owner(self, name: str) -> int:
        """Return the number of an owner; raises UnknownNameError."""
        value = self._numbers.get(name)
        if value is None:
            raise UnknownNameError.of("owner", name, self.owners)
        return value

    def placement(self, *tasks: Mapping[str | int, Mapping[str, int]]) -> Placement:
        """Build a placement from names: per task, the owners that it uses and the amount that it takes of each resource.

        Parameters
        ----------
        tasks
            One mapping per task: name or number of an owner -> name of a resource -> amount in base units (MiB, MB/s, cores,
            nodes, devices).

        Raises
        ------
        UnknownNameError
            The machine has no such owner or resource.

        Examples
        --------
        >>> import poolwise
        >>> machine = poolwise.Machine.of_racks(1, 4, local="8 GiB", pool="64 GiB")
        >>> machine.placement({"rack0.nodes": {"nodes": 2}, "rack0.pool": {"memory": 4096}})
        Placement.of([(0, 0, 0, 2), (0, 1, 1, 4096)])
        """
        return Placement.of(
            (task, self.owner(owner) if isinstance(owner, str) else int(owner), self.resource(resource), int(amount))
            for task, owners in enumerate(tasks)
            for owner, amounts in owners.items()
            for resource, amount in amounts.items()
        )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.owners)}

    @property
    def restricted(self) -> bool:
        """True if the machine restricts which jobs may use which nodes at which times.

        A scheduler that ignores such restrictions must not run on it.
        """
        return bool(self.node_sets or self.partitions or self.qos or self.associations or self.windows)

    def of_kind(self, kind: Kind) -> IntArray:
        """Return the owners of a kind, (k,), ascending."""
        return np.flatnonzero(self.kind == kind)

    def summary(self) -> dict[str, str]:
        """Return a summary of the machine for readers, as text: name of a part -> its amount."""
        nodes, pools = self.of_kind(Kind.NODE), self.of_kind(Kind.POOL)
        whole = self.capacity[nodes, self.resource("nodes")] if "nodes" in self.resources else 0 * nodes
        counts = {
            "whole nodes": int(whole.sum()),
            "shared nodes": int((whole == 0).sum()),
            "pools": len(pools),
            "devices": len(self.of_kind(Kind.DEVICE)),
            "links": len(self.of_kind(Kind.LINK)),
        }
        words = {what: f"{count:,}" for what, count in counts.items() if count}
        if "memory" in self.resources and len(pools):
            words["memory in pools"] = format_memory(int(self.capacity[pools, self.resource("memory")].sum()))
        if whole.any():
            memory = self._node_memory
            sizes = sorted({(int(memory[o]), format_memory(int(memory[o]))) for o in nodes[whole > 0]})
            each = {size: int(whole[memory[nodes] == size].sum()) for size, _ in sizes}
            words["memory in each whole node"] = ", ".join(
                text if len(sizes) == 1 else f"{each[size]:,} x {text}" for size, text in sizes
            )
        return words

    def amount_text(self, resource: str, amount: int) -> str:
        """Format an amount of a resource for readers: memory with its unit, parts of a unit as decimals."""
        if resource in ("memory", "storage"):
            return format_memory(amount)
        parts = self.parts.get(resource, 1)
        return f"{amount:,}" if parts == 1 else f"{amount / parts:,.3f}".rstrip("0").rstrip(".")

    def summary_text(self) -> str:
        """Return `summary` as one line: "1 shared node, 2 pools, 1 TiB memory in pools"."""
        parts = ((amount, what.removesuffix("s") if amount == "1" else what) for what, amount in self.summary().items())
        return ", ".join(f"{amount} {what}" for amount, what in parts if amount != "0 MiB")

    def __repr__(self) -> str:
        return fit_repr(f"Machine '{self.name}': {self.summary_text()}")

    def _repr_html_(self) -> str:
        return html_table(f"Machine {self.name}", self.summary())

    def with_capacity(self, capacity: IntArray) -> Machine:
        """Return the machine with other capacities, (n_owner, n_resource)."""
        return replace(self, capacity=capacity)

    @cached_property
    def racks(self) -> RackLayout:
        """The machine as racks of whole nodes with at most one memory pool each; raises InputError if it has another shape."""
        return RackLayout.of(self)

    @cached_property
    def _node_memory(self) -> IntArray:
        """MiB of local memory of each node of an owner, (n_owner,)."""
        return self.per_node.get("memory", np.zeros(self.n_owner, dtype=np.int64))

    @cached_property
    def local_memory(self) -> int:
        """MiB of local memory per node (of a shared node: its capacity); that of the smallest node if nodes differ."""
        if "nodes" not in self.resources:
            nodes = self.of_kind(Kind.NODE)
            return int(self.capacity[nodes, self.resource("memory")].min()) if "memory" in self.resources and len(nodes) else 0
        local = self.racks.local
        return int(local.min()) if len(local) else 0


_NOT_FURTHER = ("nodes", "memory", "cores")
"""Basic resources of whole nodes; all other resources count as further resources."""


@dataclass(frozen=True, eq=False)
class RackLayout:
    """Whole nodes in racks with at most one memory pool each, the shape that rack placement requires.

    A group is the nodes of one type in one rack.

    Attributes
    ----------
    nodes : (n_group,) owner of each group's nodes
    pools : (n_group,) owner of the memory pool of its rack, -1 without one
    local : (n_group,) MiB of local memory of each of its nodes
    rack : (n_group,) rack of each group
    others : other resource -> (n_group,) amount that each node brings, for resources of which nodes bring different amounts
    most : other resource -> largest amount that a node brings
    node_column, memory_column : columns of "nodes" and "memory" (-1 without memory)
    """

    __repr__ = short_repr

    nodes: IntArray
    pools: IntArray
    local: IntArray
    rack: IntArray
    others: Mapping[str, IntArray]
    most: Mapping[str, int]
    node_column: int
    memory_column: int

    @cached_property
    def pooled(self) -> bool:
        """True if each rack has a memory pool."""
        return bool((self.pools >= 0).all())

    @cached_property
    def uniform(self) -> bool:
        """True if each rack is one group and all nodes have the same local memory."""
        return len(np.unique(self.rack)) == len(self.rack) and bool((self.local == self.local[:1]).all())

    def distinguishes(self, requests: Container[str]) -> bool:
        """Return whether nodes differ in local memory, or in a resource that jobs request."""
        return not self.uniform or any(name in requests for name in self.others)

    def further(self, requests: Iterable[str]) -> dict[str, int]:
        """Return resource -> largest amount that a node brings, for each requested resource in `most`."""
        return {name: self.most[name] for name in requests if name in self.most}

    def node_counts(self, placement: Placement) -> dict[int, int]:
        """Return group -> number of nodes that a placement uses, for the groups that it uses."""
        group = {owner: k for k, owner in enumerate(self.nodes.tolist())}
        return {group[owner]: amount for _, owner, column, amount in placement.rows() if column == self.node_column}

    @classmethod
    def of(cls, machine: Machine) -> RackLayout:
        """Find the groups of whole nodes and the memory pool, if any, of each rack; raises InputError for other shapes."""
        if "nodes" not in machine.resources:
            raise InputError(
                f"machine '{machine.name}' has no whole nodes",
                field="node",
                remedy='use placement = "first_fit" on shared nodes, or write allocation = "whole" in a [[node]]',
            )
        nodes, memory = (
            machine.resource("nodes"),
            machine.resources.index("memory") if "memory" in machine.resources else -1,
        )
        groups = [o for o in machine.of_kind(Kind.NODE).tolist() if machine.capacity[o, nodes] > 0]
        racks = [int(machine.rack[o]) for o in groups]
        pools = np.full(len(groups), -1, dtype=np.int64)
        for k, rack in enumerate(racks):
            here = [o for o in machine.of_kind(Kind.POOL).tolist() if int(machine.rack[o]) == rack] if memory >= 0 else []
            filled = [o for o in here if machine.capacity[o, memory] > 0]
            if len(filled) > 1:
                raise InputError(
                    f"rack {rack} has several memory pools: {', '.join(machine.owners[o] for o in filled)}",
                    field="pool",
                    remedy="give each rack one memory pool",
                )
            pools[k] = next(iter(filled or here), -1)
        outside = [o for o in machine.of_kind(Kind.POOL).tolist() if int(machine.rack[o]) not in racks]
        if stray := [o for o in outside if memory >= 0 and machine.capacity[o, memory] > 0]:
            raise InputError(
                f"memory pool '{machine.owners[stray[0]]}' does not belong to a rack of whole nodes",
                field="pool",
                remedy='write per = "rack" in its [[pool]]',
            )
        owners = np.array(groups, dtype=np.int64)
        brought = {name: column[owners] for name, column in machine.per_node.items() if name not in _NOT_FURTHER}
        others = {name: column for name, column in brought.items() if (column != column[:1]).any()}
        most = {name: int(column.max(initial=0)) for name, column in brought.items()}
        return cls(owners, pools, machine._node_memory[owners], machine.rack[owners], others, most, nodes, memory)
