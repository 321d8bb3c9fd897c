"""Device allocation for the claims of a pod on a node, following the rules of Dynamic Resource Allocation.

A backtracking search: requests in the order of the claims, alternatives in their order, and devices chosen by a policy first.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from poolwise.errors import InputError
from poolwise.live.kubernetes.devices import DeviceShare, DeviceUsage, Inventory, InventoryDevice
from poolwise.live.kubernetes.node_constraints import term_matches, untolerated_taint
from poolwise.live.kubernetes.objects.claim import (
    AllocatedDevice,
    Allocation,
    DeviceAllocation,
    DeviceConstraint,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
)
from poolwise.live.kubernetes.objects.device import Capacity, DeviceClass, DeviceId
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.selectors import NodeSelector, Requirement, SelectorTerm
from poolwise.live.kubernetes.quantity import parse_quantity, quantity_text

_MAX_STEPS = 20_000  # number of steps after which a search fails


@dataclass(frozen=True, slots=True)
class ChosenDevice:
    """A device chosen for a request; `request` is the name that the claim's status uses."""

    request: str
    wanted: ExactRequest
    device: InventoryDevice
    share: DeviceShare


@dataclass
class Devices:
    """Devices that can be allocated."""

    inventory: Inventory
    usage: DeviceUsage
    classes: Mapping[str, DeviceClass]  # device classes by name
    avoided: Mapping[DeviceId, int] = field(default_factory=dict)  # excluded for a while after a failed attachment

    def serving(self, node: Node, preferred: Iterable[DeviceId] = ()) -> Iterator[InventoryDevice]:
        """Yield the devices that serve a node: preferred ones in their order, then its local ones, then the others by name."""
        devices = self.inventory.devices
        first = {id: devices[id] for id in preferred if id in devices and devices[id].serves(node)}
        yield from first.values()
        yield from (device for device in self.inventory.serving(node) if device.id not in first)

    def share(self, request: ExactRequest, device: InventoryDevice) -> DeviceShare | None:
        """Return the share of a device that a request would take, even if in use; None if the request does not accept it."""
        kind = self.classes.get(request.device_class_name)
        taint = untolerated_taint(self.inventory.taints(device), request.tolerations)
        if kind is None or taint is not None or device.id in self.avoided:
            return None
        if not device.described.matches(kind.spec.selectors) or not device.described.matches(request.selectors):
            return None
        return share_of(device, request)


class _Options:
    """Devices that a request accepts on a node, evaluated lazily."""

    def __init__(self, options: Iterator[tuple[InventoryDevice, DeviceShare]]) -> None:
        self._found, self._seen = options, list[tuple[InventoryDevice, DeviceShare]]()

    def __getitem__(self, k: int) -> tuple[InventoryDevice, DeviceShare]:
        return self._seen[k]

    def has(self, many: int) -> bool:
        """Return whether there are at least `many` options."""
        while len(self._seen) < many:
            if (option := next(self._found, None)) is None:
                return False
            self._seen.append(option)
        return True

    def count(self) -> int:
        """Return the number of options."""
        self._seen += self._found
        return len(self._seen)


def share_of(device: InventoryDevice, request: ExactRequest) -> DeviceShare | None:
    """Return the share that a request takes: a whole device, or amounts by its request policies; None if it is too small."""
    amounts = _taken_amounts(device.capacity, _capacity_requests(request), device.shared)
    return None if amounts is None else DeviceShare(device.id, amounts if device.shared else None)


def _capacity_requests(request: ExactRequest) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(request.capacity.requests.items()))


@lru_cache(maxsize=2**16)
def _taken_amounts(
    capacity: bytes, requested: tuple[tuple[str, str], ...], shared: bool
) -> tuple[tuple[str, Fraction], ...] | None:
    """Return the amount taken of each capacity of a shared device, () for an exclusive one; None if the device is too small."""
    has, wanted = msgspec.json.decode(capacity, type=dict[str, Capacity]), dict(requested)
    if wanted.keys() - has.keys():
        return None
    if not shared:
        return () if all(parse_quantity(has[name].value) >= parse_quantity(text) for name, text in requested) else None
    amounts = []
    for name, available in sorted(has.items()):
        amount = _round_amount(available, wanted.get(name))
        if amount is None or amount > parse_quantity(available.value):
            return None
        amounts.append((name, amount))
    return tuple(amounts)


def _round_amount(capacity: Capacity, requested: str | None) -> Fraction | None:
    """Return the amount taken for a request, rounded by the request policy if there is one; all if nothing is requested."""
    policy, whole = capacity.request_policy, parse_quantity(capacity.value)
    if policy is None:
        return whole if requested is None else parse_quantity(requested)
    if requested is None:
        return whole if policy.default is None else parse_quantity(policy.default)
    amount = parse_quantity(requested)
    if policy.valid_values:
        return min((v for v in map(parse_quantity, policy.valid_values) if v >= amount), default=None)
    if not policy.valid_range:
        return amount
    low = parse_quantity(policy.valid_range.get("min", "0"))
    amount = max(amount, low)
    if "step" in policy.valid_range:
        step = parse_quantity(policy.valid_range["step"])
        amount = low - (low - amount) // step * step
    high = policy.valid_range.get("max")
    return None if high is not None and amount > parse_quantity(high) else amount


def allocate(
    claims: Sequence[ResourceClaim], node: Node, devices: Devices, preferred: Sequence[DeviceId] = ()
) -> list[list[ChosenDevice]] | str:
    """Choose devices for claims without an allocation, or return the shortage; the usage does not change.

    Preferred devices are tried first. Raises InputError for an invalid CEL expression.
    """
    search = _Search(node, devices, preferred)
    pending = [(claim, request) for claim in claims for request in claim.spec.devices.requests]
    try:
        solved = search.solve(pending)
    finally:
        for claim, choice in search.taken:
            devices.usage.deallocate(claim.metadata.uid, choice.share)
    if not solved:
        return search.shortage or "no devices are available"
    return [[choice for owner, choice in search.taken if owner is claim] for claim in claims]


@dataclass
class _Search:
    node: Node
    devices: Devices
    preferred: Sequence[DeviceId]
    taken: list[tuple[ResourceClaim, ChosenDevice]] = field(default_factory=list)
    shortage: str = ""
    steps: int = 0

    def solve(self, pending: Sequence[tuple[ResourceClaim, DeviceRequest]]) -> bool:
        """Serve all requests and append the chosen devices to `taken`."""
        if not pending:
            return True
        (claim, request), rest = pending[0], pending[1:]
        for wanted in request.alternatives:
            name = request.name if request.exactly is not None else f"{request.name}/{wanted.name}"
            every = wanted.allocation_mode == "All"
            options = _Options(self._accepted(wanted, every))
            count = options.count() if every else wanted.count
            if count and self._choose(claim, name, wanted, options, 0, count, rest):
                return True
        if not self.shortage:
            classes = " or ".join(wanted.device_class_name for wanted in request.alternatives)
            self.shortage = f"node {self.node.metadata.name} has too few free devices of {classes} that match the claim"
        return False

    def _accepted(self, wanted: ExactRequest, every: bool) -> Iterator[tuple[InventoryDevice, DeviceShare]]:
        """Yield the devices that a request accepts; unless it requests all devices, skip those with too little left."""
        usage, requested = self.devices.usage, _capacity_requests(wanted)
        for device in self.devices.serving(self.node, self.preferred):
            request = device.capacity, requested
            if not every and (device.id in usage.whole or request in usage.insufficient.get(device.id, ())):
                continue
            if (share := self.devices.share(wanted, device)) is None:
                continue
            if not every and share.amounts and not device.counters and not usage.fits(device, share, self.devices.inventory):
                usage.insufficient.setdefault(device.id, set()).add(request)
                continue
            yield device, share

    def _choose(
        self,
        claim: ResourceClaim,
        name: str,
        request: ExactRequest,
        options: _Options,
        k: int,
        count: int,
        rest: Sequence[tuple[ResourceClaim, DeviceRequest]],
    ) -> bool:
        """Choose `count` more options, starting with the k-th, then serve the remaining requests."""
        if not count:
            return self.solve(rest)
        usage = self.devices.usage
        while options.has(k + count):
            device, share = options[k]
            k += 1
            self.steps += 1
            if self.steps > _MAX_STEPS:
                self.shortage = f"no matching devices were found within {_MAX_STEPS:,} search steps"
                return False
            choice = ChosenDevice(name, request, device, share)
            if not usage.fits(device, share, self.devices.inventory) or not self._satisfies_constraints(claim, choice):
                continue
            usage.allocate(claim.metadata.uid, share)
            self.taken.append((claim, choice))
            if self._choose(claim, name, request, options, k, count - 1, rest):
                return True
            self.taken.pop()
            usage.deallocate(claim.metadata.uid, share)
        return False

    def _satisfies_constraints(self, claim: ResourceClaim, device: ChosenDevice) -> bool:
        """Return whether a device satisfies the claim's constraints together with the devices chosen so far."""
        mine = [other for owner, other in self.taken if owner is claim]
        return all(_satisfies(constraint, device, mine) for constraint in claim.spec.devices.constraints)


def _satisfies(constraint: DeviceConstraint, device: ChosenDevice, mine: Sequence[ChosenDevice]) -> bool:
    named = constraint.requests

    def concerned(chosen: ChosenDevice) -> bool:
        return not named or chosen.request in named or chosen.request.partition("/")[0] in named

    if not concerned(device):
        return True
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    value = _attribute(device.device, attribute)
    if value is None:
        return False
    others = [_attribute(other.device, attribute) for other in mine if concerned(other)]
    return all(value == other for other in others) if constraint.match_attribute else value not in others


def _attribute(device: InventoryDevice, name: str) -> Any:
    domain, _, short = name.rpartition("/")
    value = device.device.attributes.get(name)
    return device.device.attributes.get(short) if value is None and domain == device.id.driver else value


def allocation_of(claim: ResourceClaim, chosen: Sequence[ChosenDevice], node: Node, devices: Devices) -> Allocation:
    """Return the allocation of a claim's chosen devices, as the claim's status stores it."""
    results = [
        AllocatedDevice(
            request=choice.request,
            driver=choice.device.id.driver,
            pool=choice.device.id.pool,
            device=choice.device.id.name,
            consumed_capacity=None if choice.share.amounts is None else {k: quantity_text(v) for k, v in choice.share.amounts},
            share_id=None if choice.share.amounts is None else str(uuid.uuid4()),
            binding_conditions=choice.device.device.binding_conditions or None,
            binding_failure_conditions=choice.device.device.binding_failure_conditions or None,
            tolerations=choice.wanted.tolerations or None,
        )
        for choice in chosen
    ]
    return Allocation(
        devices=DeviceAllocation(results=results, config=_config(claim, chosen, devices)),
        node_selector=_usable_on(chosen, node),
        allocation_timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _config(claim: ResourceClaim, chosen: Sequence[ChosenDevice], devices: Devices) -> list[dict[str, Any]]:
    """Return the configurations of the device classes, then of the claim, each with the requests to which it applies."""
    entries: list[dict[str, Any]] = []
    for name in dict.fromkeys(choice.request for choice in chosen):
        wanted = next(choice.wanted for choice in chosen if choice.request == name)
        config = devices.classes[wanted.device_class_name].spec.config
        entries += [{"source": "FromClass", "requests": [name], **entry} for entry in config]
    entries += [{"source": "FromClaim", **entry} for entry in claim.spec.devices.config]
    return entries


def _usable_on(chosen: Sequence[ChosenDevice], node: Node) -> NodeSelector | None:
    """Return the nodes that can use all devices: only this node if a device is local to it or binds to it."""
    if any(choice.device.node_name is not None or choice.device.device.binds_to_node for choice in chosen):
        here = Requirement(key="metadata.name", operator="In", values=[node.metadata.name])
        return NodeSelector(node_selector_terms=[SelectorTerm(match_fields=[here])])
    selectors = {id(choice.device.selector): choice.device.selector for choice in chosen if choice.device.selector is not None}
    if not selectors:
        return None
    terms = [next(t for t in s.node_selector_terms if term_matches(t, node)) for s in selectors.values()]
    needs = {(need.key, need.operator, tuple(need.values)): need for term in terms for need in term.match_expressions}
    fields = {(need.key, need.operator, tuple(need.values)): need for term in terms for need in term.match_fields}
    return NodeSelector(
        node_selector_terms=[SelectorTerm(match_expressions=list(needs.values()), match_fields=list(fields.values()))]
    )


def check_supported(claim: ResourceClaim) -> None:
    """Raise InputError for a request that this scheduler does not support."""
    if any(wanted.admin_access for wanted in claim.wanted):
        problem = f"claim {claim.metadata.key} requests admin access, which is not supported"
        remedy = "let kube-scheduler place pods that monitor devices"
        raise InputError(problem, field="spec.devices.requests.adminAccess", remedy=remedy)
