"""Shared nodes, and devices of which a job may take a share: the shape on which shares of devices are placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Kind, Machine


@dataclass(frozen=True, eq=False)
class ShareLayout:
    """Nodes with what they give away, and devices that have a resource of which a job may take a part.

    Attributes
    ----------
    nodes : (n_node,) owners
    columns : (n_resource,) columns of the machine that nodes have, and `names` what they are called
    largest : (n_resource,) most that a node has of each, by which amounts are made comparable
    devices : (n_device,) owners
    share : column of the machine of which devices give parts
    whole : most that a device has of it
    home : (n_device,) position of each device's node in `nodes`, -1 where it is in none
    type : (n_device,) names
    rank : (n_device,) devices of the most plentiful type first, then by owner
    """

    nodes: IntArray
    columns: IntArray
    names: tuple[str, ...]
    largest: FloatArray
    devices: IntArray
    share: int
    whole: int
    home: IntArray
    type: NDArray[np.str_]
    rank: IntArray
    _accepted: dict[str, BoolArray] = field(default_factory=dict)

    def accepted(self, spec: str) -> BoolArray:
        """(n_device,) devices whose type a job accepts: types joined by "|", any type where the text is empty."""
        found = self._accepted.get(spec)
        if found is None:
            wanted = {name.strip() for name in spec.split("|")} - {""}
            found = self._accepted[spec] = np.isin(self.type, sorted(wanted)) if wanted else np.ones(len(self.type), np.bool_)
        return found

    def on_nodes(self, values: IntArray | BoolArray) -> FloatArray:
        """(n_node,) sums of (n_device,) values over the devices of each node."""
        inside = self.home >= 0
        found = np.bincount(self.home[inside], weights=values[inside], minlength=len(self.nodes))
        return found.astype(np.float64)


@lru_cache(maxsize=8)
def share_layout(machine: Machine, resource: str) -> ShareLayout:
    """Read a machine; raises InputError for one without shared nodes."""
    nodes = machine.of_kind(Kind.NODE)
    columns = np.flatnonzero(machine.capacity[nodes].any(axis=0))
    if not len(nodes) or "nodes" in machine.resources or not len(columns):
        raise InputError(
            f"machine '{machine.name}' has no shared nodes with resources",
            field="node",
            remedy='write allocation = "shared" and cores in every [[node]]',
        )
    share = machine.resources.index(resource) if resource in machine.resources else -1
    devices = machine.of_kind(Kind.DEVICE)
    devices = devices[machine.capacity[devices, share] > 0] if share >= 0 else devices[:0]
    number: Mapping[int, int] = {node: k for k, node in enumerate(nodes.tolist())}
    kind = np.array([machine.type[device] for device in devices.tolist()], dtype=np.str_)
    plenty = {name: int((kind == name).sum()) for name in set(kind.tolist())}
    rarity = np.array([-plenty[name] for name in kind.tolist()], dtype=np.int64)
    order = np.lexsort((devices, kind, rarity))
    rank = np.empty(len(devices), dtype=np.int64)
    rank[order] = np.arange(len(devices))
    return ShareLayout(
        nodes,
        columns,
        tuple(machine.resources[column] for column in columns.tolist()),
        machine.capacity[np.ix_(nodes, columns)].max(axis=0).astype(np.float64),
        devices,
        share,
        int(machine.capacity[devices, share].max(initial=0)) if share >= 0 else 0,
        np.array([number.get(int(machine.home[device]), -1) for device in devices.tolist()], dtype=np.int64),
        kind,
        rank,
    )
