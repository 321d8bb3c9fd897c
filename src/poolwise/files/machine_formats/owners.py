"""Machines described owner by owner, as clusters report their inventory: each node, pool and device has its own name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poolwise.errors import InputError, UnknownNameError
from poolwise.files.associations import check_associations
from poolwise.model import AssociationLimits, Fabric, Kind, Machine, MachineBuilder, Partition, QualityOfService, ReservedWindow
from poolwise.model.machine_builder import DIMENSIONS, OwnerAmount
from poolwise.quantities import NEVER, parse
from poolwise.registry import register

_UNIT = {"memory": "MiB", "bandwidth": "MB/s"}  # dimension -> base unit
_KINDS = {kind.name.lower(): kind for kind in Kind}


@dataclass(frozen=True)
class OwnerEntry:
    """One owner.

    Parameters
    ----------
    name, type
        Name of the owner and of its type.
    kind
        "node", "pool", "device" or "link".
    capacity
        Resource -> amount, such as { cores = 64, memory = "256 GiB" }; { nodes = 48 } for 48 whole nodes.
    per_node
        Resources of each whole node of the owner.
    rack, position, home
        See `Machine`; `home` is the name of a device's node.
    attributes
        Numbers that models and policies read.
    sets
        Partitions and features of the owner.
    vertex
        Vertex of the network, -1 for owners outside it; a link has two `ends` and a `latency` instead.
    """

    name: str
    kind: str = "node"
    type: str = "node"
    capacity: Mapping[str, OwnerAmount] = field(default_factory=dict)
    per_node: Mapping[str, OwnerAmount] = field(default_factory=dict)
    rack: int = 0
    position: tuple[int, ...] = ()
    home: str = ""
    attributes: Mapping[str, float] = field(default_factory=dict)
    sets: tuple[str, ...] = ()
    vertex: int = -1
    ends: tuple[int, ...] = ()
    latency: str = "0 ns"


@dataclass(frozen=True)
class PartitionEntry:
    """A partition; its nodes are the owners with its name among their sets. An omitted limit means no limit."""

    name: str
    default: bool = False
    max_time: str = ""
    max_nodes: int = NEVER
    tier: int = 1
    exclusive: bool = False


@dataclass(frozen=True)
class QosEntry:
    """A quality of service; see `QualityOfService`."""

    name: str
    default: bool = False
    max_time: str = ""
    per_user: Mapping[str, int] = field(default_factory=dict)
    total: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AssociationEntry:
    """Limits of an account, or of a user in an account; see `AssociationLimits`."""

    account: str
    user: str = ""
    parent: str = ""
    max_time: str = ""
    per_job: Mapping[str, int] = field(default_factory=dict)
    per_user: Mapping[str, int] = field(default_factory=dict)
    total: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WindowEntry:
    """A reservation of nodes, by name, from `start` to `end`, counted from time 0."""

    name: str
    start: str
    end: str
    owners: tuple[str, ...]
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


@register("machine_formats", "owners")
@dataclass(frozen=True)
class OwnerList:
    """A machine listed owner by owner, as `poolwise snapshot` writes it.

    Parameters
    ----------
    resources
        Columns of the machine, in order.
    owner
        Owners, in order.
    sets
        Names of partitions and features, in order.
    partition, qos, association, window
        Scheduling limits and reservations.
    parts
        Resource -> number of parts per unit, for resources whose amounts are in parts of a unit.
    licenses
        Name of a license -> number of them in the whole machine.
    """

    resources: tuple[str, ...]
    owner: tuple[OwnerEntry, ...]
    sets: tuple[str, ...] = ()
    partition: tuple[PartitionEntry, ...] = ()
    qos: tuple[QosEntry, ...] = ()
    association: tuple[AssociationEntry, ...] = ()
    window: tuple[WindowEntry, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    licenses: Mapping[str, int] = field(default_factory=dict)

    def build(self) -> Machine:
        """Build the machine; raises InputError for unknown names and invalid values."""
        build, numbers = MachineBuilder("machine", self.resources), {entry.name: k for k, entry in enumerate(self.owner)}
        for entry in self.owner:
            _add(build, entry, numbers)
        machine, associations = Machine.of(build), tuple(_association(entry) for entry in self.association)
        check_associations(associations)
        position = [entry.position or (entry.rack, 0) for entry in self.owner]
        if any(len(place) != 2 for place in position):
            raise InputError("a position must have two numbers", field="owner", remedy="such as position = [0, 3]")
        return replace(
            machine,
            position=np.array(position, dtype=np.int64).reshape(-1, 2),
            node_sets={name: np.array([name in entry.sets for entry in self.owner], dtype=np.bool_) for name in self.sets},
            partitions=tuple(
                Partition(p.name, p.default, _limit(p.max_time), p.max_nodes, p.tier, p.exclusive) for p in self.partition
            ),
            qos=tuple(
                QualityOfService(q.name, q.default, _limit(q.max_time), tuple(q.per_user.items()), tuple(q.total.items()))
                for q in self.qos
            ),
            associations=associations,
            windows=tuple(_window(entry, numbers) for entry in self.window),
            fabric=self._fabric(),
            parts=dict(self.parts),
            licenses=dict(self.licenses),
        )

    def _fabric(self) -> Fabric | None:
        links = [(k, entry) for k, entry in enumerate(self.owner) if entry.ends]
        if not links:
            return None
        if any(len(entry.ends) != 2 for _, entry in links):
            raise InputError("a link must have two ends", field="owner", remedy="such as ends = [0, 1]")
        return Fabric(
            np.array([entry.vertex for entry in self.owner], dtype=np.int64),
            np.array([k for k, _ in links], dtype=np.int64),
            np.array([entry.ends for _, entry in links], dtype=np.int64),
            np.array([_time(entry.latency) for _, entry in links], dtype=np.int64),
        )


def _add(build: MachineBuilder, entry: OwnerEntry, numbers: Mapping[str, int]) -> None:
    if entry.kind not in _KINDS:
        raise UnknownNameError.of("kind of owner", entry.kind, _KINDS, field="owner")
    if entry.home and entry.home not in numbers:
        raise UnknownNameError.of("owner", entry.home, numbers, field="owner")
    build.add(
        entry.name,
        _KINDS[entry.kind],
        entry.type,
        entry.capacity,
        rack=entry.rack,
        home=numbers[entry.home] if entry.home else -1,
        per_node=entry.per_node,
        attributes=entry.attributes,
    )


def _time(text: str) -> int:
    try:
        return parse(text, "time")
    except ValueError as error:
        raise InputError(str(error), field="owner") from None


def _limit(text: str) -> int:
    return _time(text) if text else NEVER


def _association(entry: AssociationEntry) -> AssociationLimits:
    limits = (tuple(amounts.items()) for amounts in (entry.per_job, entry.per_user, entry.total))
    return AssociationLimits(entry.account, entry.user, entry.parent, _limit(entry.max_time), *limits)


def _window(entry: WindowEntry, numbers: Mapping[str, int]) -> ReservedWindow:
    if unknown := [name for name in entry.owners if name not in numbers]:
        raise UnknownNameError.of("owner", unknown[0], numbers, field="window")
    owners = np.zeros(len(numbers), dtype=np.bool_)
    owners[[numbers[name] for name in entry.owners]] = True
    users, accounts = frozenset(entry.users), frozenset(entry.accounts)
    return ReservedWindow(entry.name, _time(entry.start), _time(entry.end), owners, users, accounts)


def owner_tables(machine: Machine) -> dict[str, Any]:
    """Return a machine as tables that `OwnerList` reads; failures are omitted, since schedulers do not know them."""
    return {
        "version": 1,
        "format": "owners",
        "name": machine.name,
        "resources": list(machine.resources),
        "sets": list(machine.node_sets),
        "parts": dict(machine.parts),
        **({"licenses": dict(machine.licenses)} if machine.licenses else {}),
        "partition": [_partition_table(part) for part in machine.partitions],
        "qos": [
            _given(q.__dict__ | {"max_time": _limit_text(q.max_time), "per_user": dict(q.per_user), "total": dict(q.total)})
            for q in machine.qos
        ],
        **({"association": [_association_table(each) for each in machine.associations]} if machine.associations else {}),
        "window": [_window_table(machine, window) for window in machine.windows],
        "owner": [_owner_table(machine, k) for k in range(machine.n_owner)],
    }


def _association_table(each: AssociationLimits) -> dict[str, Any]:
    amounts = {name: dict(getattr(each, name)) for name in ("per_job", "per_user", "total")}
    return _given(each.__dict__ | amounts | {"max_time": _limit_text(each.max_time)})


def _owner_table(machine: Machine, k: int) -> dict[str, Any]:
    amounts = zip(machine.resources, machine.capacity[k].tolist(), strict=True)
    per_node = ((name, int(column[k])) for name, column in machine.per_node.items())
    values = ((name, float(column[k])) for name, column in machine.attributes.items())
    home, fabric = int(machine.home[k]), machine.fabric
    table = {
        "name": machine.owners[k],
        "kind": Kind(int(machine.kind[k])).name.lower(),
        "type": machine.type[k],
        "capacity": {name: _amount(name, amount) for name, amount in amounts if amount},
        "per_node": {name: _amount(name, amount) for name, amount in per_node} if machine.kind[k] == Kind.NODE else {},
        "rack": int(machine.rack[k]),
        "position": machine.position[k].tolist(),
        "home": machine.owners[home] if home >= 0 else "",
        "attributes": {name: value for name, value in values if not np.isnan(value)},
        "sets": [name for name, members in machine.node_sets.items() if members[k]],
    }
    if fabric is not None:
        table["vertex"] = int(fabric.vertex[k])
        if len(link := np.flatnonzero(fabric.link == k)):
            table |= {"ends": fabric.ends[link[0]].tolist(), "latency": f"{int(fabric.latency[link[0]])} ns"}
    return _given(table)


def _window_table(machine: Machine, window: ReservedWindow) -> dict[str, Any]:
    return _given(
        {
            "name": window.name,
            "start": f"{window.start} ns",
            "end": f"{window.end} ns",
            "owners": [machine.owners[k] for k in np.flatnonzero(window.owners).tolist()],
            "users": sorted(window.users),
            "accounts": sorted(window.accounts),
        }
    )


def _partition_table(part: Partition) -> dict[str, Any]:
    table = _given(part.__dict__ | {"max_time": _limit_text(part.max_time)})
    return table if part.exclusive else {name: value for name, value in table.items() if name != "exclusive"}


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """Drop empty values and absent limits."""
    return {key: value for key, value in table.items() if value not in ("", [], {}, NEVER)}


def _amount(resource: str, amount: int) -> int | str:
    unit = _UNIT.get(DIMENSIONS.get(resource, "count"))
    return amount if unit is None else f"{amount} {unit}"


def _limit_text(limit: int) -> str:
    return "" if limit == NEVER else f"{limit} ns"
