"""Builder of machines, which adds owners one by one, from readable arguments instead of parallel arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model.fabric import Fabric
from poolwise.model.kind import Kind
from poolwise.quantities import Dimension, parse

OwnerAmount = int | str
"""Base units (MiB, MB/s, a count), or text such as "256 GiB"."""
Vertex = int | str
"""End of a link: the number of an owner, or the name of a switch or of another vertex without owners."""
DIMENSIONS: Mapping[str, Dimension] = {"memory": "memory", "storage": "memory", "bandwidth": "bandwidth"}
"""Resource -> dimension of its amounts; amounts of other resources are counts."""


class BuiltOwner(NamedTuple):
    """One owner with its resources, and the resources that each of its whole nodes brings; see `Machine`."""

    name: str
    kind: Kind
    type: str
    rack: int
    shelf: int
    home: int
    amounts: Mapping[str, int]
    per_node: Mapping[str, int]
    attributes: Mapping[str, float]


class MachineBuilder:
    """Builder of a machine: collects owners and links in the order in which they are added; `Machine.of` makes the machine.

    Methods that add an owner return its number. Devices refer to their node, and links to their ends, by these numbers. Amounts
    are text such as "256 GiB" or "10 GB/s", or integers in base units (MiB, MB/s, counts).

    Parameters
    ----------
    name
        Name of the machine in reports.
    resources
        Names of the resources in the order of the machine's columns; by default those of the owners, nodes and memory first,
        then by name.

    Examples
    --------
    >>> import poolwise
    >>> build = poolwise.MachineBuilder("two nodes")
    >>> nodes = [build.node(f"node{k}", cores=32, memory="256 GiB") for k in range(2)]
    >>> gpu = build.device("gpu", home=nodes[0], devices=1)
    >>> for node in nodes:
    ...     port = build.link(f"port{node}", node, "switch", bandwidth="10 GB/s")
    >>> poolwise.Machine.of(build)
    Machine 'two nodes': 2 shared nodes, 1 device, 2 links
    """

    def __init__(self, name: str, resources: Sequence[str] = ()) -> None:
        self.name, self.owners = name, list[BuiltOwner]()
        self._resources = tuple(resources)
        self._links: list[tuple[int, int, int, int]] = []  # owner, two vertices, ns
        self._vertices: dict[Vertex, int] = {}
        self._at: dict[int, Vertex] = {}

    def add(
        self,
        name: str,
        kind: Kind,
        type: str,
        amounts: Mapping[str, OwnerAmount],
        *,
        rack: int = 0,
        shelf: int = 0,
        home: int = -1,
        per_node: Mapping[str, OwnerAmount] | None = None,
        attributes: Mapping[str, float] | None = None,
    ) -> int:
        """Add an owner and return its number; raises InputError for an amount that cannot be read or has no column."""
        brings = _in_base_units(per_node) if per_node else {}
        owner = BuiltOwner(name, kind, type, rack, shelf, home, _in_base_units(amounts), brings, attributes or {})
        if self._resources and (other := owner.amounts.keys() - set(self._resources)):
            raise UnknownNameError.of("resource", min(other), self._resources)
        self.owners.append(owner)
        return len(self.owners) - 1

    def node(
        self,
        name: str,
        *,
        type: str = "node",
        rack: int = 0,
        shelf: int = 0,
        attributes: Mapping[str, float] | None = None,
        **amounts: OwnerAmount,
    ) -> int:
        """Add a shared node, and return its number."""
        return self.add(name, Kind.NODE, type, amounts, rack=rack, shelf=shelf, attributes=attributes)

    def whole_nodes(self, name: str, count: int, *, type: str = "node", rack: int = 0, **each: OwnerAmount) -> int:
        """Add `count` identical whole nodes of a rack, given the resources of each; return the number of their owner."""
        return self.add(name, Kind.NODE, type, {"nodes": count}, rack=rack, per_node=each)

    def pool(
        self,
        name: str,
        *,
        type: str = "pool",
        rack: int = 0,
        attributes: Mapping[str, float] | None = None,
        **amounts: OwnerAmount,
    ) -> int:
        """Add a pool of a rack, or of the machine (rack -1), and return its number."""
        return self.add(name, Kind.POOL, type, amounts, rack=rack, attributes=attributes)

    def device(
        self,
        name: str,
        *,
        type: str = "device",
        home: int = -1,
        rack: int | None = None,
        shelf: int | None = None,
        attributes: Mapping[str, float] | None = None,
        **amounts: OwnerAmount,
    ) -> int:
        """Add a device and return its number; inside a node (`home`) it has that node's rack and shelf by default."""
        if rack is None:
            rack = self.owners[home].rack if home >= 0 else 0
        if shelf is None:
            shelf = self.owners[home].shelf if home >= 0 else 0
        return self.add(name, Kind.DEVICE, type, amounts, rack=rack, shelf=shelf, home=home, attributes=attributes)

    def link(
        self,
        name: str,
        here: Vertex,
        there: Vertex,
        *,
        bandwidth: OwnerAmount,
        latency: int = 0,
        type: str = "link",
        rack: int = 0,
        shelf: int = 0,
    ) -> int:
        """Add a link between two vertices, and return its number; `latency` in ns. Raises InputError for an unknown owner."""
        self.vertices((here, there))
        owner = self.add(name, Kind.LINK, type, {"bandwidth": bandwidth}, rack=rack, shelf=shelf)
        self._links.append((owner, self._vertices[here], self._vertices[there], latency))
        return owner

    def vertices(self, names: Iterable[Vertex]) -> None:
        """Assign numbers, in this order, to the vertices that have none yet; the vertices of later links follow."""
        for vertex in names:
            if isinstance(vertex, int) and not 0 <= vertex < len(self.owners):
                raise InputError(f"no owner has the number {vertex}", field="link", remedy="add owners before their links")
            self._vertices.setdefault(vertex, len(self._vertices))

    def attach(self, owner: int, vertex: Vertex) -> None:
        """Attach an owner to a vertex. Otherwise links attach owners, and a device is at the vertex of its node."""
        self._at[owner] = vertex

    def columns(self) -> dict[str, Any]:
        """Return the arguments of `Machine` by name."""
        owners = self.owners
        rack = self._column(lambda owner: owner.rack)
        resources = self._resources or _ordered({name for owner in owners for name in owner.amounts})
        per_node = _ordered({name for owner in owners for name in owner.per_node})
        attributes = sorted({name for owner in owners for name in owner.attributes})
        return {
            "name": self.name,
            "owners": tuple(owner.name for owner in owners),
            "kind": self._column(lambda owner: owner.kind),
            "type": tuple(owner.type for owner in owners),
            "rack": rack,
            "position": np.stack([rack, self._column(lambda owner: owner.shelf)], axis=1),
            "home": self._column(lambda owner: owner.home),
            "resources": tuple(resources),
            "capacity": self._capacity(resources),
            "per_node": {name: self._brought(name) for name in per_node},
            "attributes": {name: self._attribute(name) for name in attributes},
            "fabric": self._fabric(),
        }

    def _column(self, value: Callable[[BuiltOwner], int]) -> IntArray:
        return np.array([value(owner) for owner in self.owners], dtype=np.int64)

    def _brought(self, name: str) -> IntArray:
        return self._column(lambda owner: owner.per_node.get(name, 0))

    def _attribute(self, name: str) -> FloatArray:
        """Return the values, (n_owner,); owners without the attribute get NaN, which no model can mistake for a number."""
        return np.array([owner.attributes.get(name, np.nan) for owner in self.owners], dtype=np.float64)

    def _capacity(self, resources: Sequence[str]) -> IntArray:
        column = {resource: k for k, resource in enumerate(resources)}
        capacity = np.zeros((len(self.owners), len(resources)), dtype=np.int64)
        for row, owner in enumerate(self.owners):
            for resource, amount in owner.amounts.items():
                capacity[row, column[resource]] = amount
        return capacity

    def _fabric(self) -> Fabric | None:
        if not self._links:
            return None
        vertices, at = self._vertices, self._at
        vertex = [vertices.get(at.get(k, k), vertices.get(owner.home, -1)) for k, owner in enumerate(self.owners)]
        links = np.array(self._links, dtype=np.int64)
        return Fabric(np.array(vertex, dtype=np.int64), links[:, 0].copy(), links[:, 1:3].copy(), links[:, 3].copy())


def _in_base_units(amounts: Mapping[str, OwnerAmount]) -> dict[str, int]:
    return {name: _read(name, amount) if isinstance(amount, str) else int(amount) for name, amount in amounts.items()}


def _read(name: str, amount: str) -> int:
    try:
        return parse(amount, DIMENSIONS.get(name, "count"))
    except ValueError as error:
        raise InputError(str(error), field=name) from None


def _ordered(names: set[str]) -> list[str]:
    """Sort names: nodes and memory first, the order on which rack placement relies; then by name."""
    first = [name for name in ("nodes", "memory") if name in names]
    return first + sorted(names.difference(first))
