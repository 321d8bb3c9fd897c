"""Conversion of a validated machine file into a `Machine`: owners in a fixed order, capacities, locations and links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from poolwise.files.document import Document
from poolwise.files.machine_sections import Device, Link, MachineFile, NodeType
from poolwise.model import Kind, Machine, MachineBuilder
from poolwise.model.machine_builder import BuiltOwner, Vertex

FieldPath = tuple[str | int, ...]


def machine_of(file: MachineFile, name: str, document: Document, path: FieldPath = ()) -> Machine:
    """Build the machine that a file describes.

    Owners come in the order nodes, pools, devices, links, each sorted by rack.

    Parameters
    ----------
    name
        Name of the machine if the file gives none.
    document, path
        Document that contains the file's content, and the path to it; errors report their locations.

    Raises
    ------
    InputError
        If a device or a link refers to a location that does not exist.
    """
    build = MachineBuilder(file.name or name)
    _add_nodes(file, build)
    _add_pools(file, build)
    for k, device in enumerate(file.device):
        _add_devices(device, build, _racks(file), document, (*path, "device", k))
    for k, link in enumerate(file.link):
        _add_links(link, build, _racks(file), document, (*path, "link", k))
    return Machine.of(build)


def _racks(file: MachineFile) -> int:
    return sum(entry.count for entry in file.rack)


def _add_nodes(file: MachineFile, build: MachineBuilder) -> None:
    types = {node.name: node for node in file.node}
    rack = 0
    for entry in file.rack:
        for _ in range(entry.count):
            shelf = 0
            for name, count in entry.nodes.items():
                shelf = _add_group(types[name], rack, shelf, count, build)
            rack += 1


def _add_group(node: NodeType, rack: int, shelf: int, count: int, build: MachineBuilder) -> int:
    """Add a rack's nodes of a type, as one owner if whole or one per node if shared; return the next free shelf."""
    name, attributes, amounts = f"rack{rack}.{node.name}", dict(node.attributes), node.amounts()
    if node.allocation == "whole":
        each = {"memory": 0, "cores": 1, **amounts}
        build.add(name, Kind.NODE, node.name, {"nodes": count}, rack=rack, shelf=shelf, per_node=each, attributes=attributes)
        return shelf + 1
    for k in range(count):
        build.add(f"{name}{k}", Kind.NODE, node.name, amounts, rack=rack, shelf=shelf + k, attributes=attributes)
    return shelf + count


def _add_pools(file: MachineFile, build: MachineBuilder) -> None:
    for pool in file.pool:
        for rack in range(_racks(file)) if pool.per == "rack" else (-1,):
            name = f"rack{rack}.{pool.name}" if rack >= 0 else pool.name
            build.add(name, Kind.POOL, pool.name, pool.amounts(), rack=rack, attributes=dict(pool.attributes))


def _add_devices(device: Device, build: MachineBuilder, racks: int, document: Document, path: FieldPath) -> None:
    kind, amounts, attributes = device.type or device.name, {"devices": 1, **device.amounts()}, dict(device.attributes)
    for prefix, rack, shelf, home in list(_homes(device, build.owners, racks, document, path)):
        for k in range(device.count):
            name = f"{prefix}{device.name}{k}"
            build.add(name, Kind.DEVICE, kind, amounts, rack=rack, shelf=shelf, home=home, attributes=attributes)


def _homes(
    device: Device, owners: Sequence[BuiltOwner], racks: int, document: Document, path: FieldPath
) -> Iterator[tuple[str, int, int, int]]:
    """Yield (name prefix, rack, shelf, home) for each location that has such devices."""
    if device.at == "machine":
        yield "", -1, 0, -1
    elif device.at == "rack":
        yield from ((f"rack{rack}.", rack, 0, -1) for rack in range(racks))
    else:
        nodes = [(k, o) for k, o in enumerate(owners) if o.kind is Kind.NODE and fnmatchcase(o.type, device.at)]
        if not nodes:
            known = ["rack", "machine", *sorted({o.type for o in owners if o.kind is Kind.NODE})]
            raise document.unknown((*path, "at"), "location", device.at, known)
        for number, node in nodes:
            if "nodes" in node.amounts:
                raise document.error(
                    (*path, "at"),
                    f"node type '{node.type}' is allocated whole, so its nodes cannot hold individual devices",
                    'write allocation = "shared" in its [[node]] table, or at = "rack"',
                )
            yield f"{node.name}.", node.rack, node.shelf, number


def _add_links(link: Link, build: MachineBuilder, racks: int, document: Document, path: FieldPath) -> None:
    """Add the links of one [[link]] entry; the vertices "rack0" and "machine" are switches."""
    owners = build.owners
    matched: list[tuple[str, Vertex, int]] = [
        (o.name, k, o.rack) for k, o in enumerate(owners) if o.kind is not Kind.LINK and matches(o.name, link.from_)
    ]
    matched += [(f"rack{r}", f"rack{r}", r) for r in range(racks) if fnmatchcase(f"rack{r}", link.from_)]
    if not matched:
        raise document.unknown((*path, "from"), "owner or rack", link.from_, [o.name for o in owners])
    for name, vertex, rack in matched:
        other = _end(link.to, rack, owners, document, path)
        if other != vertex:
            more = {"bandwidth": link.bandwidth, "latency": link.latency}
            build.link(f"{link.name}:{name}", vertex, other, type=link.name, rack=rack, **more)


def matches(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern part by part: "rack*.server*" does not match the GPU "rack0.server0.gpu0"."""
    parts, patterns = name.split("."), pattern.split(".")
    return len(parts) == len(patterns) and all(fnmatchcase(*pair) for pair in zip(parts, patterns, strict=True))


def _end(to: str, rack: int, owners: Sequence[BuiltOwner], document: Document, path: FieldPath) -> Vertex:
    if to == "machine":
        return to
    if to == "rack":
        if rack < 0:
            raise document.error((*path, "to"), "the link starts outside any rack", 'write to = "machine"')
        return f"rack{rack}"
    for number, owner in enumerate(owners):
        if owner.name == to:
            return number
    raise document.unknown((*path, "to"), "link endpoint", to, ["rack", "machine", *(o.name for o in owners)])
