"""Choosing devices for the claims of a pod on a node, as Kubernetes defines what a claim may have.

A search with backtracking: requests in the order of the claims, alternatives in theirs, devices that a policy chose first.
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
from poolwise.live.kubernetes.devices import DeviceId, DeviceUsage, Inventory, Part, Published
from poolwise.live.kubernetes.node_constraints import kept_off, term_holds
from poolwise.live.kubernetes.objects import (
    AllocatedDevice,
    Allocation,
    Capacity,
    DeviceAllocation,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ExactRequest,
    Node,
    NodeSelector,
    Requirement,
    ResourceClaim,
    SelectorTerm,
)
from poolwise.live.kubernetes.quantity import parse_quantity, quantity_text

_STEPS = 20_000
"""After so many tries a search gives up."""


@dataclass(frozen=True, slots=True)
class ChosenDevice:
    """A device for a request, named as the claim's status names it."""

    request: str
    wanted: ExactRequest
    device: Published
    part: Part


@dataclass
class Devices:
    """What there is to choose from.

    Attributes
    ----------
    inventory, usage : the devices, and what is taken of them
    classes : classes by name
    avoided : devices that are left alone for a while, since an attempt to attach them failed
    """

    inventory: Inventory
    usage: DeviceUsage
    classes: Mapping[str, DeviceClass]
    avoided: Mapping[DeviceId, int] = field(default_factory=dict)

    def on(self, node: Node, preferred: Iterable[DeviceId] = ()) -> Iterator[Published]:
        """Devices that serve a node: the preferred ones in their order, then its own, then the others by name."""
        known = self.inventory.devices
        first = {id: known[id] for id in preferred if id in known and known[id].serves(node)}
        yield from first.values()
        yield from (device for device in self.inventory.on(node) if device.id not in first)

    def part(self, wanted: ExactRequest, device: Published) -> Part | None:
        """What a request would have of a device, whether it is free or not; None where the request does not accept it."""
        kind = self.classes.get(wanted.device_class_name)
        if kind is None or kept_off(device.device.taints, wanted.tolerations) is not None or device.id in self.avoided:
            return None
        if not device.described.selected(kind.spec.selectors) or not device.described.selected(wanted.selectors):
            return None
        return part_of(device, wanted)


class _Options:
    """Devices that a request accepts on a node, looked at one after the other when they are asked for."""

    def __init__(self, found: Iterator[tuple[Published, Part]]) -> None:
        self._found, self._seen = found, list[tuple[Published, Part]]()

    def __getitem__(self, k: int) -> tuple[Published, Part]:
        return self._seen[k]

    def has(self, many: int) -> bool:
        """Whether there are so many."""
        while len(self._seen) < many:
            if (one := next(self._found, None)) is None:
                return False
            self._seen.append(one)
        return True

    def count(self) -> int:
        """How many there are."""
        self._seen += self._found
        return len(self._seen)


def part_of(device: Published, wanted: ExactRequest) -> Part | None:
    """What a request has of a device: all of it, or the amounts that its policies make of the request; None if too little."""
    amounts = _amounts(device.capacity, _asked(wanted), device.shared)
    return None if amounts is None else Part(device.id, amounts if device.shared else None)


def _asked(wanted: ExactRequest) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(wanted.capacity.requests.items()))


@lru_cache(maxsize=2**16)
def _amounts(capacity: bytes, asked: tuple[tuple[str, str], ...], shared: bool) -> tuple[tuple[str, Fraction], ...] | None:
    """What is taken of each capacity of a device that is shared, () of one that is not; None if it has too little."""
    has, wanted = msgspec.json.decode(capacity, type=dict[str, Capacity]), dict(asked)
    if wanted.keys() - has.keys():
        return None
    if not shared:
        return () if all(parse_quantity(has[name].value) >= parse_quantity(text) for name, text in asked) else None
    amounts = []
    for name, one in sorted(has.items()):
        amount = _rounded(one, wanted.get(name))
        if amount is None or amount > parse_quantity(one.value):
            return None
        amounts.append((name, amount))
    return tuple(amounts)


def _rounded(capacity: Capacity, asked: str | None) -> Fraction | None:
    """The amount that is taken where one is asked for; without a policy the amount itself, or all."""
    policy, whole = capacity.request_policy, parse_quantity(capacity.value)
    if policy is None:
        return whole if asked is None else parse_quantity(asked)
    if asked is None:
        return whole if policy.default is None else parse_quantity(policy.default)
    amount = parse_quantity(asked)
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
    """Choose devices for all of some claims on a node, or say what is short. Nothing is taken yet.

    Raises InputError for an expression that cannot be read.
    """
    search = _Search(node, devices, preferred)
    wishes = [(claim, request) for claim in claims for request in claim.spec.devices.requests]
    try:
        found = search.solve(wishes)
    finally:
        for claim, one in search.taken:
            devices.usage.give(claim.metadata.uid, one.part)
    if not found:
        return search.shortage or "no devices"
    return [[one for owner, one in search.taken if owner is claim] for claim in claims]


@dataclass
class _Search:
    node: Node
    devices: Devices
    preferred: Sequence[DeviceId]
    taken: list[tuple[ResourceClaim, ChosenDevice]] = field(default_factory=list)
    shortage: str = ""
    steps: int = 0

    def solve(self, wishes: Sequence[tuple[ResourceClaim, DeviceRequest]]) -> bool:
        """Serve all wishes; what was chosen stays in `taken`."""
        if not wishes:
            return True
        (claim, request), rest = wishes[0], wishes[1:]
        for wanted in request.alternatives:
            name = request.name if request.exactly is not None else f"{request.name}/{wanted.name}"
            every = wanted.allocation_mode == "All"
            options = _Options(self._accepted(wanted, every))
            count = options.count() if every else wanted.count
            if count and self._choose(claim, name, wanted, options, 0, count, rest):
                return True
        if not self.shortage:
            classes = " or ".join(wanted.device_class_name for wanted in request.alternatives)
            self.shortage = f"too few free devices of {classes} that its claim accepts serve node {self.node.metadata.name}"
        return False

    def _accepted(self, wanted: ExactRequest, every: bool) -> Iterator[tuple[Published, Part]]:
        """What a request accepts; unless it wants every device, without what others have left too little of.

        What this request itself has chosen by then are other devices, so that none is left out that it could have.
        """
        usage, asked = self.devices.usage, _asked(wanted)
        for device in self.devices.on(self.node, self.preferred):
            request = device.capacity, asked
            if not every and (device.id in usage.whole or request in usage.too_much.get(device.id, ())):
                continue
            if (part := self.devices.part(wanted, device)) is None:
                continue
            if not every and part.amounts and not device.counters and not usage.fits(device, part, self.devices.inventory):
                usage.too_much.setdefault(device.id, set()).add(request)
                continue
            yield device, part

    def _choose(
        self,
        claim: ResourceClaim,
        name: str,
        wanted: ExactRequest,
        options: _Options,
        k: int,
        count: int,
        rest: Sequence[tuple[ResourceClaim, DeviceRequest]],
    ) -> bool:
        """Choose `count` more of the options from the k-th on, and go on with the rest."""
        if not count:
            return self.solve(rest)
        usage = self.devices.usage
        while options.has(k + count):
            device, part = options[k]
            k += 1
            self.steps += 1
            if self.steps > _STEPS:
                self.shortage = f"no devices were found within {_STEPS:,} tries"
                return False
            one = ChosenDevice(name, wanted, device, part)
            if not usage.fits(device, part, self.devices.inventory) or not self._agrees(claim, one):
                continue
            usage.allocate(claim.metadata.uid, part)
            self.taken.append((claim, one))
            if self._choose(claim, name, wanted, options, k, count - 1, rest):
                return True
            self.taken.pop()
            usage.give(claim.metadata.uid, part)
        return False

    def _agrees(self, claim: ResourceClaim, one: ChosenDevice) -> bool:
        """Whether a device has what the claim's constraints want it to have in common with those chosen."""
        mine = [other for owner, other in self.taken if owner is claim]
        return all(_keeps(constraint, one, mine) for constraint in claim.spec.devices.constraints)


def _keeps(constraint: DeviceConstraint, one: ChosenDevice, mine: Sequence[ChosenDevice]) -> bool:
    named = constraint.requests

    def concerned(chosen: ChosenDevice) -> bool:
        return not named or chosen.request in named or chosen.request.partition("/")[0] in named

    if not concerned(one):
        return True
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    value = _attribute(one.device, attribute)
    if value is None:
        return False
    others = [_attribute(other.device, attribute) for other in mine if concerned(other)]
    return all(value == other for other in others) if constraint.match_attribute else value not in others


def _attribute(device: Published, name: str) -> Any:
    domain, _, short = name.rpartition("/")
    found = device.device.attributes.get(name)
    return device.device.attributes.get(short) if found is None and domain == device.id.driver else found


def allocation_of(claim: ResourceClaim, chosen: Sequence[ChosenDevice], node: Node, devices: Devices) -> Allocation:
    """Write what was chosen for a claim as its status has it."""
    results = [
        AllocatedDevice(
            request=one.request,
            driver=one.device.id.driver,
            pool=one.device.id.pool,
            device=one.device.id.name,
            consumed_capacity=None if one.part.amounts is None else {k: quantity_text(v) for k, v in one.part.amounts},
            share_id=None if one.part.amounts is None else str(uuid.uuid4()),
            binding_conditions=one.device.device.binding_conditions or None,
            binding_failure_conditions=one.device.device.binding_failure_conditions or None,
            tolerations=one.wanted.tolerations or None,
        )
        for one in chosen
    ]
    return Allocation(
        devices=DeviceAllocation(results=results, config=_config(claim, chosen, devices)),
        node_selector=_usable_on(chosen, node),
        allocation_timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _config(claim: ResourceClaim, chosen: Sequence[ChosenDevice], devices: Devices) -> list[dict[str, Any]]:
    """Configuration of the classes, then that of the claim itself, for the requests that it concerns."""
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(one.request for one in chosen):
        wanted = next(one.wanted for one in chosen if one.request == name)
        config = devices.classes[wanted.device_class_name].spec.config
        found += [{"source": "FromClass", "requests": [name], **part} for part in config]
    found += [{"source": "FromClaim", **part} for part in claim.spec.devices.config]
    return found


def _usable_on(chosen: Sequence[ChosenDevice], node: Node) -> NodeSelector | None:
    """Nodes on which all devices can be used: this one alone if any is inside of it or binds to it."""
    if any(one.device.node_name is not None or one.device.device.binds_to_node for one in chosen):
        here = Requirement(key="metadata.name", operator="In", values=[node.metadata.name])
        return NodeSelector(node_selector_terms=[SelectorTerm(match_fields=[here])])
    selectors = {id(one.device.selector): one.device.selector for one in chosen if one.device.selector is not None}
    if not selectors:
        return None
    terms = [next(t for t in s.node_selector_terms if term_holds(t, node)) for s in selectors.values()]
    needs = {(need.key, need.operator, tuple(need.values)): need for term in terms for need in term.match_expressions}
    fields = {(need.key, need.operator, tuple(need.values)): need for term in terms for need in term.match_fields}
    return NodeSelector(
        node_selector_terms=[SelectorTerm(match_expressions=list(needs.values()), match_fields=list(fields.values()))]
    )


def unsupported(claim: ResourceClaim) -> InputError | None:
    """What a claim asks for that is not served."""
    for request in claim.spec.devices.requests:
        for wanted in request.alternatives:
            if wanted.admin_access:
                return InputError(
                    f"claim {claim.metadata.key} asks for access to devices in use",
                    field="spec.devices.requests.adminAccess",
                    remedy="leave pods that watch devices to kube-scheduler",
                )
    return None
