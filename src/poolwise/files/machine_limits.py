"""Scheduling limits of a machine from its file: partitions, features, qualities of service, reserved windows, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.files.document import Document
from poolwise.files.machine_build import FieldPath, matches
from poolwise.files.machine_sections import FailuresSection, MachineFile, PartitionSection, QosSection, WindowSection
from poolwise.model import Failures, Kind, Machine, Outage, Partition, QualityOfService, ReservedWindow
from poolwise.units import NEVER


def with_machine_limits(machine: Machine, file: MachineFile, document: Document, path: FieldPath = ()) -> Machine:
    """Return the machine with the limits and failures of its file.

    Errors report locations in `document` below `path`. Raises InputError for unknown nodes and amounts, and for duplicate or
    conflicting names.
    """
    for section in ("partition", "qos", "window"):
        _check_names(section, getattr(file, section), document, path)
    sets = _features(machine, file)
    for k, part in enumerate(file.partition):
        members = _members(machine, part.nodes, document, (*path, "partition", k, "nodes"))
        if not np.array_equal(sets.get(part.name, members), members):
            problem = f"'{part.name}' is also a feature with different nodes"
            raise document.error((*path, "partition", k, "name"), problem, "rename the partition or the feature")
        sets[part.name] = members
    for k, qos in enumerate(file.qos):
        _check_amounts(machine, qos, document, (*path, "qos", k))
    return replace(
        machine,
        node_sets=sets,
        partitions=tuple(_partition(part) for part in file.partition),
        qos=tuple(_qos(qos) for qos in file.qos),
        windows=tuple(
            _window(window, _members(machine, window.nodes, document, (*path, "window", k, "nodes")))
            for k, window in enumerate(file.window)
        ),
        failures=_failures(machine, file.failures, document, (*path, "failures")),
    )


def _failures(machine: Machine, section: FailuresSection | None, document: Document, path: FieldPath) -> Failures | None:
    if section is None:
        return None

    def owners(patterns: Sequence[str], *place: str | int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(_members(machine, patterns, document, (*path, *place))).tolist())

    outages = tuple(Outage(owners(o.nodes, "outage", k, "nodes"), o.down, o.up) for k, o in enumerate(section.outage))
    failing = owners(section.nodes, "nodes") if section.mtbf is not None else ()
    until = NEVER if section.until is None else section.until
    return Failures(outages, failing, section.mtbf or NEVER, section.mttr, until, section.jobs == "requeue")


def _partition(part: PartitionSection) -> Partition:
    return Partition(part.name, part.default, part.max_time or NEVER, part.max_nodes or NEVER, part.tier)


def _qos(qos: QosSection) -> QualityOfService:
    return QualityOfService(qos.name, qos.default, qos.max_time or NEVER, _limits(qos.per_user), _limits(qos.total))


def _limits(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(amounts.items()))


def _window(window: WindowSection, owners: BoolArray) -> ReservedWindow:
    return ReservedWindow(window.name, window.start, window.end, owners, frozenset(window.users), frozenset(window.accounts))


def _features(machine: Machine, file: MachineFile) -> dict[str, BoolArray]:
    """Map each feature to its nodes, (n_owner,)."""
    node = machine.kind == Kind.NODE
    having = {
        feature: {kind.name for kind in file.node if feature in kind.features} for k in file.node for feature in k.features
    }
    return {
        feature: node & np.array([kind in kinds for kind in machine.type], dtype=np.bool_) for feature, kinds in having.items()
    }


def _members(machine: Machine, patterns: Sequence[str], document: Document, path: FieldPath) -> BoolArray:
    """(n_owner,) nodes whose type, rack or name matches one of the patterns."""
    found = np.zeros(machine.n_owner, dtype=np.bool_)
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
            known = sorted({machine.type[owner] for owner in nodes} | {machine.owners[owner] for owner in nodes[:8]})
            raise document.unknown((*path, k), "nodes", pattern, known)
        found[named] = True
    return found


def _check_names(
    section: str,
    entries: Sequence[PartitionSection | QosSection | WindowSection],
    document: Document,
    path: FieldPath,
) -> None:
    """Raise InputError for a duplicate name or a second default."""
    names: set[str] = set()
    default = ""
    for k, entry in enumerate(entries):
        if entry.name in names:
            problem = f"duplicate {section} '{entry.name}'"
            raise document.error((*path, section, k, "name"), problem, "give each a unique name")
        names.add(entry.name)
        if not isinstance(entry, WindowSection) and entry.default:
            if default:
                problem = f"'{default}' is already the default"
                raise document.error((*path, section, k, "default"), problem, "keep one default")
            default = entry.name


def _check_amounts(machine: Machine, qos: QosSection, document: Document, path: FieldPath) -> None:
    """Raise InputError for a limit on an amount that jobs on this machine cannot request."""
    devices = {machine.type[owner] for owner in machine.of_kind(Kind.DEVICE).tolist()}
    known = {"jobs", "nodes", *machine.resources, *devices} - {"devices"}
    for scope in ("per_user", "total"):
        for name in getattr(qos, scope):
            if name not in known:
                raise document.unknown((*path, scope, name), "amount", name, sorted(known))
