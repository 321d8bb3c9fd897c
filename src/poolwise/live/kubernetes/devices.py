"""The devices of a cluster: what slices publish, whom devices serve, and what is taken of them."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import msgspec

from poolwise.live.kubernetes.node_constraints import selects
from poolwise.live.kubernetes.objects import AllocatedDevice, Node, NodeSelector, PublishedDevice, ResourceSlice
from poolwise.live.kubernetes.quantity import parse_quantity
from poolwise.live.kubernetes.selectors import DescribedDevice


class DeviceId(NamedTuple):
    """What a device is called."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


PoolId = tuple[str, str]
"""Driver and name of a pool of devices."""


class CounterId(NamedTuple):
    """A counter that the devices of a pool share."""

    driver: str
    pool: str
    set: str
    counter: str


@dataclass(frozen=True, eq=False)
class Published:
    """A device that a complete pool has.

    Attributes
    ----------
    id : what it is called
    device : what its driver says of it
    node_name, selector : the one node, or those nodes, that it serves; every node where both are None
    described : the same for expressions
    counters : what it takes of counters while it is in use
    capacity : its capacities as JSON, by which devices that have the same are known
    """

    id: DeviceId
    device: PublishedDevice
    node_name: str | None
    selector: NodeSelector | None
    described: DescribedDevice
    counters: Mapping[CounterId, Fraction]
    capacity: bytes

    def serves(self, node: Node) -> bool:
        """Whether it can be used on a node."""
        if self.node_name is not None:
            return self.node_name == node.metadata.name
        return selects(self.selector, node)

    @property
    def shared(self) -> bool:
        """Whether several claims may have parts of it."""
        return self.device.allow_multiple_allocations


class WideDevices:
    """Devices that serve more than one node. Whom they serve is asked once for all that say it in the same words."""

    def __init__(self) -> None:
        self._by_words: dict[bytes, dict[DeviceId, Published]] = {}
        self._on: dict[str, tuple[Mapping[str, str], Sequence[Published]]] = {}  # node -> its labels, what serves it
        self._lists: dict[tuple[bytes, ...], Sequence[Published]] = {}  # one for all nodes of a rack

    def add(self, device: Published) -> None:
        """Add a device."""
        self._by_words.setdefault(words_of(device), {})[device.id] = device
        self._forget()

    def remove(self, device: Published) -> None:
        """Remove a device."""
        alike = self._by_words[words_of(device)]
        del alike[device.id]
        if not alike:
            del self._by_words[words_of(device)]
        self._forget()

    def on(self, node: Node) -> Sequence[Published]:
        """Devices that serve a node, by name."""
        known = self._on.get(node.metadata.name)
        if known is None or known[0] != node.metadata.labels:
            words = tuple(w for w, devices in self._by_words.items() if next(iter(devices.values())).serves(node))
            if words not in self._lists:
                self._lists[words] = sorted((d for w in words for d in self._by_words[w].values()), key=lambda d: d.id)
            known = self._on[node.metadata.name] = node.metadata.labels, self._lists[words]
        return known[1]

    def _forget(self) -> None:
        self._on.clear()
        self._lists.clear()


def words_of(device: Published) -> bytes:
    """What says which nodes a device serves: those that say the same serve the same."""
    return msgspec.json.encode((device.node_name, device.selector))


class Inventory:
    """The devices of all complete pools, kept up with slices as they come and go.

    A pool whose slices are not all there or give two devices one name, and slices of an older generation, do not count.

    Attributes
    ----------
    devices, counters : all of them
    users : counter -> the devices that take of it while they are in use
    """

    def __init__(self) -> None:
        self.devices: dict[DeviceId, Published] = {}
        self.counters: dict[CounterId, Fraction] = {}
        self.users: dict[CounterId, list[Published]] = {}
        self._pools: dict[PoolId, list[Published]] = {}
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._pool_of: dict[str, PoolId] = {}
        self._local: dict[str, list[Published]] = {}  # by node
        self._wide = WideDevices()
        self._counters_of: dict[PoolId, set[CounterId]] = {}

    def apply_slice(self, slice: ResourceSlice, deleted: bool = False) -> None:
        """Take notice of a slice."""
        name, pool = slice.metadata.name, (slice.spec.driver, slice.spec.pool.name)
        before = self._pool_of.pop(name, None)
        if before is not None:
            del self._slices[before][name]
            if before != pool:
                self._rebuild(before)
        if not deleted:
            self._slices.setdefault(pool, {})[name] = slice
            self._pool_of[name] = pool
        self._rebuild(pool)

    def on(self, node: Node) -> Iterator[Published]:
        """Devices that serve a node, its own first, then by name."""
        yield from self._local.get(node.metadata.name, ())
        yield from self._wide.on(node)

    def served(self, node: Node) -> int | None:
        """Name the devices that serve a node, the same for all nodes that they serve; None where it has devices of its own.

        It holds until a slice or the labels of a node change.
        """
        return None if self._local.get(node.metadata.name) else id(self._wide.on(node))

    def rivals(self, device: Published) -> list[Published]:
        """Devices that share counters with one, that one among them."""
        found = {other.id: other for counter in device.counters for other in self.users.get(counter, ())}
        return list(({device.id: device} | found).values())

    def _rebuild(self, pool: PoolId) -> None:
        """Read a pool anew."""
        gone = self._pools.pop(pool, [])
        for counter in {counter for device in gone for counter in device.counters}:
            del self.users[counter]  # they are of this pool, as all that share them
        for device in gone:
            del self.devices[device.id]
            if device.node_name is None:
                self._wide.remove(device)
        for node in {device.node_name for device in gone if device.node_name is not None}:
            self._local[node][:] = [device for device in self._local[node] if device.id[:2] != pool]
        for counter in self._counters_of.pop(pool, ()):
            del self.counters[counter]
        slices = self._slices.get(pool, {})
        if not slices:
            self._slices.pop(pool, None)
        newest = max((s.spec.pool.generation for s in slices.values()), default=0)
        whole = [s for s in slices.values() if s.spec.pool.generation == newest]
        names = [device.name for slice in whole for device in slice.spec.devices]
        if whole and len(whole) == whole[0].spec.pool.resource_slice_count and len(set(names)) == len(names):
            for slice in whole:
                self._publish(slice, pool)

    def _publish(self, slice: ResourceSlice, pool: PoolId) -> None:
        for shared in slice.spec.shared_counters:
            for name, amount in shared.counters.items():
                counter = CounterId(*pool, shared.name, name)
                self.counters[counter] = parse_quantity(amount.value)
                self._counters_of.setdefault(pool, set()).add(counter)
        for device in slice.spec.devices:
            own = slice.spec.per_device_node_selection
            found = Published(
                DeviceId(*pool, device.name),
                device,
                device.node_name if own else slice.spec.node_name,
                device.node_selector if own else slice.spec.node_selector,
                DescribedDevice(pool[0], device),
                {
                    CounterId(*pool, use.counter_set, name): parse_quantity(amount.value)
                    for use in device.consumes_counters
                    for name, amount in use.counters.items()
                },
                msgspec.json.encode(device.capacity),
            )
            self.devices[found.id] = found
            self._pools.setdefault(pool, []).append(found)
            for counter in found.counters:
                self.users.setdefault(counter, []).append(found)
            if found.node_name is None:
                self._wide.add(found)
            else:
                insort(self._local.setdefault(found.node_name, []), found, key=lambda device: device.id)


class Part(NamedTuple):
    """What a claim has of a device: all of it, or amounts of a shared one."""

    id: DeviceId
    amounts: tuple[tuple[str, Fraction], ...] | None = None

    @classmethod
    def of(cls, result: AllocatedDevice) -> Part:
        """Read what stands in a claim."""
        amounts = result.consumed_capacity
        read = None if amounts is None else tuple(sorted((name, parse_quantity(text)) for name, text in amounts.items()))
        return cls(DeviceId(result.driver, result.pool, result.device), read)


@dataclass
class DeviceUsage:
    """What is taken of devices, claim by claim.

    Attributes
    ----------
    claims : uid of a claim -> what it has
    whole : device -> claims that have all of it; more than one is a fault of whoever allocated
    shares : device -> claims that have parts of it, and how many
    consumed : device -> capacity -> amount taken
    too_much : device -> requests that its capacity left no room for, forgotten whenever what is taken of it changes
    """

    claims: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    whole: dict[DeviceId, Counter[str]] = field(default_factory=dict)
    shares: dict[DeviceId, Counter[str]] = field(default_factory=dict)
    consumed: dict[DeviceId, dict[str, Fraction]] = field(default_factory=dict)
    too_much: dict[DeviceId, set[Hashable]] = field(default_factory=dict)

    def hold(self, claim: str, parts: Iterable[Part]) -> None:
        """Let a claim have devices, in place of what it had."""
        self.release(claim)
        self.claims[claim] = tuple(parts)
        for part in self.claims[claim]:
            self.allocate(claim, part)

    def release(self, claim: str) -> tuple[Part, ...]:
        """Take back what a claim has; returns it."""
        parts = self.claims.pop(claim, ())
        for part in parts:
            self.give(claim, part)
        return parts

    def allocate(self, claim: str, part: Part) -> None:
        """Count a part as taken."""
        self.too_much.pop(part.id, None)
        holders = self.whole if part.amounts is None else self.shares
        holders.setdefault(part.id, Counter())[claim] += 1
        if part.amounts:
            used = self.consumed.setdefault(part.id, {})
            for name, amount in part.amounts:
                used[name] = used.get(name, Fraction(0)) + amount

    def give(self, claim: str, part: Part) -> None:
        """Count a part as given back."""
        self.too_much.pop(part.id, None)
        holders = self.whole if part.amounts is None else self.shares
        mine = holders[part.id]
        mine[claim] -= 1
        if not mine[claim]:
            del mine[claim]
        if not mine:
            del holders[part.id]
        if part.amounts:
            used = self.consumed[part.id]
            for name, amount in part.amounts:
                used[name] -= amount
            if part.id not in self.shares:
                del self.consumed[part.id]

    def busy(self, id: DeviceId) -> bool:
        """Whether anybody has it or a part of it."""
        return id in self.whole or id in self.shares

    def fits(self, device: Published, part: Part, inventory: Inventory) -> bool:
        """Whether a part of a device is there, with the counters that it takes."""
        if device.id in self.whole or (part.amounts is None and device.id in self.shares):
            return False
        used = self.consumed.get(device.id, {})
        for name, amount in part.amounts or ():
            if used.get(name, Fraction(0)) + amount > parse_quantity(device.device.capacity[name].value):
                return False
        return device.id in self.shares or self.counters_left(device, inventory)

    def counters_left(self, device: Published, inventory: Inventory) -> bool:
        """Whether the counters that a device takes are left by the others that share them."""
        return all(
            inventory.counters.get(counter, Fraction(0))
            - sum(
                other.counters[counter]
                for other in inventory.users.get(counter, ())
                if other.id != device.id and self.busy(other.id)
            )
            >= amount
            for counter, amount in device.counters.items()
        )
