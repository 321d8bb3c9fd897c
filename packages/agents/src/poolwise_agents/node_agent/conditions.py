"""Device conditions in the status of a claim: the reported ones, and those that should be reported."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise_agents.node_agent.records import ClaimRecord, ClaimState
from poolwise_agents.node_agent.required_attachments import allocated_devices

_LONGEST = 1000
DeviceConditions = dict[tuple[str, str, str], dict[str, str]]  # (pool, device, share) -> condition that is true -> its message


def condition_names(driver: str) -> tuple[str, str]:
    """Return the names of a driver's conditions for an attached device and for a failed attachment."""
    return f"{driver}/attached", f"{driver}/attach-failed"


def record_conditions(record: ClaimRecord) -> DeviceConditions | None:
    """Return the conditions to report for a record, None without a result; a single device reports a failure of the claim."""
    if record.reason:
        named = [device for device in (record.devices[record.failed], *record.devices) if device.failures]
        return {device.identity[1:]: {device.failures[0]: record.reason[:_LONGEST]} for device in named[:1]}
    if record.state in (ClaimState.ATTACHED, ClaimState.PREPARED):
        return {device.identity[1:]: dict.fromkeys(device.conditions, "") for device in record.devices if device.conditions}
    return None


def claim_failure_conditions(claim: ResourceClaim, driver: str, why: str) -> DeviceConditions:
    """Return the failure condition of a claim without a record, for the first device that declares one."""
    named = [device for device in allocated_devices(claim, driver) if device.binding_failure_conditions]
    return {
        (device.pool, device.device, device.share_id or ""): {(device.binding_failure_conditions or [""])[0]: why[:_LONGEST]}
        for device in named[:1]
    }


def reported_conditions(claim: ResourceClaim, driver: str) -> DeviceConditions:
    """Return the true conditions of a driver's devices in a claim's status, without messages."""
    return {
        (device.pool, device.device, device.share_id or ""): {c.type: "" for c in device.conditions if c.status == "True"}
        for device in claim.status.devices
        if device.driver == driver
    }


def is_reported(claim: ResourceClaim, driver: str, expected: DeviceConditions) -> bool:
    """Return whether a claim's status already has the expected conditions."""
    reported = reported_conditions(claim, driver)
    return {key: [*kinds] for key, kinds in expected.items()} == {key: [*kinds] for key, kinds in reported.items() if kinds}


def status_devices(conditions: DeviceConditions, driver: str) -> list[dict[str, Any]]:
    """Return the device entries of a claim's status."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    true, reasons = {"status": "True", "lastTransitionTime": now}, ("AttachFailed", "Attached")
    return [
        {"driver": driver, "pool": pool, "device": device}
        | ({"shareID": share} if share else {})
        | {"conditions": [true | {"type": kind, "message": text, "reason": reasons[not text]} for kind, text in kinds.items()]}
        for (pool, device, share), kinds in conditions.items()
    ]
