"""Conversion of a validated machine file into a `Machine`: owners in a fixed order, links, and scheduling limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.files.associations import check_associations
from poolwise.files.machine_sections import (
    AssociationSection,
    Device,
    FailuresSection,
    Link,
    MachineFile,
    PartitionSection,
    QosSection,
    WindowSection,
)
from poolwise.model import (
    AssociationLimits,
    Failures,
    Kind,
    Machine,
    MachineBuilder,
    Outage,
    Partition,
    QualityOfService,
    ReservedWindow,
)
from poolwise.model.machine_builder import BuiltOwner, Vertex
from poolwise.quantities import NEVER


def machine_of(file: MachineFile, name: str) -> Machine:
    """Build the machine that a file describes.

    Owners come in the order nodes, pools, devices, links, each sorted by rack.

    Parameters
    ----------
    name
        Name of the machine if the file gives none.

    Raises
    ------
    InputError
        If a name or location does not exist or is ambiguous; the error has its path in the file.
    """
    racks = sum(entry.count for entry in file.rack)
    owners = [*_nodes(file), *_pools(file, racks)]
    for k, device in enumerate(file.device):
        owners += list(_devices(device, owners, racks, k))
    build = MachineBuilder(file.name or name)
    build.owners += owners
    for k, link in enumerate(file.link):
        _add_links(link, build, racks, k)
    return _with_limits(Machine.of(build), file)


def _nodes(file: MachineFile) -> Iterator[BuiltOwner]:
    """Yield the nodes of each rack: one owner for the whole nodes of a type, and one for each shared node."""
    types = {node.name: node for node in file.node}
    for rack, entry in enumerate(each for each in file.rack for _ in range(each.count)):
        shelf = 0
        for name, count in entry.nodes.items():
            node, amounts = types[name], types[name].amounts()
            whole = node.allocation == "whole"
            each = {"memory": 0, "cores": 1, **amounts} if whole else {}
            for copy in range(1 if whole else count):
                owner = f"rack{rack}.{name}{'' if whole else copy}"
                held = {"nodes": count} if whole else amounts
                yield BuiltOwner(owner, Kind.NODE, name, rack, shelf, -1, held, each, dict(node.attributes))
                shelf += 1


def _pools(file: MachineFile, racks: int) -> Iterator[BuiltOwner]:
    for pool in file.pool:
        for rack in range(racks) if pool.per == "rack" else (-1,):
            name = f"rack{rack}.{pool.name}" if rack >= 0 else pool.name
            yield BuiltOwner(name, Kind.POOL, pool.name, rack, 0, -1, pool.amounts(), {}, dict(pool.attributes))


def _devices(device: Device, owners: Sequence[BuiltOwner], racks: int, k: int) -> Iterator[BuiltOwner]:
    kind, amounts, attributes = device.type or device.name, {"devices": 1, **device.amounts()}, dict(device.attributes)
    for prefix, rack, shelf, home in _homes(device, owners, racks, k):
        for copy in range(device.count):
            name = f"{prefix}{device.name}{copy}"
            yield BuiltOwner(name, Kind.DEVICE, kind, rack, shelf, home, amounts, {}, attributes)


def _homes(device: Device, owners: Sequence[BuiltOwner], racks: int, k: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield (name prefix, rack, shelf, home) for each location that has devices of an entry."""
    if device.at == "machine":
        yield "", -1, 0, -1
    elif device.at == "rack":
        yield from ((f"rack{rack}.", rack, 0, -1) for rack in range(racks))
    else:
        nodes = [(number, o) for number, o in enumerate(owners) if o.kind is Kind.NODE and fnmatchcase(o.type, device.at)]
        if not nodes:
            locations = ["rack", "machine", *sorted({o.type for o in owners if o.kind is Kind.NODE})]
            raise UnknownNameError.of("location", device.at, locations).at("device", k, "at")
        for number, node in nodes:
            if "nodes" in node.amounts:
                raise InputError(
                    f"node type '{node.type}' is allocated whole, so its nodes cannot hold individual devices",
                    remedy='write allocation = "shared" in its [[node]] table, or at = "rack"',
                ).at("device", k, "at")
            yield f"{node.name}.", node.rack, node.shelf, number


def _add_links(link: Link, build: MachineBuilder, racks: int, k: int) -> None:
    """Add the links of one [[link]] entry; the vertices "rack0" and "machine" are switches."""
    owners = build.owners
    matched: list[tuple[str, Vertex, int]] = [
        (o.name, number, o.rack) for number, o in enumerate(owners) if o.kind is not Kind.LINK and matches(o.name, link.from_)
    ]
    matched += [(f"rack{r}", f"rack{r}", r) for r in range(racks) if fnmatchcase(f"rack{r}", link.from_)]
    if not matched:
        raise UnknownNameError.of("owner or rack", link.from_, [o.name for o in owners]).at("link", k, "from")
    for name, vertex, rack in matched:
        other = _end(link.to, rack, owners, k)
        if other != vertex:
            more = {"bandwidth": link.bandwidth, "latency": link.latency}
            build.link(f"{link.name}:{name}", vertex, other, type=link.name, rack=rack, **more)


def matches(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern part by part: "rack*.server*" does not match the GPU "rack0.server0.gpu0"."""
    parts, patterns = name.split("."), pattern.split(".")
    return len(parts) == len(patterns) and all(fnmatchcase(*pair) for pair in zip(parts, patterns, strict=True))


def _end(to: str, rack: int, owners: Sequence[BuiltOwner], k: int) -> Vertex:
    if to == "machine":
        return to
    if to == "rack":
        if rack < 0:
            raise InputError("the link starts outside any rack", remedy='write to = "machine"').at("link", k, "to")
        return f"rack{rack}"
    for number, owner in enumerate(owners):
        if owner.name == to:
            return number
    raise UnknownNameError.of("link endpoint", to, ["rack", "machine", *(o.name for o in owners)]).at("link", k, "to")


def _with_limits(machine: Machine, file: MachineFile) -> Machine:
    """Return the machine with the limits and failures of its file.

    Raises InputError for unknown nodes and amounts, and for duplicate or conflicting names.
    """
    for section in ("partition", "qos", "window"):
        _check_names(section, getattr(file, section))
    sets = _features(machine, file)
    for k, part in enumerate(file.partition):
        members = _members(machine, part.nodes, "partition", k, "nodes")
        if not np.array_equal(sets.get(part.name, members), members):
            problem = f"'{part.name}' is also a feature with different nodes"
            raise InputError(problem, remedy="rename the partition or the feature").at("partition", k, "name")
        sets[part.name] = members
    for k, qos in enumerate(file.qos):
        _check_amounts(machine, "qos", k, per_user=qos.per_user, total=qos.total)
    associations = tuple(_association(each) for each in file.association)
    check_associations(associations)
    for k, each in enumerate(file.association):
        _check_amounts(machine, "association", k, per_job=each.per_job, per_user=each.per_user, total=each.total)
    return replace(
        machine,
        node_sets=sets,
        partitions=tuple(_partition(part) for part in file.partition),
        qos=tuple(_qos(qos) for qos in file.qos),
        associations=associations,
        windows=tuple(
            _window(window, _members(machine, window.nodes, "window", k, "nodes")) for k, window in enumerate(file.window)
        ),
        failures=_failures(machine, file.failures),
        licenses=dict(file.licenses),
    )


def _failures(machine: Machine, section: FailuresSection | None) -> Failures | None:
    if section is None:
        return None

    def owners(patterns: Sequence[str], *place: str | int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(_members(machine, patterns, "failures", *place)).tolist())

    outages = tuple(Outage(owners(o.nodes, "outage", k, "nodes"), o.down, o.up) for k, o in enumerate(section.outage))
    failing = owners(section.nodes, "nodes") if section.mtbf is not None else ()
    until = NEVER if section.until is None else section.until
    return Failures(outages, failing, section.mtbf or NEVER, section.mttr, until, section.jobs == "requeue")


def _partition(part: PartitionSection) -> Partition:
    return Partition(part.name, part.default, part.max_time or NEVER, part.max_nodes or NEVER, part.tier, part.exclusive)


def _qos(qos: QosSection) -> QualityOfService:
    return QualityOfService(qos.name, qos.default, qos.max_time or NEVER, _limits(qos.per_user), _limits(qos.total))


def _association(each: AssociationSection) -> AssociationLimits:
    limits = _limits(each.per_job), _limits(each.per_user), _limits(each.total)
    return AssociationLimits(each.account, each.user, each.parent, each.max_time or NEVER, *limits)


def _limits(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(amounts.items()))


def _window(window: WindowSection, owners: BoolArray) -> ReservedWindow:
    return ReservedWindow(window.name, window.start, window.end, owners, frozenset(window.users), frozenset(window.accounts))


def _features(machine: Machine, file: MachineFile) -> dict[str, BoolArray]:
    """Return feature -> mask of its nodes, (n_owner,)."""
    node = machine.kind == Kind.NODE
    having = {
        feature: {kind.name for kind in file.node if feature in kind.features} for k in file.node for feature in k.features
    }
    return {
        feature: node & np.array([kind in kinds for kind in machine.type], dtype=np.bool_) for feature, kinds in having.items()
    }


def _members(machine: Machine, patterns: Sequence[str], *path: str | int) -> BoolArray:
    """Return a mask of the nodes, (n_owner,), whose type, rack or name matches one of the patterns."""
    mask = np.zeros(machine.n_owner, dtype=np.bool_)
    nodes = machine.of_kind(Kind.NODE).tolist()
    for k, pattern in enumerate(patterns):
        named = [
            owner
            for owner in nodes
            if fnmatchcase(machine.type[owner], pattern)
            or fnmatchcase(f"rack{int(machine.rack[owner])}", pattern)
            or matches(machine.owners[owner], pattern)
        ]
        if not named:
            names = sorted({machine.type[owner] for owner in nodes} | {machine.owners[owner] for owner in nodes[:8]})
            raise UnknownNameError.of("nodes", pattern, names).at(*path, k)
        mask[named] = True
    return mask


def _check_names(section: str, entries: Sequence[PartitionSection | QosSection | WindowSection]) -> None:
    """Raise InputError for a duplicate name or a second default."""
    names: set[str] = set()
    default = ""
    for k, entry in enumerate(entries):
        if entry.name in names:
            raise InputError(f"duplicate {section} '{entry.name}'", remedy="give each a unique name").at(section, k, "name")
        names.add(entry.name)
        if not isinstance(entry, WindowSection) and entry.default:
            if default:
                raise InputError(f"'{default}' is already the default", remedy="keep one default").at(section, k, "default")
            default = entry.name


def _check_amounts(machine: Machine, section: str, k: int, **scopes: Mapping[str, int]) -> None:
    """Raise InputError for a limit on an amount that jobs on this machine cannot request."""
    devices = {machine.type[owner] for owner in machine.of_kind(Kind.DEVICE).tolist()}
    amounts = {"jobs", "nodes", *machine.resources, *devices} - {"devices"}
    for scope, limits in scopes.items():
        known = amounts - {"jobs"} if scope == "per_job" else amounts
        for name in limits:
            if name not in known:
                raise UnknownNameError.of("amount", name, known).at(section, k, scope, name)
