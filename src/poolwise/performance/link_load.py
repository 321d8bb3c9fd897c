"""Owners that a placement uses to reach devices over the network, and the load of links.

Source: flow-placement spec, "Costs" (load of the home machine's and the device machine's link).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model import Kind, Machine, Placement


@dataclass(frozen=True, slots=True)
class UsedOwners:
    """Nodes, devices and links that a placement uses, ascending.

    `nodes` are those on which its tasks compute, `device_nodes` those to which its devices are attached, `links` those on the
    paths to its remote devices (none if every device is local to its task), and `shares` the traffic on each of the links in
    units of one task's traffic. `servers` counts the locations that serve remote devices: nodes, or vertices outside them.
    """

    nodes: tuple[int, ...]
    devices: tuple[int, ...]
    device_nodes: tuple[int, ...]
    links: tuple[int, ...]
    shares: tuple[float, ...]
    servers: int

    @property
    def remote(self) -> bool:
        """True if any device is reached over the network."""
        return self.servers > 0


def sites(placement: Placement, machine: Machine) -> UsedOwners:
    """Return the owners that a placement uses. A device is remote if it is at a different vertex from its task's nodes."""
    return _sites(machine, placement.task.tobytes(), placement.owner.tobytes())


@lru_cache(maxsize=1 << 14)
def _sites(machine: Machine, task: bytes, owner: bytes) -> UsedOwners:
    """Compute `sites`, cached by the bytes of the rows, since every speed change on the path needs it."""
    rows = list(zip(np.frombuffer(task, dtype=np.int64).tolist(), np.frombuffer(owner, dtype=np.int64).tolist(), strict=True))
    kind = machine.kind.tolist()
    nodes = sorted({o for _, o in rows if kind[o] == Kind.NODE})
    devices = sorted({o for _, o in rows if kind[o] == Kind.DEVICE})
    away = _away(machine, rows, kind)
    access, load = access_links(machine), dict[int, float]()
    for t, node, device in away:
        share = 1.0 / sum(other == t for other, _, _ in away)
        for link in {int(access[node]), int(access[device])} - {-1}:
            load[link] = load.get(link, 0.0) + share
    links = sorted(load)
    attached = sorted({int(machine.home[o]) for o in devices} - {-1})
    far = {(int(machine.home[o]), -1 if machine.fabric is None else int(machine.fabric.vertex[o])) for _, _, o in away}
    return UsedOwners(
        tuple(nodes), tuple(devices), tuple(attached), tuple(links), tuple(load[link] for link in links), len(far)
    )


def _away(machine: Machine, rows: list[tuple[int, int]], kind: list[int]) -> list[tuple[int, int, int]]:
    """Return (task, lowest node of the task, device) for each device that is not at any of its task's nodes."""
    remote_devices = []
    place = np.full(machine.n_owner, -1) if machine.fabric is None else machine.fabric.vertex
    for task, device in rows:
        if kind[device] == Kind.DEVICE:
            nodes = sorted({o for t, o in rows if t == task and kind[o] == Kind.NODE})
            here = any(int(machine.home[device]) == n or (place[device] >= 0 and place[device] == place[n]) for n in nodes)
            if nodes and not here:
                remote_devices.append((task, nodes[0], device))
    return remote_devices


@lru_cache(maxsize=8)
def access_links(machine: Machine) -> IntArray:
    """Return the link that leads to each owner, (n_owner,): the first one at its vertex, -1 without a network."""
    link = np.full(machine.n_owner, -1, dtype=np.int64)
    fabric = machine.fabric
    if fabric is not None:
        first: dict[int, int] = {}
        for owner, ends in zip(fabric.link.tolist(), fabric.ends.tolist(), strict=True):
            for vertex in ends:
                first.setdefault(vertex, owner)
        for owner, vertex in enumerate(fabric.vertex.tolist()):
            if machine.kind[owner] != Kind.LINK:
                link[owner] = first.get(vertex, -1)
    link.setflags(write=False)
    return link


def link_loads(used: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return the loads of links in [0, 1], (n,), from MB/s; a link without bandwidth is full as soon as it is used."""
    share = np.where(used > 0, 1.0, 0.0)
    np.divide(used, capacity, out=share, where=capacity > 0)
    bounded: FloatArray = np.minimum(share, 1.0)
    return bounded
