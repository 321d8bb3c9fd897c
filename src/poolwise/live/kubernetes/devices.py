"""Inventory and usage of devices: published devices, the nodes that they serve, and the shares that claims hold."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import msgspec

from poolwise.errors import InputError
from poolwise.live.kubernetes.node_constraints import selector_matches
from poolwise.live.kubernetes.objects.claim import AllocatedDevice
from poolwise.live.kubernetes.objects.device import DeviceClass, DeviceId, DeviceTaintRule, PublishedDevice, ResourceSlice
from poolwise.live.kubernetes.objects.node import Node, Taint
from poolwise.live.kubernetes.objects.selectors import NodeSelector
from poolwise.live.kubernetes.quantity import parse_quantity
from poolwise.live.kubernetes.selectors import DescribedDevice

PoolId = tuple[str, str]  # driver and name of a device pool


CounterId = tuple[str, str, str, str]  # driver, pool, set and name of a counter that the devices of a pool share


@dataclass(frozen=True, eq=False)
class InventoryDevice:
    """A device of a complete pool."""

    id: DeviceId
    device: PublishedDevice  # as its driver publishes it
    node_name: str | None  # the only node that it serves
    selector: NodeSelector | None  # the nodes that it serves; every node if both are None
    described: DescribedDevice  # device as CEL expressions see it
    counters: Mapping[CounterId, Fraction]  # amounts that it consumes of shared counters while in use
    capacity: bytes  # its capacities as JSON, equal for devices with the same ones

    def serves(self, node: Node) -> bool:
        """Return whether the device can be used on a node."""
        if self.node_name is not None:
            return self.node_name == node.metadata.name
        return selector_matches(self.selector, node)

    @property
    def shared(self) -> bool:
        """True if several claims may hold shares of it."""
        return self.device.allow_multiple_allocations


class MultiNodeDevices:
    """Devices that serve several nodes, matched once per distinct node selection."""

    def __init__(self) -> None:
        self._by_selection: dict[bytes, dict[DeviceId, InventoryDevice]] = {}
        self._on: dict[str, tuple[Mapping[str, str], Sequence[InventoryDevice]]] = {}  # node -> labels, devices serving it
        self._lists: dict[tuple[bytes, ...], Sequence[InventoryDevice]] = {}  # one list for all nodes of a rack

    def add(self, device: InventoryDevice) -> None:
        """Add a device."""
        self._by_selection.setdefault(node_selection_key(device), {})[device.id] = device
        self._forget()

    def remove(self, device: InventoryDevice) -> None:
        """Remove a device."""
        same_selection = self._by_selection[node_selection_key(device)]
        del same_selection[device.id]
        if not same_selection:
            del self._by_selection[node_selection_key(device)]
        self._forget()

    def serving(self, node: Node) -> Sequence[InventoryDevice]:
        """Return the devices that serve a node, by name."""
        cached = self._on.get(node.metadata.name)
        if cached is None or cached[0] != node.metadata.labels:
            keys = tuple(key for key, devices in self._by_selection.items() if next(iter(devices.values())).serves(node))
            if keys not in self._lists:
                self._lists[keys] = sorted((d for key in keys for d in self._by_selection[key].values()), key=lambda d: d.id)
            cached = self._on[node.metadata.name] = node.metadata.labels, self._lists[keys]
        return cached[1]

    def _forget(self) -> None:
        self._on.clear()
        self._lists.clear()


def node_selection_key(device: InventoryDevice) -> bytes:
    """Return a key of the nodes that a device serves: devices with equal keys serve the same nodes."""
    return msgspec.json.encode((device.node_name, device.selector))


class Inventory:
    """The devices of all complete pools, updated as slices change.

    A pool counts only if all slices of its newest generation exist and device names are unique. `classes` are the device
    classes by name, which taint rules may refer to.
    """

    def __init__(self, classes: Mapping[str, DeviceClass] | None = None) -> None:
        self.devices: dict[DeviceId, InventoryDevice] = {}
        self.evicting: set[DeviceId] = set()  # devices with a taint that evicts pods (NoExecute)
        self._classes: Mapping[str, DeviceClass] = classes if classes is not None else {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self.rule_problems: dict[str, str] = {}  # taint rule -> why an expression of it cannot be evaluated
        self._taints: dict[DeviceId, list[Taint]] = {}  # of tainted devices: those of the driver, then those of rules
        self.counters: dict[CounterId, Fraction] = {}
        self.users: dict[CounterId, list[InventoryDevice]] = {}  # counter -> devices that consume it while in use
        self._pools: dict[PoolId, list[InventoryDevice]] = {}
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._pool_of: dict[str, PoolId] = {}
        self._local: dict[str, list[InventoryDevice]] = {}  # by node
        self._multi_node = MultiNodeDevices()
        self._counters_of: dict[PoolId, set[CounterId]] = {}

    def apply_slice(self, slice: ResourceSlice, deleted: bool = False) -> None:
        """Add, replace or delete a slice."""
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

    def apply_rule(self, rule: DeviceTaintRule, deleted: bool = False) -> set[DeviceId]:
        """Add, replace or delete a taint rule, and return the devices whose taints changed."""
        self._rules.pop(rule.metadata.name, None)
        if not deleted:
            self._rules[rule.metadata.name] = rule
        return self.refresh_taints()

    def refresh_taints(self) -> set[DeviceId]:
        """Apply the taint rules again, and return the devices whose taints changed; needed after changes of classes."""
        before, self._taints = self._taints, {}
        self.rule_problems.clear()
        self.evicting.clear()
        for device in self.devices.values():
            self._taint(device)
        return {id for id in before.keys() | self._taints.keys() if before.get(id) != self._taints.get(id)}

    def taints(self, device: InventoryDevice) -> Sequence[Taint]:
        """Return the taints of a device from its driver and from taint rules."""
        return self._taints.get(device.id, ())

    def _taint(self, device: InventoryDevice) -> None:
        rules = (rule for _, rule in sorted(self._rules.items()))
        taints = [*device.device.taints, *(rule.spec.taint for rule in rules if self._selects(rule, device))]
        if taints:
            self._taints[device.id] = taints
            if any(taint.effect == "NoExecute" for taint in taints):
                self.evicting.add(device.id)

    def _selects(self, rule: DeviceTaintRule, device: InventoryDevice) -> bool:
        """Return whether a rule taints a device; as in kube-scheduler, a rule without criteria taints every device."""
        selector = rule.spec.device_selector
        wanted = selector.driver, selector.pool, selector.device
        if any(name is not None and name != own for name, own in zip(wanted, device.id, strict=True)):
            return False
        selectors = list(selector.selectors)
        if selector.device_class_name is not None:
            if (kind := self._classes.get(selector.device_class_name)) is None:
                return False
            selectors += kind.spec.selectors
        try:
            return device.described.matches(selectors)
        except (
            InputError
        ) as problem:  # an expression that is not supported: rather leave a device idle than use a defective one
            self.rule_problems[rule.metadata.name] = problem.message
            return True

    def serving(self, node: Node) -> Iterator[InventoryDevice]:
        """Yield the devices that serve a node: local ones first, then by name."""
        yield from self._local.get(node.metadata.name, ())
        yield from self._multi_node.serving(node)

    def device_set_key(self, node: Node) -> int | None:
        """Return a key of the devices that serve a node, or None if it has local devices.

        Nodes with the same key are served by the same devices. Keys are valid until a slice or a node's labels change.
        """
        return None if self._local.get(node.metadata.name) else id(self._multi_node.serving(node))

    def counter_peers(self, device: InventoryDevice) -> list[InventoryDevice]:
        """Return the devices that share counters with a device, including itself."""
        sharing = {other.id: other for counter in device.counters for other in self.users.get(counter, ())}
        return list(({device.id: device} | sharing).values())

    def _rebuild(self, pool: PoolId) -> None:
        gone = self._pools.pop(pool, [])
        for counter in {counter for device in gone for counter in device.counters}:
            del self.users[counter]  # counters are local to a pool, so all their users are gone
        for device in gone:
            del self.devices[device.id]
            self._taints.pop(device.id, None)
            self.evicting.discard(device.id)
            if device.node_name is None:
                self._multi_node.remove(device)
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
                counter = (*pool, shared.name, name)
                self.counters[counter] = parse_quantity(amount.value)
                self._counters_of.setdefault(pool, set()).add(counter)
        for device in slice.spec.devices:
            own = slice.spec.per_device_node_selection
            published = InventoryDevice(
                DeviceId(*pool, device.name),
                device,
                device.node_name if own else slice.spec.node_name,
                device.node_selector if own else slice.spec.node_selector,
                DescribedDevice(pool[0], device),
                {
                    (*pool, use.counter_set, name): parse_quantity(amount.value)
                    for use in device.consumes_counters
                    for name, amount in use.counters.items()
                },
                msgspec.json.encode(device.capacity),
            )
            self.devices[published.id] = published
            self._taint(published)
            self._pools.setdefault(pool, []).append(published)
            for counter in published.counters:
                self.users.setdefault(counter, []).append(published)
            if published.node_name is None:
                self._multi_node.add(published)
            else:
                insort(self._local.setdefault(published.node_name, []), published, key=lambda device: device.id)


class DeviceShare(NamedTuple):
    """Share of a device that a claim holds: the whole device, or amounts of a shared one."""

    id: DeviceId
    amounts: tuple[tuple[str, Fraction], ...] | None = None

    @classmethod
    def of(cls, result: AllocatedDevice) -> DeviceShare:
        """Read the share from an allocation result."""
        amounts = result.consumed_capacity
        read = None if amounts is None else tuple(sorted((name, parse_quantity(text)) for name, text in amounts.items()))
        return cls(result.id, read)


@dataclass
class DeviceUsage:
    """Usage of devices by claims."""

    claims: dict[str, tuple[DeviceShare, ...]] = field(default_factory=dict)  # uid of a claim -> its shares
    whole: dict[DeviceId, Counter[str]] = field(default_factory=dict)  # device -> claims that hold all of it
    shares: dict[DeviceId, Counter[str]] = field(default_factory=dict)  # device -> claims that hold shares
    consumed: dict[DeviceId, dict[str, Fraction]] = field(default_factory=dict)  # device -> capacity -> amount in use
    # device -> requests larger than its remaining capacity, cleared whenever its usage changes
    insufficient: dict[DeviceId, set[Hashable]] = field(default_factory=dict)

    def hold(self, claim: str, shares: Iterable[DeviceShare]) -> None:
        """Replace the shares of a claim."""
        self.release(claim)
        self.claims[claim] = tuple(shares)
        for share in self.claims[claim]:
            self.allocate(claim, share)

    def release(self, claim: str) -> tuple[DeviceShare, ...]:
        """Release all shares of a claim and return them."""
        shares = self.claims.pop(claim, ())
        for share in shares:
            self.deallocate(claim, share)
        return shares

    def allocate(self, claim: str, share: DeviceShare) -> None:
        """Add a share to the usage."""
        self.insufficient.pop(share.id, None)
        holders = self.whole if share.amounts is None else self.shares
        holders.setdefault(share.id, Counter())[claim] += 1
        if share.amounts:
            used = self.consumed.setdefault(share.id, {})
            for name, amount in share.amounts:
                used[name] = used.get(name, Fraction(0)) + amount

    def deallocate(self, claim: str, share: DeviceShare) -> None:
        """Remove a share from the usage."""
        self.insufficient.pop(share.id, None)
        holders = self.whole if share.amounts is None else self.shares
        mine = holders[share.id]
        mine[claim] -= 1
        if not mine[claim]:
            del mine[claim]
        if not mine:
            del holders[share.id]
        if share.amounts:
            used = self.consumed[share.id]
            for name, amount in share.amounts:
                used[name] -= amount
            if share.id not in self.shares:
                del self.consumed[share.id]

    def in_use(self, id: DeviceId) -> bool:
        """Return whether any claim holds a device or a share of it."""
        return id in self.whole or id in self.shares

    def fits(self, device: InventoryDevice, share: DeviceShare, inventory: Inventory) -> bool:
        """Return whether a share of a device is free, including the counters that it consumes."""
        if device.id in self.whole or (share.amounts is None and device.id in self.shares):
            return False
        used = self.consumed.get(device.id, {})
        for name, amount in share.amounts or ():
            if used.get(name, Fraction(0)) + amount > parse_quantity(device.device.capacity[name].value):
                return False
        return device.id in self.shares or self.counters_left(device, inventory)

    def counters_left(self, device: InventoryDevice, inventory: Inventory) -> bool:
        """Return whether the other users of a device's counters leave enough for it."""
        return all(
            inventory.counters.get(counter, Fraction(0))
            - sum(
                other.counters[counter]
                for other in inventory.users.get(counter, ())
                if other.id != device.id and self.in_use(other.id)
            )
            >= amount
            for counter, amount in device.counters.items()
        )
