"""The partition as a machine: its nodes, taken whole or shared, and pools of racks, which Slurm counts as licences.

The licence `pool_rack0:1024` is the memory pool of rack0, in GiB unless said otherwise; `nvme_rack0:8` are eight devices of the
type "nvme" that nodes of rack0 can use. A rack is called as its leaf switch or its feature.
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
    """A partition as a machine.

    Attributes
    ----------
    machine : the machine as it is built, whatever is down now
    whole : whether jobs take whole nodes
    unit : MiB that one licence of a memory pool stands for
    owner : node -> owner; where nodes are taken whole that is its rack's
    pools : licence -> owner of the memory pool
    devices : licence -> owners of the devices, in order
    types : types of devices
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
    def of(cls, name: str, reading: ClusterListing, racks: Mapping[str, str], whole: bool, unit: int = GIB) -> SlurmLayout:
        """Make a machine of a reading; raises InputError where racks or nodes do not make one."""
        if not reading.nodes:
            raise InputError(f"partition '{name}' has no nodes", field="--partition", remedy="see `sinfo`")
        order = sorted(set(racks.values()))
        counted = any(split[0] not in _POOL and split[2] in order for split in (n.partition("_") for n in reading.licences))
        build = MachineBuilder(name, ("nodes" if whole else "cores", "memory", *(("devices",) if counted else ())))
        owner = _whole(build, reading, racks, order) if whole else _shared(build, reading, racks, order, unit)
        pools: dict[str, int] = {}
        devices: dict[str, tuple[int, ...]] = {}
        for licence, count in reading.licences.items():
            what, _, rack = licence.partition("_")
            if rack not in order:
                continue
            if what in _POOL:
                pools[licence] = build.pool(f"{rack}.pool", rack=order.index(rack), memory=count * unit)
            else:
                numbers = range(count)
                devices[licence] = tuple(
                    build.device(f"{rack}.{what}{k}", type=what, rack=order.index(rack), devices=1) for k in numbers
                )
        types = tuple(sorted({licence.partition("_")[0] for licence in devices}))
        return cls(Machine.of(build), whole, unit, owner, pools, devices, types, dict(reading.nodes), dict(racks))

    def fits(self, reading: ClusterListing) -> bool:
        """Whether a reading is of this machine: the same nodes, and no licence beyond what was there."""
        same = all(
            (here := reading.nodes.get(name)) is not None and (here.cpus, here.memory) == (node.cpus, node.memory)
            for name, node in self.nodes.items()
        )
        return same and len(reading.nodes) == len(self.nodes) and self._licences_fit(reading)

    def _licences_fit(self, reading: ClusterListing) -> bool:
        column = self.machine.resource("memory")
        pools = all(
            reading.licences.get(name, 0) * self.unit <= self.machine.capacity[owner, column]
            for name, owner in self.pools.items()
        )
        return pools and all(reading.licences.get(name, 0) <= len(owners) for name, owners in self.devices.items())

    @property
    def licences(self) -> frozenset[str]:
        """Licences that are pools or devices of this machine."""
        return frozenset((*self.pools, *self.devices))

    # What is there

    def capacity(self, reading: ClusterListing, busy: Collection[str]) -> IntArray:
        """(n_owner, n_resource) what there is now: nodes that are usable or at work (`busy`), licences that can be had."""
        machine = self.machine
        capacity: IntArray = machine.capacity.copy()
        for name in self.nodes:
            if self.has(name, reading) or name in busy:
                continue
            if self.whole:
                capacity[self.owner[name], machine.resource("nodes")] -= 1
            else:
                capacity[self.owner[name]] = 0
        for licence, owner in self.pools.items():
            column = machine.resource("memory")
            capacity[owner, column] = min(reading.licences.get(licence, 0) * self.unit, machine.capacity[owner, column])
        for licence, owners in self.devices.items():
            for owner in owners[reading.licences.get(licence, 0) :]:
                capacity[owner] = 0
        return capacity

    def has(self, name: str, reading: ClusterListing) -> bool:
        """Whether a node can be used, and is no less than it was when the machine was built."""
        node, here = self.nodes.get(name), reading.nodes.get(name)
        if node is None or here is None:
            return False
        return here.usable and here.cpus >= node.cpus and here.memory >= node.memory

    def placements(self, gangs: Mapping[str, tuple[SlurmJob, ...]]) -> dict[str, Placement]:
        """Where jobs at work are; those that have nothing of this machine are left out.

        A whole node counts once, for the first of the jobs on it. Devices of a type are alike: each job is given the next ones.
        """
        counted: set[str] = set()
        given: dict[str, int] = dict.fromkeys(self.devices, 0)
        found: dict[str, Placement] = {}
        for name, gang in gangs.items():
            rows = list(self._node_rows(gang, counted))
            for job in gang:
                rows += self._licence_rows(job, given)
            if rows:
                found[name] = Placement.of(_added(rows))
        return found

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

    def _licence_rows(self, job: SlurmJob, given: dict[str, int]) -> Iterable[tuple[int, int, int, int]]:
        for licence, count in job.licences.items():
            if licence in self.pools:
                yield 0, self.pools[licence], self.machine.resource("memory"), count * self.unit
            elif licence in self.devices:
                owners = self.devices[licence][given[licence] : given[licence] + count]
                given[licence] += len(owners)
                yield from ((0, owner, self.machine.resource("devices"), 1) for owner in owners)

    # What a decision means

    def bought(self, placement: Placement) -> dict[str, int]:
        """Licences that a placement takes."""
        by_owner = {owner: licence for licence, owner in self.pools.items()}
        by_owner |= {owner: licence for licence, owners in self.devices.items() for owner in owners}
        memory, taken = self.machine.resource("memory"), dict[str, int]()
        for _, owner, resource, amount in placement.rows():
            if (licence := by_owner.get(owner)) is not None:
                taken[licence] = taken.get(licence, 0) + (-(-amount // self.unit) if resource == memory else amount)
        return taken

    def local_memory(self, placement: Placement) -> int:
        """MiB that a placement takes of the node from which it takes most."""
        memory, here = self.machine.resource("memory"), set(self.owner.values())
        return max(
            (amount for _, owner, resource, amount in placement.rows() if resource == memory and owner in here), default=0
        )

    def choose(self, placement: Placement, free: Collection[str]) -> tuple[tuple[str, ...], ...] | None:
        """Nodes of each task of a placement, by name, None where they are not free. Whole nodes are those of one task."""
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
                here = [name for name in sorted(free) if self.owner[name] == owner][:amount]
                if len(here) < amount:
                    return None
                chosen += here
        return (tuple(chosen),)


def _whole(build: MachineBuilder, reading: ClusterListing, racks: Mapping[str, str], order: list[str]) -> dict[str, int]:
    """Add one owner for the nodes of each rack; returns the owner of each node."""
    owner = {}
    for number, rack in enumerate(order):
        here = [reading.nodes[name] for name in sorted(reading.nodes) if racks[name] == rack]
        kinds = {(node.cpus, node.memory) for node in here}
        if len(kinds) > 1:
            raise InputError(
                f"{rack} has nodes of several types, which cannot be taken whole as one rack's",
                field="--partition",
                remedy="choose a partition of like nodes, or --nodes shared",
            )
        node = here[0]
        group = build.whole_nodes(f"{rack}.nodes", len(here), rack=number, memory=node.memory, cores=node.cpus)
        owner.update(dict.fromkeys((node.name for node in here), group))
    return owner


def _shared(
    build: MachineBuilder, reading: ClusterListing, racks: Mapping[str, str], order: list[str], unit: int
) -> dict[str, int]:
    """Add each node; returns their owners. Of memory, whole units count."""
    return {
        name: build.node(name, rack=order.index(racks[name]), cores=node.cpus, memory=node.memory // unit * unit)
        for name, node in sorted(reading.nodes.items())
    }


def _added(rows: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Rows with the amounts of equal (task, owner, resource) added up, in the order in which they first come."""
    sums: dict[tuple[int, int, int], int] = {}
    for task, owner, resource, amount in rows:
        sums[task, owner, resource] = sums.get((task, owner, resource), 0) + amount
    return [(*cell, amount) for cell, amount in sums.items()]


def spare(capacity: IntArray, placements: Iterable[Placement]) -> IntArray:
    """(n_owner, n_resource) what placements leave; below 0 where others have taken more than there is now."""
    free: IntArray = capacity.copy()
    for placement in placements:
        placement.take_from(free)
    return free


def changed_cells(before: IntArray, after: IntArray) -> list[tuple[int, int, int]]:
    """Cells (owner, resource) in which capacities differ, with the difference."""
    return [(int(o), int(r), int(after[o, r] - before[o, r])) for o, r in np.argwhere(before != after)]
