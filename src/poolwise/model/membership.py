"""Machines whose owners join and leave: numbers are kept, new owners are appended, and an owner that left has no capacity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model.kind import Kind
from poolwise.model.machine import Machine


def parts_of(machine: Machine) -> tuple[tuple[int, ...], ...]:
    """Group owners that join and leave together: the nodes of a rack with its pool, a node with its devices, a pooled device.

    Links and the pools of shared nodes are in no group, because they never leave.
    """
    parts: list[tuple[int, ...]] = []
    whole = "nodes" in machine.resources
    pools = machine.of_kind(Kind.POOL)
    devices = machine.of_kind(Kind.DEVICE)
    for node in machine.of_kind(Kind.NODE).tolist():
        with_it = pools[machine.rack[pools] == machine.rack[node]] if whole else devices[machine.home[devices] == node]
        parts.append((node, *with_it.tolist()))
    parts += [(device,) for device in devices[machine.home[devices] < 0].tolist()]
    return tuple(parts)


def left(machine: Machine, owners: tuple[int, ...]) -> Machine:
    """Return the machine after some owners have left: without their capacity."""
    capacity = machine.capacity.copy()
    capacity[list(owners)] = 0
    return machine.with_capacity(capacity)


def joined(machine: Machine, like: tuple[int, ...], capacity: IntArray, suffix: str) -> Machine:
    """Return the machine with new owners appended, each a copy of one of the given owners.

    Parameters
    ----------
    machine : the machine
    like : owners of one group (see `parts_of`); whole nodes and their pool get a rack of their own
    capacity : (len(like), n_resource) capacities of the new owners
    suffix : suffix of their names
    """
    copied, n = list(like), machine.n_owner
    new = {owner: n + k for k, owner in enumerate(copied)}

    def more(column: Any) -> Any:
        return np.concatenate([column, column[copied]])

    rack, home = more(machine.rack), more(machine.home)
    home[n:] = [new.get(int(k), int(k)) for k in home[n:]]
    if "nodes" in machine.resources:
        rack[n:] = int(machine.rack.max()) + 1
    fabric = machine.fabric if machine.fabric is None else replace(machine.fabric, vertex=more(machine.fabric.vertex))
    return replace(
        machine,
        owners=(*machine.owners, *(f"{machine.owners[k]}{suffix}" for k in copied)),
        kind=more(machine.kind),
        type=(*machine.type, *(machine.type[k] for k in copied)),
        rack=rack,
        position=more(machine.position),
        home=home,
        capacity=np.concatenate([machine.capacity, capacity]),
        per_node={name: more(column) for name, column in machine.per_node.items()},
        attributes={name: more(column) for name, column in machine.attributes.items()},
        fabric=fabric,
        node_sets={name: more(members) for name, members in machine.node_sets.items()},
        windows=tuple(replace(window, owners=more(window.owners)) for window in machine.windows),
    )
