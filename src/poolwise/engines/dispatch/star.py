"""Star network of ports, rack switches and one core switch: a transfer's time depends only on whether it leaves the rack."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.model import Machine

Way = tuple[int, int, int]
"""Bandwidth (MB/s), latency (ns) and links of a path; 0 MB/s without a path."""


@dataclass(frozen=True, slots=True)
class StarNetwork:
    """Paths within a rack (near) and across racks (far)."""

    near: Way
    far: Way

    @classmethod
    def of(cls, machine: Machine) -> StarNetwork | None:
        """Return the star network of a machine; None for any other topology."""
        return _star(machine)


@lru_cache(maxsize=8)  # a machine is compared by identity
def _star(machine: Machine) -> StarNetwork | None:
    fabric = machine.fabric
    if fabric is None:
        return None
    around: dict[int, list[tuple[int, int]]] = {}
    for k, (a, b) in enumerate(fabric.ends.tolist()):
        around.setdefault(a, []).append((k, b))
        around.setdefault(b, []).append((k, a))
    ports, switches = _ports(machine, around)
    if ports is None:
        return None
    uplinks: set[int] = set()
    cores: set[int] = set()
    for switch in switches:
        beyond = [(k, there) for k, there in around[switch] if k not in ports]
        if len(beyond) != 1:
            return None
        uplinks.add(beyond[0][0])
        cores.add(beyond[0][1])
    capacity = machine.capacity[:, machine.resource("bandwidth")]
    kinds = [{(int(capacity[fabric.link[k]]), int(fabric.latency[k])) for k in links} for links in (ports, uplinks)]
    if len(cores) > 1 or any(len(kind) != 1 for kind in kinds) or cores & switches:
        return None
    (port, port_ns), (uplink, uplink_ns) = kinds[0].pop(), kinds[1].pop()
    if not port or not uplink:
        return None
    return StarNetwork((port, 2 * port_ns, 2), (min(port, uplink), 2 * (port_ns + uplink_ns), 4))


def _ports(machine: Machine, around: dict[int, list[tuple[int, int]]]) -> tuple[set[int] | None, set[int]]:
    """Return the link of each position, and the rack switches, one per rack; None unless each position has exactly one link."""
    assert machine.fabric is not None
    ports: set[int] = set()
    vertex_of: dict[tuple[int, int], int] = {}
    switch_of: dict[int, int] = {}
    for owner in np.flatnonzero(machine.fabric.vertex >= 0).tolist():
        vertex = int(machine.fabric.vertex[owner])
        x, y = machine.position[owner].tolist()
        links = around.get(vertex, [])
        if len(links) != 1 or vertex_of.setdefault((x, y), vertex) != vertex:
            return None, set()
        ports.add(links[0][0])
        if switch_of.setdefault(x, links[0][1]) != links[0][1]:
            return None, set()
    switches = set(switch_of.values())
    distinct = len(switches) == len(switch_of) and len(set(vertex_of.values())) == len(vertex_of)
    return (ports, switches) if distinct and switches else (None, set())
