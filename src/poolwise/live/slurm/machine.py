"""Machine of a Slurm partition: nodes, whole or shared, and rack resources that Slurm counts as licenses.

The license `pool_rack0:1024` is the memory pool of rack0, in GiB unless configured otherwise; `nvme_rack0:8` stands for eight
devices of type "nvme" that nodes of rack0 can use. A rack has the name of its leaf switch or of its feature.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.live.slurm.parsing import ClusterListing, SlurmJob, SlurmNode
from poolwise.model import Machine, Placement
from poolwise.model.machine_builder import MachineBuilder

GIB = 1024
"""MiB."""
_POOL = ("pool", "memory")


@dataclass(frozen=True, eq=False)
class SlurmLayout:
    """Mapping between a partition of Slurm and a machine.

    Attributes
    ----------
    machine : the machine with all nodes and licenses available
    whole : whether jobs take whole nodes
    unit : MiB that one license of a memory pool represents
    owner : node -> owner; for whole nodes the owner of the equal nodes of its rack
    pools : license -> owner of the memory pool
    devices : license -> owners of the devices, in order
    types : device types
    nodes : nodes at the time when the machine was built, by name
    racks : node -> rack
    """

    machine: Machine
    whole: bool
    unit: int
    owner: Mapping[str, int]
    pools: Mapping[str, int]
    devices: Mapping[str, tuple[int, ...]]
    types: tuple[str, ...]
    nodes: Mapping[str, SlurmNode] = field(default_factory=dict)
    racks: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, listing: ClusterListing, racks: Mapping[str, str], whole: bool, unit: int = GIB) -> SlurmLayout:
        """Build the machine of a listing; raises InputError if nodes or racks do not form one."""
        if not listing.nodes:
            raise InputError(f"partition '{name}' has no nodes", field="--partition", remedy="see `sinfo`")
        order = sorted(set(racks.values()))
        counted = any(split[0] not in _POOL and split[2] in order for split in (n.partition("_") for n in listing.licenses))
        build = MachineBuilder(name, ("nodes" if whole else "cores", "memory", *(("devices",) if counted else ())))
        owner = (
            _add_whole_nodes(build, listing, racks, order) if whole else _add_shared_nodes(build, listing, racks, order, unit)
        )
        pools: dict[str, int] = {}
        devices: dict[str, tuple[int, ...]] = {}
        for license, count in listing.licenses.items():
            kind, _, rack = license.partition("_")
            if rack not in order:
                continue
            if kind in _POOL:
                pools[license] = build.pool(f"{rack}.pool", rack=order.index(rack), memory=count * unit)
            else:
                numbers = range(count)
                devices[license] = tuple(
                    build.device(f"{rack}.{kind}{k}", type=kind, rack=order.index(rack), devices=1) for k in numbers
                )
        types = tuple(sorted({license.partition("_")[0] for license in devices}))
        return cls(Machine.of(build), whole, unit, owner, pools, devices, types, dict(listing.nodes), dict(racks))

    def matches(self, listing: ClusterListing) -> bool:
        """Return whether a listing shows this machine: the same nodes, and no license count above the machine's."""
        same = all(
            (now := listing.nodes.get(name)) is not None and (now.cpus, now.memory) == (node.cpus, node.memory)
            for name, node in self.nodes.items()
        )
        return same and len(listing.nodes) == len(self.nodes) and self._licenses_match(listing)

    def _licenses_match(self, listing: ClusterListing) -> bool:
        column = self.machine.resource("memory")
        pools = all(
            listing.licenses.get(name, 0) * self.unit <= self.machine.capacity[owner, column]
            for name, owner in self.pools.items()
        )
        return pools and all(listing.licenses.get(name, 0) <= len(owners) for name, owners in self.devices.items())

    @property
    def licenses(self) -> frozenset[str]:
        """Licenses that represent pools or devices of this machine."""
        return frozenset((*self.pools, *self.devices))

    # Capacity and placements

    def capacity(self, listing: ClusterListing, busy: Collection[str]) -> IntArray:
        """Return the current capacity, (n_owner, n_resource): nodes that are usable or run jobs (`busy`), and licenses."""
        machine = self.machine
        capacity: IntArray = machine.capacity.copy()
        for name in self.nodes:
            if self.is_usable(name, listing) or name in busy:
                continue
            if self.whole:
                capacity[self.owner[name], machine.resource("nodes")] -= 1
            else:
                capacity[self.owner[name]] = 0
        for license, owner in self.pools.items():
            column = machine.resource("memory")
            capacity[owner, column] = min(listing.licenses.get(license, 0) * self.unit, machine.capacity[owner, column])
        for license, owners in self.devices.items():
            for owner in owners[listing.licenses.get(license, 0) :]:
                capacity[owner] = 0
        return capacity

    def is_usable(self, name: str, listing: ClusterListing) -> bool:
        """Return whether a node can be used and is at least as large as when the machine was built."""
        node, now = self.nodes.get(name), listing.nodes.get(name)
        if node is None or now is None:
            return False
        return now.usable and now.cpus >= node.cpus and now.memory >= node.memory

    def placements(self, gangs: Mapping[str, tuple[SlurmJob, ...]]) -> dict[str, Placement]:
        """Return the placements of running jobs, without jobs that hold nothing of this machine.

        A whole node counts once, for the first job on it. Devices of one type are interchangeable and are assigned in order.
        """
        counted: set[str] = set()
        assigned: dict[str, int] = dict.fromkeys(self.devices, 0)
        held: dict[str, Placement] = {}
        for name, gang in gangs.items():
            rows = list(self._node_rows(gang, counted))
            for job in gang:
                rows += self._license_rows(job, assigned)
            if rows:
                held[name] = Placement.of(_merged_rows(rows))
        return held

    def _node_rows(self, gang: tuple[SlurmJob, ...], counted: set[str]) -> Iterable[tuple[int, int, int, int]]:
        machine = self.machine
        for task, job in enumerate(gang):
            for node in job.allocated:
                if node not in self.owner:
                    continue
                if not self.whole:
                    share = max(len(job.allocated), 1)
                    local = min(-(-job.memory // share // self.unit) * self.unit, self.nodes[node].memory)
                    yield task, self.owner[node], machine.resource("cores"), -(-job.cpus // share)
                    yield task, self.owner[node], machine.resource("memory"), local
                elif node not in counted:
                    counted.add(node)
                    yield 0, self.owner[node], machine.resource("nodes"), 1

    def _license_rows(self, job: SlurmJob, assigned: dict[str, int]) -> Iterable[tuple[int, int, int, int]]:
        for license, count in job.licenses.items():
            if license in self.pools:
                yield 0, self.pools[license], self.machine.resource("memory"), count * self.unit
            elif license in self.devices:
                owners = self.devices[license][assigned[license] : assigned[license] + count]
                assigned[license] += len(owners)
                yield from ((0, owner, self.machine.resource("devices"), 1) for owner in owners)

    # From placements to Slurm

    def licenses_for(self, placement: Placement) -> dict[str, int]:
        """Return the licenses that a placement needs, name -> count."""
        by_owner = {owner: license for license, owner in self.pools.items()}
        by_owner |= {owner: license for license, owners in self.devices.items() for owner in owners}
        memory, counts = self.machine.resource("memory"), dict[str, int]()
        for _, owner, resource, amount in placement.rows():
            if (license := by_owner.get(owner)) is not None:
                counts[license] = counts.get(license, 0) + (-(-amount // self.unit) if resource == memory else amount)
        return counts

    def local_memory(self, placement: Placement) -> int:
        """Return the largest amount of local memory that a placement takes on one node (MiB)."""
        memory, local = self.machine.resource("memory"), set(self.owner.values())
        return max(
            (amount for _, owner, resource, amount in placement.rows() if resource == memory and owner in local), default=0
        )

    def choose_nodes(self, placement: Placement, free: Collection[str]) -> tuple[tuple[str, ...], ...] | None:
        """Return the names of the nodes of each task, None if some are not free; whole nodes all belong to one task."""
        if not self.whole:
            names = {owner: name for name, owner in self.owner.items()}
            tasks: dict[int, list[str]] = {}
            for task, owner, _, _ in placement.rows():
                if owner in names and names[owner] not in tasks.setdefault(task, []):
                    tasks[task].append(names[owner])
            return tuple(tuple(tasks[task]) for task in sorted(tasks))
        nodes, chosen = self.machine.resource("nodes"), list[str]()
        for _, owner, resource, amount in placement.rows():
            if resource == nodes:
                available = [name for name in sorted(free) if self.owner[name] == owner][:amount]
                if len(available) < amount:
                    return None
                chosen += available
        return (tuple(chosen),)


def _add_whole_nodes(
    build: MachineBuilder, listing: ClusterListing, racks: Mapping[str, str], order: list[str]
) -> dict[str, int]:
    """Add one owner for the equal nodes of each rack, named by ascending size, and return the owner of each node."""
    owner = {}
    for number, rack in enumerate(order):
        kinds: dict[tuple[int, int], list[str]] = {}
        for name, node in sorted(listing.nodes.items()):
            if racks[name] == rack:
                kinds.setdefault((node.memory, node.cpus), []).append(name)
        for k, ((memory, cpus), members) in enumerate(sorted(kinds.items())):
            name = f"{rack}.nodes{k or ''}"
            group = build.whole_nodes(name, len(members), rack=number, memory=memory, cores=cpus)
            owner.update(dict.fromkeys(members, group))
    return owner


def _add_shared_nodes(
    build: MachineBuilder, listing: ClusterListing, racks: Mapping[str, str], order: list[str], unit: int
) -> dict[str, int]:
    """Add each node, with memory rounded down to a multiple of `unit`, and return the owner of each node."""
    return {
        name: build.node(name, rack=order.index(racks[name]), cores=node.cpus, memory=node.memory // unit * unit)
        for name, node in sorted(listing.nodes.items())
    }


def _merged_rows(rows: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Return rows with the amounts of equal (task, owner, resource) summed, in order of first occurrence."""
    sums: dict[tuple[int, int, int], int] = {}
    for task, owner, resource, amount in rows:
        sums[task, owner, resource] = sums.get((task, owner, resource), 0) + amount
    return [(*cell, amount) for cell, amount in sums.items()]


def free_capacity(capacity: IntArray, placements: Iterable[Placement]) -> IntArray:
    """Return capacity minus placements, (n_owner, n_resource); negative if jobs now hold more than the capacity."""
    free: IntArray = capacity.copy()
    for placement in placements:
        placement.take_from(free)
    return free


def changed_cells(before: IntArray, after: IntArray) -> list[tuple[int, int, int]]:
    """Return the cells (owner, resource, difference) in which two capacities differ."""
    return [(int(o), int(r), int(after[o, r] - before[o, r])) for o, r in np.argwhere(before != after)]
