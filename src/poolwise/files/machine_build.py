"""From a validated machine file to a `Machine`: owners in a fixed order, capacities, places and links."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.files.document import Document
from poolwise.files.machine_sections import Device, Link, MachineFile, NodeType
from poolwise.model import Fabric, Kind, Machine

FieldPath = tuple[str | int, ...]


@dataclass
class _Owner:
    name: str
    kind: Kind
    type: str
    rack: int = -1
    shelf: int = 0
    home: int = -1
    capacity: dict[str, int] = field(default_factory=dict)
    per_node: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, float] = field(default_factory=dict)


def machine_of(file: MachineFile, name: str, document: Document, path: FieldPath = ()) -> Machine:
    """Build the machine that a file describes; `document` and `path` say where errors stand.

    Owners stand in the order nodes, pools, devices, links, each by rack. Raises InputError for a device or a link whose
    place does not exist.
    """
    owners = list(_nodes(file))
    owners += _pools(file)
    for k, device in enumerate(file.device):
        owners += _devices(device, owners, _racks(file), document, (*path, "device", k))
    ends = []
    for k, link in enumerate(file.link):
        for owner, pair in _links(link, owners, _racks(file), document, (*path, "link", k)):
            owners.append(owner)
            ends.append((len(owners) - 1, link.latency, pair))
    resources = _ordered({resource for owner in owners for resource in owner.capacity})
    column = {resource: k for k, resource in enumerate(resources)}
    capacity = np.zeros((len(owners), len(resources)), dtype=np.int64)
    for row, owner in enumerate(owners):
        for resource, amount in owner.capacity.items():
            capacity[row, column[resource]] = amount
    rack = _column(owners, lambda owner: owner.rack)
    return Machine(
        name=file.name or name,
        owners=tuple(owner.name for owner in owners),
        kind=_column(owners, lambda owner: int(owner.kind)),
        type=tuple(owner.type for owner in owners),
        rack=rack,
        position=np.stack([rack, _column(owners, lambda owner: owner.shelf)], axis=1),
        home=_column(owners, lambda owner: owner.home),
        resources=tuple(resources),
        capacity=capacity,
        per_node=_per_node(owners),
        attributes=_attributes(owners),
        fabric=_fabric(owners, ends),
    )


def _racks(file: MachineFile) -> int:
    return sum(entry.count for entry in file.rack)


def _nodes(file: MachineFile) -> Iterator[_Owner]:
    types = {node.name: node for node in file.node}
    rack = 0
    for entry in file.rack:
        for _ in range(entry.count):
            shelf = 0
            for name, count in entry.nodes.items():
                for owner in _group(types[name], rack, shelf, count):
                    yield owner
                    shelf += 1
            rack += 1


def _group(node: NodeType, rack: int, shelf: int, count: int) -> Iterator[_Owner]:
    """Nodes of a type in a rack: one owner for whole nodes, one per node for shared ones."""
    if node.allocation == "whole":
        brings = {"memory": 0, "cores": 1, **node.amounts()}
        name = f"rack{rack}.{node.name}"
        yield _Owner(name, Kind.NODE, node.name, rack, shelf, -1, {"nodes": count}, brings, dict(node.attributes))
        return
    for k in range(count):
        name = f"rack{rack}.{node.name}{k}"
        yield _Owner(name, Kind.NODE, node.name, rack, shelf + k, -1, node.amounts(), {}, dict(node.attributes))


def _pools(file: MachineFile) -> Iterator[_Owner]:
    for pool in file.pool:
        for rack in range(_racks(file)) if pool.per == "rack" else (-1,):
            name = f"rack{rack}.{pool.name}" if rack >= 0 else pool.name
            yield _Owner(name, Kind.POOL, pool.name, rack, capacity=pool.amounts(), attributes=dict(pool.attributes))


def _devices(device: Device, owners: list[_Owner], racks: int, document: Document, path: FieldPath) -> Iterator[_Owner]:
    for prefix, rack, shelf, home in _homes(device, owners, racks, document, path):
        for k in range(device.count):
            yield _Owner(
                f"{prefix}{device.name}{k}",
                Kind.DEVICE,
                device.type or device.name,
                rack,
                shelf,
                home,
                {"devices": 1, **device.amounts()},
                {},
                dict(device.attributes),
            )


def _homes(
    device: Device, owners: list[_Owner], racks: int, document: Document, path: FieldPath
) -> Iterator[tuple[str, int, int, int]]:
    """(name prefix, rack, shelf, home) of each place that has such devices."""
    if device.at == "machine":
        yield "", -1, 0, -1
    elif device.at == "rack":
        yield from ((f"rack{rack}.", rack, 0, -1) for rack in range(racks))
    else:
        nodes = [(k, o) for k, o in enumerate(owners) if o.kind is Kind.NODE and fnmatchcase(o.type, device.at)]
        if not nodes:
            known = ["rack", "machine", *sorted({o.type for o in owners if o.kind is Kind.NODE})]
            raise document.unknown((*path, "at"), "place", device.at, known)
        for number, node in nodes:
            if "nodes" in node.capacity:
                raise document.error(
                    (*path, "at"),
                    f"node type '{node.type}' is allocated whole, and whole nodes cannot be told apart",
                    'write allocation = "shared" in its [[node]], or at = "rack"',
                )
            yield f"{node.name}.", node.rack, node.shelf, number


Vertex = int | str


def _links(
    link: Link, owners: list[_Owner], racks: int, document: Document, path: FieldPath
) -> Iterator[tuple[_Owner, tuple[Vertex, Vertex]]]:
    """Links of an entry with what they join: an owner's number, or "rack0", "machine" for a switch."""
    matched: list[tuple[str, Vertex, int]] = [
        (o.name, k, o.rack) for k, o in enumerate(owners) if o.kind is not Kind.LINK and _matches(o.name, link.from_)
    ]
    matched += [(f"rack{r}", f"rack{r}", r) for r in range(racks) if fnmatchcase(f"rack{r}", link.from_)]
    if not matched:
        raise document.unknown((*path, "from"), "owner or rack", link.from_, [o.name for o in owners])
    for name, vertex, rack in matched:
        there = _end(link.to, rack, owners, document, path)
        if there != vertex:
            owner = _Owner(f"{link.name}:{name}", Kind.LINK, link.name, rack, capacity={"bandwidth": link.bandwidth})
            yield owner, (vertex, there)


def _matches(name: str, pattern: str) -> bool:
    """Whether the parts between dots match one by one: "rack*.server*" is no pattern of "rack0.server0.gpu0", a local GPU."""
    parts, patterns = name.split("."), pattern.split(".")
    return len(parts) == len(patterns) and all(fnmatchcase(*pair) for pair in zip(parts, patterns, strict=True))


def _end(to: str, rack: int, owners: list[_Owner], document: Document, path: FieldPath) -> Vertex:
    if to == "machine":
        return to
    if to == "rack":
        if rack < 0:
            raise document.error((*path, "to"), "what the link starts from stands in no rack", 'write to = "machine"')
        return f"rack{rack}"
    for number, owner in enumerate(owners):
        if owner.name == to:
            return number
    raise document.unknown((*path, "to"), "end of a link", to, ["rack", "machine", *(o.name for o in owners)])


def _fabric(owners: list[_Owner], ends: list[tuple[int, int, tuple[Vertex, Vertex]]]) -> Fabric | None:
    """Vertices are owners with links and switches; a device without a link of its own is reached through its node."""
    if not ends:
        return None
    numbers: dict[Vertex, int] = {}
    for _, _, pair in ends:
        for end in pair:
            numbers.setdefault(end, len(numbers))
    vertex = [numbers.get(k, numbers.get(owner.home, -1)) for k, owner in enumerate(owners)]
    return Fabric(
        vertex=np.array(vertex, dtype=np.int64),
        link=np.array([owner for owner, _, _ in ends], dtype=np.int64),
        ends=np.array([[numbers[a], numbers[b]] for _, _, (a, b) in ends], dtype=np.int64),
        latency=np.array([latency for _, latency, _ in ends], dtype=np.int64),
    )


def _ordered(resources: set[str]) -> list[str]:
    """Nodes and memory first, the order in which rack placement has always had them; then by name."""
    first = [name for name in ("nodes", "memory") if name in resources]
    return first + sorted(resources - {"nodes", "memory"})


def _column(owners: list[_Owner], value: Callable[[_Owner], int]) -> IntArray:
    return np.array([value(owner) for owner in owners], dtype=np.int64)


def _per_node(owners: list[_Owner]) -> dict[str, IntArray]:
    names = _ordered({resource for owner in owners for resource in owner.per_node})
    return {name: np.array([owner.per_node.get(name, 0) for owner in owners], dtype=np.int64) for name in names}


def _attributes(owners: list[_Owner]) -> dict[str, FloatArray]:
    """Owners without a value have NaN, which no model can mistake for a number."""
    names = sorted({name for owner in owners for name in owner.attributes})
    return {name: np.array([owner.attributes.get(name, np.nan) for owner in owners], dtype=np.float64) for name in names}
