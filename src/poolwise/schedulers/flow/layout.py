"""What a flow scheduler sees of a machine and of what its jobs ask for: nodes, kinds of devices, classes of jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Kind, Machine, Workload

DEVICES = "devices"
ON_LINKS = ("bandwidth",)
"""Requests that neither nodes nor devices give away: what a task sends over links is looked at, not reserved."""


@dataclass(frozen=True, eq=False)
class FlowLayout:
    """Nodes that jobs share, and devices by kind.

    Attributes
    ----------
    nodes : (n_node,) owners
    columns : n_resource columns of the machine that nodes have, and `names` what they are called
    kinds : kinds of devices, one phase each, in this order
    devices : kind -> (n_device,) owners, ascending
    spot : kind -> (n_device,) where each stands: the position of its node in `nodes`, or n_node + k for the k-th place
        outside nodes
    n_spot : nodes and places outside them
    spot_owners : (n_spot,) an owner that stands at each: the node, or a device
    device_column : column of the machine that says whether a device is free, -1 without devices
    """

    machine: Machine
    nodes: IntArray
    columns: IntArray
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    devices: dict[str, IntArray]
    spot: dict[str, IntArray]
    spot_owners: IntArray
    device_column: int

    @classmethod
    def of(cls, machine: Machine, kinds: tuple[str, ...] = ()) -> FlowLayout:
        """Look at a machine; `kinds` are device types, all that it has (by name) where none are given.

        Raises InputError for a machine without shared nodes, UnknownNameError for a kind that it does not have.
        """
        nodes = machine.of_kind(Kind.NODE)
        if not len(nodes) or "nodes" in machine.resources:
            raise InputError(
                f"machine '{machine.name}' has no shared nodes, or nodes that are taken whole",
                field="node",
                remedy='write allocation = "shared" and cores in every [[node]]',
            )
        column = machine.resource(DEVICES) if DEVICES in machine.resources else -1
        columns = np.flatnonzero(machine.capacity[nodes].any(axis=0))
        if not len(columns):
            raise InputError(
                f"the nodes of machine '{machine.name}' have nothing to give", field="node", remedy="give them cores"
            )
        counted = [o for o in machine.of_kind(Kind.DEVICE).tolist() if column >= 0 and machine.capacity[o, column] > 0]
        known = sorted({machine.type[o] for o in counted})
        for name in kinds:
            if name not in known:
                raise UnknownNameError.of("kind of device", name, known, field="kinds")
        number = {node: k for k, node in enumerate(nodes.tolist())}
        outside: dict[tuple[int, int], int] = {}  # (rack, vertex) of a place outside nodes -> a device there
        devices, spot = {}, {}
        for kind in kinds or known:
            mine = [o for o in counted if machine.type[o] == kind]
            devices[kind] = np.array(mine, dtype=np.int64)
            spot[kind] = np.array([_spot(machine, o, number, outside) for o in mine], dtype=np.int64)
        return cls(
            machine,
            nodes,
            columns,
            tuple(machine.resources[c] for c in columns.tolist()),
            tuple(kinds or known),
            devices,
            spot,
            np.concatenate([nodes, np.array(list(outside.values()), dtype=np.int64)]),
            column,
        )

    @property
    def n_spot(self) -> int:
        """Nodes and places outside them."""
        return len(self.spot_owners)

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources of nodes, then kinds of devices: the columns of demands and free amounts."""
        return (*self.names, *self.kinds)

    def free_devices(self, free: IntArray, kind: str) -> BoolArray:
        """(n_device,) which devices of a kind are free in (n_owner, n_resource) amounts."""
        there: BoolArray = free[self.devices[kind], self.device_column] > 0
        return there

    def amounts(self, free: IntArray) -> IntArray:
        """(n_spot, n_resource + n_kind) what is free in (n_owner, n_resource) amounts: of nodes, and devices standing there."""
        found = np.zeros((self.n_spot, len(self.resources)), dtype=np.int64)
        found[: len(self.nodes), : len(self.columns)] = free[np.ix_(self.nodes, self.columns)]
        for k, kind in enumerate(self.kinds):
            spots = self.spot[kind][self.free_devices(free, kind)]
            found[:, len(self.columns) + k] = np.bincount(spots, minlength=self.n_spot)
        return found

    def position(self) -> IntArray:
        """(n_node, 2) where each node stands."""
        return self.machine.position[self.nodes]


def _spot(machine: Machine, device: int, number: dict[int, int], outside: dict[tuple[int, int], int]) -> int:
    """Position of a device's node, or a number beyond those of the nodes for each place on the network outside them."""
    home = int(machine.home[device])
    if home in number:
        return number[home]
    place = int(machine.rack[device]), -1 if machine.fabric is None else int(machine.fabric.vertex[device])
    outside.setdefault(place, device)
    return len(number) + list(outside).index(place)


def room(free: IntArray, demand: IntArray, most: int) -> IntArray:
    """(n_class, n_place) tasks that ask for (n_class, n_resource) and fit on (n_place, n_resource) free, at most `most`."""
    found = np.full((len(demand), len(free)), most, dtype=np.int64)
    for k in np.flatnonzero(demand.any(axis=0)).tolist():
        asked = demand[:, k]
        fit = free[None, :, k] // np.maximum(asked, 1)[:, None]
        np.minimum(found, fit, out=found, where=(asked > 0)[:, None])
    return np.maximum(found, 0)


@dataclass(frozen=True, eq=False)
class Shapes:
    """What jobs ask for, and the classes of jobs that ask for the same.

    Attributes
    ----------
    demand : (n_job, n_resource + n_kind) of one task
    of : (n_job,) class of each job
    first : (n_class,) a job of each class
    tasks : (n_class,) tasks of a job
    kind : n_class names of what the jobs are
    pinned : (n_class,) position of the node that a class must run on, -1 for any
    data, data_at : (n_class,) bytes and (n_class, 2) position of input data
    """

    demand: IntArray
    of: IntArray
    first: IntArray
    tasks: IntArray
    kind: tuple[str, ...]
    pinned: IntArray
    data: FloatArray
    data_at: IntArray

    @classmethod
    def read(cls, workload: Workload, layout: FlowLayout) -> Shapes:
        """Read a workload. Raises InputError where a job asks for what the machine has not."""
        for name, asked in workload.requests.items():
            if name not in (*layout.resources, *ON_LINKS) and asked.any():
                job = int(workload.id[int(np.argmax(asked > 0))])
                raise InputError(
                    f"job {job} asks for {name}, of which machine '{layout.machine.name}' has none on shared nodes or devices",
                    field=name,
                    remedy=f"it has: {', '.join(layout.resources)}",
                )
        demand = np.stack([workload.request(name) for name in layout.resources], axis=1)
        text = workload.attributes.get("kind")
        kind = np.zeros(len(workload), dtype=np.int64) if text is None else np.unique(text, return_inverse=True)[1]
        pinned = _pinned(workload, layout)
        data = np.stack([_numbers(workload, name) for name in ("data_size", "data_x", "data_y")], axis=1).astype(np.int64)
        keys = np.column_stack([demand, workload.tasks, kind, pinned, data])
        _, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        names = tuple("" if text is None else str(text[job]) for job in first.tolist())
        place = pinned[first], data[first, 0].astype(np.float64), data[first, 1:]
        return cls(demand, of.reshape(-1), first, workload.tasks[first], names, *place)


def _pinned(workload: Workload, layout: FlowLayout) -> IntArray:
    """(n_job,) position of the node that the attribute "pinned" names by its owner's number, -1 without."""
    column = workload.attributes.get("pinned")
    if column is None:
        return np.full(len(workload), -1, dtype=np.int64)
    owner = column.astype(np.int64)
    number = np.full(layout.machine.n_owner + 1, -1, dtype=np.int64)
    number[layout.nodes] = np.arange(len(layout.nodes))
    wrong = (owner < -1) | (owner >= layout.machine.n_owner)
    wrong |= (owner >= 0) & (number[np.where(wrong, -1, owner)] < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"job {int(workload.id[row])} is pinned to owner {int(owner[row])}, which is no node",
            field="pinned",
            remedy="name a node by its number among the machine's owners, -1 for any",
        )
    found: IntArray = number[owner]
    return found


def _numbers(workload: Workload, name: str) -> FloatArray:
    column = workload.attributes.get(name)
    return np.zeros(len(workload)) if column is None else column.astype(np.float64)
