"""Placement of tasks on shared nodes with shares of devices that belong to their own node, a pool, or any node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.table_columns import Column, Kinds
from poolwise.policies.placement.devices.layout import ShareLayout, share_layout
from poolwise.policies.placement.requests import check_requests, foreign_request
from poolwise.registry import register

_AVOID = 1000.0
"""Penalty that exceeds any best-fit score: free devices are kept for tasks that request them."""


@register("placements", "device_shares")
@dataclass(frozen=True)
class DeviceShares(PlacementPolicy):
    """Best fit on shared nodes with fractional devices: a device may serve several tasks, each with a share of it.

    A task takes its node resources on one node, or on each of as many different `nodes` as it requests. It takes equal shares
    from as many devices as the attribute "gpus" states, or from the fewest that hold them if there is no such attribute. It
    accepts the device types in its attribute "gpu_spec" ("T4|P100"), or any type if that is empty. On a node it takes the
    fullest devices with room, so that whole devices stay free. It takes the node with the least left over (best fit), with each
    resource normalized by the largest amount on any node. Tasks that take no device from their node avoid nodes with free
    devices.

    Parameters
    ----------
    pooled
        Allow a task whose node has everything except devices to take devices from anywhere, the most plentiful types first;
        devices of its own node are preferred. Otherwise devices inside a node serve only that node, and devices outside nodes
        (of a rack or of the machine) serve all nodes.
    resource
        Resource in which devices are shared.
    shared
        Let several tasks share a device; otherwise a task that requests a share of a device gets all of it.
    """

    pooled: bool = False
    resource: str = "gpu_milli"
    shared: bool = True

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for a machine without shared nodes, and for requests that the machine can never meet."""
        check_requests(jobs, self._known(share_layout(machine, self.resource)))

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place each node of each task in turn. Raises InputError if the machine has no shared nodes."""
        layout = share_layout(snapshot.machine, self.resource)
        if (foreign := foreign_request(job, self._known(layout))) is not None:
            return foreign
        need = self._need(job, layout)
        free = snapshot.free[np.ix_(layout.nodes, layout.columns)]
        left = snapshot.free[layout.devices, layout.share] if len(layout.devices) else np.zeros(0, dtype=np.int64)
        rows: list[tuple[int, int, int, int]] = []
        for task in job.numbers:
            offered = free.copy()
            for _ in range(job.nodes):
                placement = self._choose(need, layout, offered, left)
                if isinstance(placement, Refusal):
                    return placement
                node, devices = placement
                free[node] -= need.node
                offered[node] = -1  # a task uses different nodes
                left[devices] -= need.each
                rows += _rows(task, node, devices, need, layout)
        return Placement.of(rows)

    def _known(self, layout: ShareLayout) -> tuple[str, ...]:
        """Return the resources that jobs may request."""
        return (*layout.names, *((self.resource,) if layout.share >= 0 else ()), "nodes")

    def prefilter(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Return a mask of jobs, (k,): False if no node can hold one task and reach its devices."""
        n = max(len(jobs), len(free)) if len(jobs) else 0
        layout, rows = share_layout(snapshot.machine, self.resource), np.broadcast_to(jobs, (n,))
        table, mask = snapshot.table, np.zeros(n, dtype=np.bool_)
        requests = self._device_requests(table, layout)
        kinds = requests.of[rows]
        for kind in np.unique(kinds).tolist():
            mine = np.flatnonzero(kinds == kind)
            states = free[mine] if len(free) > 1 else free
            able = self._reaching(requests.value[kind], layout, states)
            for name, k in zip(layout.names, layout.columns.tolist(), strict=True):
                able = able & (states[:, layout.nodes, k] >= table.request(name)[rows[mine], None])
            mask[mine] = able.any(axis=1)
        return mask

    def _reaching(self, shape: tuple[int, int, str], layout: ShareLayout, free: IntArray) -> BoolArray:
        """Return whether each node reaches the devices of one task, (s, n_node), in states (s, n_owner, n_resource)."""
        count, each, spec = shape
        if not count:
            return np.ones((len(free), len(layout.nodes)), dtype=np.bool_)
        fit = (free[:, layout.devices, layout.share] >= each) & layout.accepted(spec)
        reached = fit if self.pooled else fit & (layout.home < 0)
        inside = np.stack([layout.on_nodes(fitting) for fitting in fit])
        able: BoolArray = (inside >= count) | (reached.sum(axis=1) >= count)[:, None]
        return able

    def _need(self, job: Job, layout: ShareLayout) -> _TaskRequest:
        requests = self._device_requests(job.table, layout)
        count, each, spec = requests.value[int(requests.of[job.index])]
        node = np.array([job.request(name) for name in layout.names], dtype=np.int64)
        return _TaskRequest(node, count, each, layout.accepted(spec), spec)

    def _device_requests(self, table: JobTable, layout: ShareLayout) -> Kinds:
        """Group jobs into kinds by their requests for devices: number of devices, share of each, and accepted types."""
        whole, of_nodes = layout.whole, self.resource in layout.names
        return table.kinds(
            ("device shares", self, whole, of_nodes), lambda table, rows: self._shares(table, rows, whole, of_nodes)
        )

    def _shares(self, table: JobTable, rows: slice, whole: int, of_nodes: bool) -> tuple[Column, Column, Column]:
        """Return devices of one task, share of each and accepted types, (k,) each; no devices if nodes have the resource."""
        total = table.request(self.resource)[rows] * (not of_nodes)
        gpus, spec = (table.attributes.get(name) for name in ("gpus", "gpu_spec"))
        count = np.zeros_like(total) if gpus is None else gpus[rows].astype(np.int64)
        count = np.where(total > 0, np.where(count < 1, -(-total // max(whole, 1)), count), 0)
        each = -(-total // np.maximum(count, 1)) if self.shared else np.where(count > 0, whole, 0)
        types = np.full(len(total), "") if spec is None else np.where(total > 0, spec[rows].astype(np.str_), "")
        return count, each, types

    def _choose(
        self, need: _TaskRequest, layout: ShareLayout, free: IntArray, left: IntArray
    ) -> tuple[int, IntArray] | Refusal:
        """Return the position of a node and positions of devices, given free amounts (n_node, n_resource) and (n_device,)."""
        room: BoolArray = np.all(free >= need.node, axis=1)
        if not room.any():
            return _no_node(need, layout, free)
        over = ((free - need.node) / layout.largest).sum(axis=1)
        idle = layout.on_nodes(left) / max(layout.whole, 1)
        if not need.count:
            return _argmin_where(over + _AVOID * idle, room), np.zeros(0, dtype=np.int64)
        fit: BoolArray = np.logical_and(need.accepted, left >= need.each)
        inside: BoolArray = np.logical_and(room, layout.on_nodes(fit) >= need.count)
        if inside.any():
            node = _argmin_where(over + idle, inside)
            return node, _fullest(fit & (layout.home == node), need.count, left, layout)
        reached = fit if self.pooled else fit & (layout.home < 0)
        if int(reached.sum()) < need.count:
            return self._too_few(need, layout, fit, reached, room)
        node = _argmin_where(over + _AVOID * idle, room)
        return node, _fullest(reached, need.count, left, layout)

    def _too_few(self, need: _TaskRequest, layout: ShareLayout, fit: BoolArray, reached: BoolArray, room: BoolArray) -> Refusal:
        kind = f" of type {need.spec}" if need.spec else ""
        where, most = "anywhere", int(reached.sum())
        if not self.pooled:
            where = "on a node with room for all else" + (", or in a pool" if (layout.home < 0).any() else "")
            most = max(most, int(layout.on_nodes(fit)[room].max(initial=0)))
        return Refusal(f"too few devices{kind} with {need.each} {self.resource} free {where}", "devices", need.count, most)


@dataclass(frozen=True, eq=False, slots=True)
class _TaskRequest:
    """Request of one task: (n_resource,) amounts of its node, and a share `each` of `count` accepted (n_device,) devices."""

    node: IntArray
    count: int
    each: int
    accepted: BoolArray
    spec: str


def _argmin_where(score: FloatArray, able: BoolArray) -> int:
    """Return the position of the lowest score among those that are able, the first on ties."""
    return int(np.argmin(np.where(able, score, np.inf)))


def _fullest(fit: BoolArray, count: int, left: IntArray, layout: ShareLayout) -> IntArray:
    """Return the (count,) fitting devices with the least room left; on ties, devices of plentiful types come first."""
    there = np.flatnonzero(fit)
    key = left[there] * (len(fit) + 1) + layout.rank[there]
    if count < len(there):
        there, key = (array[np.argpartition(key, count - 1)[:count]] for array in (there, key))
    return there[np.argsort(key)]


def _rows(
    task: int, node: int, devices: IntArray, need: _TaskRequest, layout: ShareLayout
) -> Iterator[tuple[int, int, int, int]]:
    owner, columns = int(layout.nodes[node]), layout.columns.tolist()
    taken = [(task, owner, column, amount) for column, amount in zip(columns, need.node.tolist(), strict=True) if amount]
    yield from taken or [(task, owner, columns[0], 0)]
    yield from ((task, device, layout.share, need.each) for device in layout.devices[devices].tolist())


def _no_node(need: _TaskRequest, layout: ShareLayout, free: IntArray) -> Refusal:
    """Return the resource that no node has enough of, or a refusal for the combination of all of them."""
    most = free.max(axis=0)
    short = np.flatnonzero(most < need.node)
    if len(short):
        k = int(short[0])
        return Refusal(f"no node has enough {layout.names[k]}", layout.names[k], int(need.node[k]), int(most[k]))
    return Refusal("no node has enough of all requested resources at once")
