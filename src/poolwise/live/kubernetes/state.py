"""The machine, the jobs and the runs of a cluster as schedulers count them; built anew when its shape changes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.device_types import device_types
from poolwise.live.kubernetes.devices import DeviceId, Part, Published
from poolwise.live.kubernetes.job_columns import JobColumns
from poolwise.live.kubernetes.machine import (
    BANDWIDTH,
    DEVICES,
    MEMORY,
    NODES,
    STORAGE,
    ClusterLayout,
    ClusterParts,
    NodeView,
    Shape,
    is_nvme,
    is_pool,
    shape_of,
    space_of,
    usable,
    view_for,
)
from poolwise.live.kubernetes.node_constraints import NodeConstraints, kept_off
from poolwise.live.kubernetes.objects import ResourceClaim, Toleration
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.quantity import needed
from poolwise.live.logs import say
from poolwise.model import Placement, Run
from poolwise.model.run_table import RunTable


class ClusterState:
    """What schedulers see.

    Parameters
    ----------
    mirror
        The cluster.
    scheduler
        For which it is seen: as nodes that pods share, or as whole nodes, and with the resources that it looks after.
    layout
        What an operator says of the cluster.

    Attributes
    ----------
    shape : the machine
    table : the jobs
    capacity, held : (n_owner, n_resource) what there is beside what others use, and what runs hold
    runs : at work, or on their way
    ours : key of a pod that a run counts -> its job
    busy : node -> key of a pod that a run counts there -> its job
    avoided : device that is left alone for a while, since attaching it failed -> until when, ns of the monotonic clock
    traffic : (n_owner,) MB/s over links, as measured; None where nobody measures
    """

    def __init__(self, mirror: ClusterCache, scheduler: Scheduler, layout: ClusterLayout, epoch: int) -> None:
        self.mirror, self.scheduler, self.layout = mirror, scheduler, layout
        self.view: NodeView | None = layout.view
        self.types: dict[DeviceId, str] = {}
        self.classes: dict[str, str] = {}  # class -> type of its devices
        self._columns = JobColumns(mirror, scheduler, epoch)
        self.shape = Shape.of_nothing()
        self.table = self._columns.anew(self.shape, {}, [], 0)
        self.capacity = self.shape.machine.capacity.copy()
        self.held = np.zeros_like(self.capacity)
        self.runs = RunTable(self.capacity.size)
        self.ours: dict[str, PodJob] = {}
        self.busy: dict[str, dict[str, PodJob]] = {}
        self.avoided: dict[DeviceId, int] = {}
        self.traffic: FloatArray | None = None
        self._tolerated = frozenset[Toleration]()

    @property
    def free(self) -> IntArray:
        """(n_owner, n_resource) what is free; negative where runs hold more than there is by now."""
        found: IntArray = self.capacity - self.held
        return found

    # Shape

    def reshape(self, jobs: Sequence[PodJob]) -> dict[int, int]:
        """Build machine, table and runs anew for the jobs that are there; returns old row -> new row."""
        before, wheres = self.shape, {job.demand.where for job in jobs}
        self.shape = self._shape(wheres)
        rows = {job.row: k for k, job in enumerate(jobs) if job.row >= 0}
        for k, job in enumerate(jobs):
            job.row = k
        self.table = self._columns.anew(self.shape, self.classes, jobs, self.table.edition + 1)
        self._renew(before, rows)
        return rows

    def _shape(self, wheres: Iterable[NodeConstraints]) -> Shape:
        mirror = self.mirror
        nodes = [node for _, node in sorted(mirror.nodes.items()) if usable(node)]
        self.types, self.classes = device_types(mirror)
        self._tolerated = tolerations(mirror.claims.values())
        said = sorted(wheres, key=lambda where: (where.labels, where.selector, where.tolerations))
        parts = ClusterParts(nodes, mirror.inventory, self.types, said, mirror.links)
        if self.view is None and nodes:
            self.view = view_for(self.scheduler, parts, self.layout)
        shape = shape_of(parts, self.layout, self.view or "shared")
        for name, why in sorted(shape.left_out.items()):
            if self.shape.left_out.get(name) != why:
                say("left out", logging.WARNING, name=name, why=why)
        return shape

    def _renew(self, before: Shape, rows: Mapping[int, int]) -> None:
        """Count runs and capacities on the machine as it is now; owners are found again by their names."""
        machine, old = self.shape.machine, before.machine
        owners = {k: new for k, name in enumerate(old.owners) if (new := machine._numbers.get(name)) is not None}
        columns = {k: machine.resources.index(name) for k, name in enumerate(old.resources) if name in machine.resources}
        runs, self.runs = list(self.runs), RunTable(machine.capacity.size)
        self.held = np.zeros_like(machine.capacity)
        self.capacity = machine.capacity.copy()
        for run in runs:
            kept = [
                (task, owners[owner], columns[resource], amount)
                for task, owner, resource, amount in run.placement.rows()
                if owner in owners and resource in columns
            ]
            self.add(replace(run, job=rows[run.job], placement=Placement.of(kept)))
        for name in self.shape.node_owner:
            self.look_at(name)
        for id, owner in self.shape.device_owner.items():
            if (device := self.mirror.inventory.devices.get(id)) is not None:
                self._look_at(device, owner)
        self.look_at_links()

    # Jobs

    def add_jobs(self, jobs: Sequence[PodJob]) -> bool:
        """Append jobs to the table.

        False where it has no column, or no set of nodes, for something that they ask for, or they tolerate what nobody did.
        """
        if not self._columns.can_hold(jobs) or not self._tolerations(jobs) <= self._tolerated:
            return False
        first = len(self.table)
        for k, job in enumerate(jobs):
            job.row = first + k
        self.table.append(self._columns.table(jobs, self.table.edition))
        return True

    def _tolerations(self, jobs: Iterable[PodJob]) -> frozenset[Toleration]:
        keys = (key for job in jobs for keys in job.claims for key in keys)
        return tolerations(claim for key in keys if (claim := self.mirror.claims.get(key)) is not None)

    # Amounts

    def look_at_links(self) -> None:
        """Take what goes over links from the mirror."""
        self.traffic = None
        if self.mirror.links and self.shape.links:
            self.traffic = np.zeros(self.shape.machine.n_owner)
            for node, traffic in self.mirror.links.items():
                if node in self.shape.links:
                    self.traffic[self.shape.links[node]] = traffic.used
            self.traffic.setflags(write=False)

    def look_at(self, node: str) -> bool:
        """Count anew what others than runs take of a node; whether that has changed."""
        owner = self.shape.node_owner.get(node)
        if owner is None:
            return False
        row = self.shape.machine.capacity[owner].copy()
        if self.shape.view == "whole":
            taken = sum(self._lost(name) for name in self.shape.nodes[owner])
            row[self.shape.column(NODES)] -= taken
        else:
            for key, amounts in self.mirror.on_node.get(node, {}).items():
                if key in self.ours:
                    continue
                for name, amount in amounts.items():
                    if (column := self.shape.column(name)) >= 0:
                        row[column] -= amount
        changed = not np.array_equal(self.capacity[owner], row)
        self.capacity[owner] = row
        return changed

    def _lost(self, node: str) -> bool:
        """Whether no run of ours has a whole node, or can have it."""
        if node in self.shape.barred:
            return node not in self.busy and not any(key in self.ours for key in self.mirror.on_node.get(node, ()))
        return self.taken_by_others(node)

    def taken_by_others(self, node: str) -> bool:
        """Whether pods that are not ours, and belong to no daemon, ask for something of a node."""
        for key, amounts in self.mirror.on_node.get(node, {}).items():
            daemon = any(owner.kind == "DaemonSet" for owner in self.mirror.pods[key].metadata.owner_references)
            if key not in self.ours and not daemon and len(amounts) > 1:
                return True
        return False

    def look_at_device(self, id: DeviceId) -> list[int]:
        """Count anew what is free of a device, and of those that share counters with it; owners of which that has changed."""
        device = self.mirror.inventory.devices.get(id)
        if device is None:
            return []
        rivals = ((one, self.shape.device_owner.get(one.id)) for one in self.mirror.inventory.rivals(device))
        return [owner for one, owner in rivals if owner is not None and self._look_at(one, owner)]

    def _look_at(self, device: Published, owner: int) -> bool:
        """Count anew what is free of one device; whether that has changed."""
        row = self.held[owner] + self._left(device, owner)
        changed = not np.array_equal(self.capacity[owner], row)
        self.capacity[owner] = row
        return changed

    def _left(self, device: Published, owner: int) -> IntArray:
        """(n_resource,) what is free of a device; negative where it is not to be used again after the runs that hold it."""
        usage, none = self.mirror.usage, np.zeros(self.capacity.shape[1], dtype=np.int64)
        has: IntArray = self.shape.machine.capacity[owner].copy()
        if device.id in self.avoided or kept_off(device.device.taints, self._tolerated) is not None:
            owed: IntArray = -self.held[owner]
            return owed
        if not device.shared:
            busy = usage.busy(device.id) or not usage.counters_left(device, self.mirror.inventory)
            return none if busy else has
        if device.id in usage.whole:
            return none
        for name, amount in usage.consumed.get(device.id, {}).items():
            column = self.shape.column(STORAGE if name in ("space", STORAGE) else name)
            if column >= 0:
                has[column] -= needed(name, str(float(amount)))
        return np.maximum(has, 0)

    def taken_on(self, node: str) -> dict[str, int]:
        """What pods take of a node: those that are there, and those on their way."""
        taken: dict[str, int] = {}
        there = self.mirror.on_node.get(node, {})
        coming = [job.demand.amounts for key, job in self.busy.get(node, {}).items() if key not in there]
        for amounts in (*there.values(), *coming):
            for name, amount in amounts.items():
                taken[name] = taken.get(name, 0) + amount
        return taken

    # Runs

    def rows_of(
        self, task: int, node: str, amounts: Mapping[str, int], parts: Iterable[Part]
    ) -> list[tuple[int, int, int, int]]:
        """What a pod takes of a node and of devices, as rows of a placement."""
        shape = self.shape
        if shape.view == "whole":
            rows = [(task, shape.node_owner[node], shape.column(NODES), 1)]
        else:
            found = [(shape.column(name), amount) for name, amount in amounts.items()]
            rows = [
                (task, shape.node_owner[node], column, amount) for column, amount in sorted(found) if column >= 0 and amount
            ]
            rows = rows or [(task, shape.node_owner[node], 0, 0)]
        for part in parts:
            owner = shape.device_owner.get(part.id)
            if owner is not None:
                rows += [(task, owner, column, amount) for column, amount in self._taken(part)]
        return rows

    def _taken(self, part: Part) -> list[tuple[int, int]]:
        """Columns and amounts that a part of a device is."""
        device = self.mirror.inventory.devices.get(part.id)
        if part.amounts is None:
            return [(self.shape.column(DEVICES), 1)]
        if device is None:
            return []
        amounts = dict(part.amounts)
        if is_nvme(device):
            space = space_of(device.device.capacity)
            found = [
                (BANDWIDTH, needed(BANDWIDTH, str(float(amounts[BANDWIDTH])))),
                (STORAGE, needed(space, str(float(amounts[space])))),
            ]
        elif is_pool(device):
            found = [(MEMORY, needed(MEMORY, str(float(amounts[MEMORY]))))]
        else:
            found = []
        return [(self.shape.column(name), amount) for name, amount in found]

    def add(self, run: Run) -> None:
        """Let a run hold what it takes."""
        run.placement.give_to(self.held)
        cells = run.placement.owner * len(self.shape.machine.resources) + run.placement.resource
        self.runs.add(run, cells, ())

    def remove(self, number: int) -> Run:
        """Let a run give back what it held."""
        run = self.runs.remove(number)
        run.placement.take_from(self.held)
        return run


def tolerations(claims: Iterable[ResourceClaim]) -> frozenset[Toleration]:
    """The taints of devices that claims tolerate."""
    requests = (request for claim in claims for request in claim.spec.devices.requests)
    return frozenset(one for request in requests for wanted in request.alternatives for one in wanted.tolerations)
