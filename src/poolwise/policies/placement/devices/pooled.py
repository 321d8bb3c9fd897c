"""Placement of a task on a node, with memory from the node and a pool, devices by type, and composed NVMe devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Kind, Machine, Placement, Refusal, Snapshot
from poolwise.model.shared_nodes import SharedNodes, shared_nodes
from poolwise.policies.placement.nvme.composition import CompositionPolicy, refused
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.policies import NvmeMinimizeFragmentation
from poolwise.policies.placement.requests import check_requests, foreign_request, once_per_kind, request_kinds
from poolwise.registry import register
from poolwise.user_code import class_location


@runtime_checkable
class CompletionPolicy(PlacementPolicy, Protocol):
    """Placement policy that can complete a placement whose node and devices are given."""

    def whole_devices(self, machine: Machine) -> Mapping[str, IntArray]:
        """Return device type -> (n,) owners, ascending, of the devices that jobs request by type and use exclusively.

        Raises InputError if the policy does not support the machine.
        """
        ...

    def least(self, memory: IntArray) -> IntArray:
        """Return the MiB that must be in the node, (n,), of (n,) MiB of memory."""
        ...

    def place_at(self, job: Job, node: int, devices: tuple[int, ...], snapshot: Snapshot) -> Placement | Refusal:
        """Place a job on a given node with given devices, together with everything else that it needs."""
        ...


DEVICES = "devices"
EVERY_NODE, NO_NODE = -1, -2


@register("placements", "pooled")
@dataclass(frozen=True)
class Pooled(CompletionPolicy):
    """Place each task on a shared node; memory, devices and NVMe that the node lacks come from pools.

    The tasks of a gang are placed one after the other. Only jobs of one task may request NVMe.

    The composition policy `nvme` chooses the NVMe devices and the node among the nodes where everything else is available.
    Memory is taken from the node, the rest from the pool of its rack (or the machine's pool). Devices requested by type are
    taken from the node, then from its rack, then from elsewhere, the lowest first; devices inside a node serve only that
    node, as in `device_layout`. Servers without pools and pooled servers therefore differ only in the machine file.

    Parameters
    ----------
    nvme
        A placement of the family "nvme_", whether or not jobs need NVMe.
    least_local
        Minimum fraction of a job's memory in its node.
    local_first
        Try nodes that hold all of a job's memory before those that need the pool.
    """

    nvme: PlacementPolicy = field(default_factory=NvmeMinimizeFragmentation)
    least_local: float = 0.25
    local_first: bool = True

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for invalid `nvme` or `least_local` and for requests that the machine can never meet."""
        self._check_settings()
        check_requests(jobs, _known(pooled_layout(machine)))

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place all tasks of a job. Raises InputError for invalid settings, as `check` does."""
        layout, state = pooled_layout(snapshot.machine), snapshot
        composed = any(job.request(name) for name in _ON_NVME)
        foreign = (refused(job) if composed else None) or _multi_node_refusal(job) or foreign_request(job, _known(layout))
        if foreign is not None:
            return foreign
        if job.numbers == (0,):
            return self._place(job, state, self._able(job, state.free, layout), ())
        rows: list[tuple[int, int, int, int]] = []
        for task in job.numbers:
            placement = self._place(job, state, self._able(job, state.free, layout), ())
            if isinstance(placement, Refusal):
                return placement
            rows += ((task, owner, resource, amount) for _, owner, resource, amount in placement.rows())
            free = state.free.copy()
            placement.take_from(free)
            state = snapshot.imagined(snapshot.now, free)
        return Placement.of(rows)

    def place_at(self, job: Job, node: int, devices: tuple[int, ...], snapshot: Snapshot) -> Placement | Refusal:
        """Place a job on a given node with given devices, together with everything else that it needs."""
        layout = pooled_layout(snapshot.machine)
        if (foreign := refused(job) or _multi_node_refusal(job) or foreign_request(job, _known(layout))) is not None:
            return foreign
        able = self._able(job, snapshot.free, layout) & (layout.nodes == node)
        free = snapshot.free[list(devices), layout.device_column] if devices else np.ones(0)
        if any(not layout.reaches(snapshot.machine, node, device) for device in devices) or (free < 1).any():
            return Refusal("the devices are in use or not reachable from the node")
        return self._place(job, snapshot, able, devices)

    def prefilter(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Return a mask of jobs, (k,): False if no node has the cores and memory, or the machine lacks devices or capacity."""
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

        return fits(jobs) if len(free) > 1 else once_per_kind(jobs, lambda: request_kinds(snapshot.machine, table), fits)

    def signatures(self, machine: Machine, table: JobTable) -> IntArray | None:
        """Return kinds of jobs with equal requests, (n_job,). Each job with NVMe is its own kind: more columns matter."""
        if class_location(self.nvme) is not None:
            return None
        composed = (table.request("bandwidth") > 0) | (table.request("storage") > 0)
        return np.where(composed, -1 - np.arange(len(table)), request_kinds(machine, table))

    def whole_devices(self, machine: Machine) -> dict[str, IntArray]:
        """Return device type -> (n,) owners, for all devices without bandwidth and storage."""
        return pooled_layout(machine).kinds

    def least(self, memory: IntArray) -> IntArray:
        """Return the MiB that must be in the node, (n,), of (n,) MiB of memory."""
        least: IntArray = np.ceil(self.least_local * memory).astype(np.int64)
        return least

    def _check_settings(self) -> None:
        if not 0 <= self.least_local <= 1:
            raise InputError(f"must be from 0 to 1, got {self.least_local}", field="least_local", remedy="use a fraction of 1")
        _ = self._composition_policy

    @cached_property
    def _composition_policy(self) -> CompositionPolicy:
        """The policy `nvme`, validated once, since `isinstance` with a protocol is slow."""
        if not isinstance(self.nvme, CompositionPolicy):
            raise InputError(
                f"{type(self.nvme).__name__} is not a composition policy",
                field="nvme",
                remedy="use one of the nvme_ placements",
            )
        return self.nvme

    def _able(self, job: Job, free: IntArray, layout: PooledLayout) -> BoolArray:
        """Return a mask of the nodes on which everything except NVMe is available, (n_node,)."""
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
        answer: Placement | Refusal = Refusal("no node")
        local = snapshot.free[layout.nodes, layout.memory] >= job.memory
        for nodes in (able & local, able) if self.local_first else (able,):
            if nodes.any():
                answer = self._compose(job, snapshot, nodes, layout)
                if isinstance(answer, Placement):
                    return self._complete(job, snapshot, answer, devices)
        return answer

    def _why_not(self, job: Job, snapshot: Snapshot) -> Refusal:
        """Return the resource that is short on the whole machine, or else a refusal because no single node has everything."""
        layout, free = pooled_layout(snapshot.machine), snapshot.free
        for kind, owners in layout.kinds.items():
            if job.request(kind) > (there := int((free[owners, layout.device_column] > 0).sum())):
                return Refusal(f"not enough free {kind}", kind, job.request(kind), there)
        if job.request("cores") > (most := int(free[layout.nodes, layout.cores].max())):
            return Refusal("no node has enough free cores", "cores", job.request("cores"), most)
        if job.memory > (most := int(_memory(free[None], layout).max())):
            return Refusal("no node has enough free local and pool memory", "memory", job.memory, most)
        return Refusal("no node has enough cores, memory and devices at once")

    def _compose(self, job: Job, snapshot: Snapshot, able: BoolArray, layout: PooledLayout) -> Placement | Refusal:
        """Choose node, cores and NVMe by the composition policy, to which only the able nodes have free cores."""
        free = snapshot.free.copy()
        free[layout.nodes[~able], layout.cores] = -1
        view = Compositions(snapshot.imagined(snapshot.now, free))
        return self._composition_policy.choose(view.need(job.index), view)

    def _complete(self, job: Job, snapshot: Snapshot, placement: Placement, devices: tuple[int, ...]) -> Placement:
        """Add memory and devices to a placement that has a node and NVMe."""
        machine, free = snapshot.machine, snapshot.free
        layout, rows = pooled_layout(machine), placement.rows()
        node = next(owner for owner in placement.owners() if machine.kind[owner] == Kind.NODE)
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
    """Return the resources that jobs may request, among them the count of nodes, which must be 1."""
    return (*layout.known, "nodes")


def _multi_node_refusal(job: Job) -> Refusal | None:
    """Return the refusal of a job with several nodes, else None."""
    return Refusal("tasks on several nodes are not supported", "nodes", job.nodes, 1) if job.nodes > 1 else None


def _memory(free: IntArray, layout: PooledLayout) -> IntArray:
    """Return the free local and pool MiB of each node, (k, n_node), from free amounts (k, n_owner, n_resource)."""
    pool = np.where(layout.pool >= 0, np.maximum(free[:, layout.pool, layout.memory], 0), 0)
    return np.maximum(free[:, layout.nodes, layout.memory], 0) + pool


@dataclass(frozen=True, eq=False)
class PooledLayout(SharedNodes):
    """Shared nodes and the pools and devices that they reach.

    Attributes
    ----------
    pool : (n_node,) memory pool of each node: the pool of its rack, else of the machine, -1 without one
    kinds : device type -> (n_device,) owners, for the types that are used exclusively (those without bandwidth and storage)
    serves : type -> (n_device,) position of the node that each device serves; `EVERY_NODE`, or `NO_NODE` if its own has left
    nvme : (n_nvme,) the other devices
    cores, memory, device_column, storage : columns, -1 if the machine does not have the resource
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
        """Resources that jobs may request."""
        return (*_ON_NODES, *_ON_NVME, *self.kinds)

    def reaches(self, machine: Machine, node: int, device: int) -> bool:
        """Return whether a device serves a node."""
        return int(machine.home[device]) in (-1, node)

    def nearest(self, machine: Machine, node: int, kind: str, free: IntArray, most: int) -> list[int]:
        """Return up to `most` free devices of a type that serve a node: its own, then its rack's, then others, lowest first."""
        owners, home = self.kinds[kind], machine.home[self.kinds[kind]]
        able = owners[(free[owners, self.device_column] > 0) & ((home == -1) | (home == node))]
        ranked = np.lexsort((able, machine.rack[able] != machine.rack[node], machine.home[able] != node))
        devices: list[int] = able[ranked[:most]].tolist()
        return devices


@lru_cache(maxsize=8)  # a machine is compared by identity
def pooled_layout(machine: Machine) -> PooledLayout:
    """Read the layout of a machine. Raises InputError if it has no shared nodes with cores and memory."""
    shared = shared_nodes(machine, *_ON_NODES)
    is_nvme = np.isin(shared.type, shared.type[shared.having(*_ON_NVME)])  # including devices that have left
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
    """Return the position of the node that each device serves, (n_device,), given the nodes that contain them, (n_device,)."""
    place = np.minimum(np.searchsorted(nodes, home), len(nodes) - 1)
    return np.where(home == -1, EVERY_NODE, np.where(nodes[place] == home, place, NO_NODE))


_ON_NODES, _ON_NVME = ("cores", "memory"), ("bandwidth", "storage")
