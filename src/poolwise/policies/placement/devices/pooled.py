"""Placement of one task on all that a datacenter offers: node, memory of node and pool, devices by type, composed NVMe."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Kind, Machine, Placement, Refusal, Snapshot
from poolwise.model.shared_nodes import SharedNodes, shared_nodes
from poolwise.policies.placement.devices.completion import CompletionPolicy
from poolwise.policies.placement.devices.requests import check_requests, foreign_request
from poolwise.policies.placement.nvme.composition import CompositionPolicy, refused
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.minimize_fragmentation import NvmeMinimizeFragmentation
from poolwise.policies.placement.request_kinds import once_a_kind, request_kinds
from poolwise.registry import register
from poolwise.user_code import place_of

DEVICES = "devices"
EVERY_NODE, NO_NODE = -1, -2


@register("placements", "pooled")
@dataclass(frozen=True)
class Pooled(CompletionPolicy):
    """A task on a shared node; what the node lacks comes from pools.

    The composition policy chooses the NVMe devices and the node, and is shown only nodes on which the rest is there. Memory is
    taken from the node, what is missing from the pool of its rack (or the machine's). Devices that the job asks for by their
    type are taken from the node, then from its rack, then from elsewhere, the lowest first; those inside a node serve that
    node alone, as in `device_layout`. So servers that share nothing and pooled ones differ in the machine file only.

    Parameters
    ----------
    nvme
        A placement of the family "nvme_", whether or not jobs need NVMe.
    least_local
        Least share of a job's memory in its node.
    local_first
        Nodes that hold all of a job's memory are tried before those that need the pool.
    """

    nvme: PlacementPolicy = field(default_factory=NvmeMinimizeFragmentation)
    least_local: float = 0.25
    local_first: bool = True

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError where `nvme` is no composition policy, `least_local` no share, or a request nowhere to be met."""
        self._check_settings()
        check_requests(jobs, _known(pooled_layout(machine)))

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place a job of one task. Raises InputError for settings, as `check` does."""
        layout = pooled_layout(snapshot.machine)
        foreign = refused(job) or _several(job) or foreign_request(job, _known(layout))
        return foreign or self._place(job, snapshot, self._able(job, snapshot.free, layout), ())

    def place_at(self, job: Job, node: int, devices: tuple[int, ...], snapshot: Snapshot) -> Placement | Refusal:
        """Place a job on a given node with given devices, and with whatever else it needs."""
        layout = pooled_layout(snapshot.machine)
        if (foreign := _several(job) or foreign_request(job, _known(layout))) is not None:
            return foreign
        able = self._able(job, snapshot.free, layout) & (layout.nodes == node)
        free = snapshot.free[list(devices), layout.device_column] if devices else np.ones(0)
        if any(not layout.reaches(snapshot.machine, node, device) for device in devices) or (free < 1).any():
            return Refusal("the devices are taken, or cannot be reached from the node")
        return self._place(job, snapshot, able, devices)

    def screen(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """(k,) False where no node has the cores and the memory, or the machine not the devices or the capacity."""
        layout, table = pooled_layout(snapshot.machine), snapshot.table
        cores, memory = free[:, layout.nodes, layout.cores], _memory(free, layout)
        devices = {k: (free[:, owners, layout.device_column] > 0).sum(axis=1) for k, owners in layout.kinds.items()}
        storage = None if layout.storage < 0 else np.maximum(free[:, layout.nvme, layout.storage], 0).sum(axis=1)

        def fits(jobs: IntArray) -> BoolArray:
            here = (cores >= table.request("cores")[jobs][:, None]) & (memory >= table.memory[jobs][:, None])
            able: BoolArray = np.any(here, axis=1)
            for kind, free_ones in devices.items():
                able &= free_ones >= table.request(kind)[jobs]
            if storage is not None:
                able &= storage >= table.request("storage")[jobs]
            return able

        return fits(jobs) if len(free) > 1 else once_a_kind(jobs, lambda: request_kinds(snapshot.machine, table), fits)

    def alike(self, machine: Machine, table: JobTable) -> IntArray | None:
        """(n_job,) numbers of jobs that ask for the same, and for no NVMe: of that more matters, such as deadlines."""
        if place_of(self.nvme) is not None:
            return None
        composed = (table.request("bandwidth") > 0) | (table.request("storage") > 0)
        found: IntArray = np.where(composed, -1 - np.arange(len(table)), request_kinds(machine, table))
        return found

    def whole_devices(self, machine: Machine) -> dict[str, IntArray]:
        """Type of device -> (n,) owners: all devices without bandwidth and storage."""
        return pooled_layout(machine).kinds

    def least(self, memory: IntArray) -> IntArray:
        """(n,) MiB that must be in the node, of (n,) MiB."""
        least: IntArray = np.ceil(self.least_local * memory).astype(np.int64)
        return least

    def _check_settings(self) -> None:
        if not 0 <= self.least_local <= 1:
            raise InputError(f"{self.least_local} is no share", field="least_local", remedy="give a number from 0 to 1")
        if not isinstance(self.nvme, CompositionPolicy):
            raise InputError(
                f"{type(self.nvme).__name__} does not place on compositions",
                field="nvme",
                remedy="choose one of the nvme_ placements",
            )

    def _able(self, job: Job, free: IntArray, layout: PooledLayout) -> BoolArray:
        """(n_node,) nodes on which there is everything but NVMe."""
        self._check_settings()
        local = free[layout.nodes, layout.memory]
        able: BoolArray = free[layout.nodes, layout.cores] >= job.request("cores")
        able &= (local >= self.least(np.array([job.memory]))[0]) & (_memory(free[None], layout)[0] >= job.memory)
        for kind, owners in layout.kinds.items():
            if wanted := job.request(kind):
                serves = layout.serves[kind][free[owners, layout.device_column] > 0]
                own = np.bincount(serves[serves >= 0], minlength=len(layout.nodes))
                able &= own + np.count_nonzero(serves == EVERY_NODE) >= wanted
        return able

    def _place(self, job: Job, snapshot: Snapshot, able: BoolArray, devices: tuple[int, ...]) -> Placement | Refusal:
        layout = pooled_layout(snapshot.machine)
        if not able.any():
            return self._why_not(job, snapshot)
        found: Placement | Refusal = Refusal("no node")
        local = snapshot.free[layout.nodes, layout.memory] >= job.memory
        for nodes in (able & local, able) if self.local_first else (able,):
            if nodes.any():
                found = self._compose(job, snapshot, nodes, layout)
                if isinstance(found, Placement):
                    return self._complete(job, snapshot, found, devices)
        return found

    def _why_not(self, job: Job, snapshot: Snapshot) -> Refusal:
        """Say what is short in the whole machine, or else that no node has all of it."""
        layout, free = pooled_layout(snapshot.machine), snapshot.free
        for kind, owners in layout.kinds.items():
            if job.request(kind) > (there := int((free[owners, layout.device_column] > 0).sum())):
                return Refusal(f"not enough free {kind}", kind, job.request(kind), there)
        if job.request("cores") > (most := int(free[layout.nodes, layout.cores].max())):
            return Refusal("no node has enough free cores", "cores", job.request("cores"), most)
        if job.memory > (most := int(_memory(free[None], layout).max())):
            return Refusal("no node has enough free memory in itself and its pool", "memory", job.memory, most)
        return Refusal("no node has cores, memory and devices together")

    def _compose(self, job: Job, snapshot: Snapshot, able: BoolArray, layout: PooledLayout) -> Placement | Refusal:
        """Node, cores and NVMe, by the composition policy, which sees no cores on any other node."""
        assert isinstance(self.nvme, CompositionPolicy)
        free = snapshot.free.copy()
        free[layout.nodes[~able], layout.cores] = -1
        view = Compositions(snapshot.imagined(snapshot.now, free))
        return self.nvme.choose(view.need(job.index), view)

    def _complete(self, job: Job, snapshot: Snapshot, found: Placement, devices: tuple[int, ...]) -> Placement:
        """Add memory and devices to a node and its NVMe."""
        machine, free = snapshot.machine, snapshot.free
        layout, rows = pooled_layout(machine), found.rows()
        node = next(owner for owner in found.owners() if machine.kind[owner] == Kind.NODE)
        local = min(job.memory, int(free[node, layout.memory]))
        rows.append((0, node, layout.memory, local))
        if job.memory > local:
            pool = int(layout.pool[np.searchsorted(layout.nodes, node)])
            rows.append((0, pool, layout.memory, job.memory - local))
        for kind in layout.kinds:
            if wanted := job.request(kind):
                mine = [device for device in devices if machine.type[device] == kind]
                chosen = mine[:wanted] if devices else layout.nearest(machine, node, kind, free, wanted)
                rows += [(0, device, layout.device_column, 1) for device in chosen]
        return Placement.of(rows)


def _known(layout: PooledLayout) -> tuple[str, ...]:
    """What jobs may ask for: of nodes, one."""
    return (*layout.known, "nodes")


def _several(job: Job) -> Refusal | None:
    """Refusal of a job of several nodes."""
    return Refusal("a task is placed on one node", "nodes", job.nodes, 1) if job.nodes > 1 else None


def _memory(free: IntArray, layout: PooledLayout) -> IntArray:
    """(k, n_node) MiB that a job can have on each node, from it and its pool, in (k, n_owner, n_resource) free amounts."""
    pool = np.where(layout.pool >= 0, np.maximum(free[:, layout.pool, layout.memory], 0), 0)
    total: IntArray = np.maximum(free[:, layout.nodes, layout.memory], 0) + pool
    return total


@dataclass(frozen=True, eq=False)
class PooledLayout(SharedNodes):
    """Shared nodes and what they reach.

    Attributes
    ----------
    pool : (n_node,) memory pool of each node: its rack's, else the machine's, -1 without
    kinds : type of device -> (n_device,) owners, of the types that are taken whole (those without bandwidth and storage)
    serves : type -> (n_device,) position of the node that each device serves; `EVERY_NODE`, or `NO_NODE` where its own has left
    nvme : (n_nvme,) the other devices
    cores, memory, device_column, storage : columns, -1 where the machine has none
    """

    pool: IntArray
    kinds: dict[str, IntArray]
    serves: dict[str, IntArray]
    nvme: IntArray
    cores: int
    memory: int
    device_column: int
    storage: int

    @property
    def known(self) -> tuple[str, ...]:
        """What jobs may ask for."""
        return (*_ON_NODES, *_ON_NVME, *self.kinds)

    def reaches(self, machine: Machine, node: int, device: int) -> bool:
        """Whether a device serves a node."""
        return int(machine.home[device]) in (-1, node)

    def nearest(self, machine: Machine, node: int, kind: str, free: IntArray, most: int) -> list[int]:
        """So many free devices of a type that serve a node: its own, those of its rack, others, the lowest first."""
        owners, home = self.kinds[kind], machine.home[self.kinds[kind]]
        able = owners[(free[owners, self.device_column] > 0) & ((home == -1) | (home == node))]
        ranked = np.lexsort((able, machine.rack[able] != machine.rack[node], machine.home[able] != node))
        found: list[int] = able[ranked[:most]].tolist()
        return found


@lru_cache(maxsize=8)  # a machine is compared by identity
def pooled_layout(machine: Machine) -> PooledLayout:
    """Read a machine; raises InputError for one without shared nodes that have cores and memory."""
    shared = shared_nodes(machine, *_ON_NODES)
    is_nvme = np.isin(shared.type, shared.type[shared.having(*_ON_NVME)])  # also those that have left
    kinds = shared.only(~is_nvme).by_type()
    return PooledLayout(
        **vars(shared),
        pool=shared.pools("memory"),
        kinds=kinds,
        serves={kind: _serves(machine.home[owners], shared.nodes) for kind, owners in kinds.items()},
        nvme=shared.devices[is_nvme],
        cores=shared.column("cores"),
        memory=shared.column("memory"),
        device_column=shared.column(DEVICES),
        storage=shared.column("storage"),
    )


def _serves(home: IntArray, nodes: IntArray) -> IntArray:
    """(n_device,) position of the node that each device serves, of the (n_device,) nodes in which they are."""
    place = np.minimum(np.searchsorted(nodes, home), len(nodes) - 1)
    return np.where(home == -1, EVERY_NODE, np.where(nodes[place] == home, place, NO_NODE))


_ON_NODES, _ON_NVME = ("cores", "memory"), ("bandwidth", "storage")
