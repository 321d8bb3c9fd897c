"""What a claim's status says of its devices, and what it should say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from poolwise.live.kubernetes.objects import ResourceClaim
from poolwise.live.node_agent.records import ClaimRecord, ClaimState
from poolwise.live.node_agent.required_attachments import allocated

_LONGEST = 1000
DeviceConditions = dict[tuple[str, str, str], dict[str, str]]
"""(pool, device, share) -> condition that holds -> its message."""


def attached_names(driver: str) -> tuple[str, str]:
    """The condition that a device is attached, and the one that it cannot be, as slices of a driver name them."""
    return f"{driver}/attached", f"{driver}/attach-failed"


def waits_for(claim: ResourceClaim, driver: str) -> bool:
    """Whether a pod waits until devices of a driver are attached."""
    return any(one.binding_conditions for one in allocated(claim, driver))


def verdict(record: ClaimRecord) -> DeviceConditions | None:
    """What a record says of devices that a pod waits for; None while nothing can be said."""
    if record.reason:
        return refused(record, record.reason, record.failed)
    if record.state in (ClaimState.ATTACHED, ClaimState.PREPARED):
        return {device.identity[1:]: dict.fromkeys(device.conditions, "") for device in record.devices if device.conditions}
    return None


def refused(record: ClaimRecord, why: str, failed: int) -> DeviceConditions:
    """What is said where a device cannot be attached: of that device, else of the first for which such a condition is named."""
    named = [device for device in (record.devices[failed], *record.devices) if device.failures]
    return {device.identity[1:]: {device.failures[0]: why[:_LONGEST]} for device in named[:1]}


def refused_claim(claim: ResourceClaim, driver: str, why: str) -> DeviceConditions:
    """The same of a claim that nothing was begun for."""
    named = [one for one in allocated(claim, driver) if one.binding_failure_conditions]
    return {
        (one.pool, one.device, one.share_id or ""): {(one.binding_failure_conditions or [""])[0]: why[:_LONGEST]}
        for one in named[:1]
    }


def said_of_devices(claim: ResourceClaim, driver: str) -> DeviceConditions:
    """Conditions that hold of the devices of a driver, as a claim's status has them, without messages."""
    return {
        (one.pool, one.device, one.share_id or ""): {c.type: "" for c in one.conditions if c.status == "True"}
        for one in claim.status.devices
        if one.driver == driver
    }


def holds(claim: ResourceClaim, driver: str, wanted: DeviceConditions) -> bool:
    """Whether a claim's status says already what it should."""
    says = said_of_devices(claim, driver)
    return {key: [*kinds] for key, kinds in wanted.items()} == {key: [*kinds] for key, kinds in says.items() if kinds}


def content_of(said: DeviceConditions, driver: str) -> list[dict[str, Any]]:
    """The devices of a claim's status."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return [
        {"driver": driver, "pool": pool, "device": device}
        | ({"shareID": share} if share else {})
        | {"conditions": [_condition(kind, text, now) for kind, text in kinds.items()]}
        for (pool, device, share), kinds in said.items()
    ]


def _condition(kind: str, text: str, now: str) -> dict[str, str]:
    reason = "AttachFailed" if text else "Attached"
    return {"type": kind, "status": "True", "reason": reason, "message": text, "lastTransitionTime": now}
