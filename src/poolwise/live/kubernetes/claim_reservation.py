"""Reservations of resource claims: allocate devices, reserve claims for pods, wait for attachment, and release.

Every write names the resourceVersion of the claim, so that repeating it is safe.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from poolwise.live.kubernetes.api_writer import CLAIM, ApiWriter
from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.objects import FINALIZER, Allocation, Consumer, ResourceClaim
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart, StartFailed, claim_path


class Reservations:
    """Allocates and releases the devices of claims. `attach_timeout` (s) is that of device binding conditions."""

    def __init__(self, writer: ApiWriter, *, attach_timeout: float = 600.0) -> None:
        self._writer, self.attach_timeout = writer, attach_timeout
        self._claims: dict[str, ResourceClaim] = {}  # latest version of each, by uid
        self._changed: dict[str, asyncio.Event] = {}  # uid -> event that is set when the claim changes
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def observe(self, claim: ResourceClaim, deleted: bool) -> None:
        """Update a claim from a watch event or a write's response, ignoring versions older than the known one."""
        if deleted:
            self._claims.pop(claim.metadata.uid, None)
        elif (known := self._claims.get(claim.metadata.uid)) is None or not _is_older(claim, known):
            self._claims[claim.metadata.uid] = claim
        if (event := self._changed.get(claim.metadata.uid)) is not None:
            event.set()

    def retain(self, keys: Set[str]) -> None:
        """Drop claims that are not among these keys, after a relist."""
        for claim in [claim for claim in self._claims.values() if claim.metadata.key not in keys]:
            self.observe(claim, deleted=True)

    async def reserve(self, start: PodStart, write: ClaimWrite) -> ResourceClaim:
        """Allocate a claim's devices if it has none, and reserve it for a pod."""
        lock = self._locks.setdefault(write.claim.metadata.uid, asyncio.Lock())
        async with lock:
            claim = self._claims.get(write.claim.metadata.uid, write.claim)
            until = time.monotonic() + self._writer.retry_timeout
            while True:
                try:
                    return await self._reserve_once(start, write, claim)
                except ApiError as error:
                    if time.monotonic() > until or not (error.is_temporary or error.status == 409):
                        raise
                    await asyncio.sleep(max(error.retry_after, 0.05))
                claim = await self._writer.retry(lambda: self._writer.read_claim(write.claim))

    async def _reserve_once(self, start: PodStart, write: ClaimWrite, claim: ResourceClaim) -> ResourceClaim:
        path, meta = claim_path(claim), start.pod.metadata
        if claim.metadata.uid != write.claim.metadata.uid or claim.metadata.deletion_timestamp:
            raise StartFailed(f"claim {claim.metadata.key} was deleted")
        has = claim.status.allocation
        if has is None and write.allocation is None:
            raise StartFailed(f"claim {claim.metadata.key} has lost its allocation")
        if has is not None and write.allocation is not None and not _same_devices(has, write.allocation):
            raise StartFailed(f"claim {claim.metadata.key} was allocated by another scheduler")
        if has is None and FINALIZER not in claim.metadata.finalizers:
            body = {"metadata": _version(claim) | {"finalizers": [*claim.metadata.finalizers, FINALIZER]}}
            claim = _decode(await self._writer.patch(path, body, CLAIM))
        users = claim.status.reserved_for
        if has is not None and any(user.uid == meta.uid for user in users):
            return claim
        mine = Consumer(resource="pods", name=meta.name, uid=meta.uid)
        status: dict[str, Any] = {"reservedFor": [*users, mine]}
        if has is None:
            status["allocation"] = write.allocation
        now = _decode(await self._writer.patch(f"{path}/status", {"metadata": _version(claim), "status": status}, CLAIM))
        if now.metadata.uid in self._claims:  # not deleted in the meantime
            self.observe(now, deleted=False)
        return now

    async def wait_attached(self, claim: ResourceClaim) -> None:
        """Wait until the binding conditions of all devices are true; raise StartFailed on failure or timeout."""
        uid, until = claim.metadata.uid, time.monotonic() + self.attach_timeout
        allocation = claim.status.allocation
        if allocation is None or not any(result.binding_conditions for result in allocation.devices.results):
            return
        event = self._changed.setdefault(uid, asyncio.Event())
        try:
            while True:
                event.clear()
                if _is_attached(self._claims.get(uid, claim)):
                    return
                left = until - time.monotonic()
                try:
                    await asyncio.wait_for(event.wait(), max(left, 0.001))
                except TimeoutError:
                    devices = [DeviceId(r.driver, r.pool, r.device) for r in allocation.devices.results if r.binding_conditions]
                    raise StartFailed(f"{devices[0]} was not attached within {self.attach_timeout:g} s", devices) from None
                if uid not in self._claims:
                    raise StartFailed(f"claim {claim.metadata.key} was deleted")
        finally:
            self._changed.pop(uid, None)

    async def release(self, claim: ResourceClaim, consumer: str) -> None:
        """Remove a pod (uid) from a claim's reservations; the last removal also deallocates the devices."""
        while True:
            now = await self._writer.retry(lambda: self._writer.read_claim(claim))
            if now.metadata.uid != claim.metadata.uid or now.status.allocation is None:
                return
            users = [user for user in now.status.reserved_for if user.uid != consumer]
            if len(users) == len(now.status.reserved_for) and users:
                return
            status: dict[str, Any] = {"reservedFor": users or None}
            if not users:
                status |= {"allocation": None, "devices": None}
            try:
                await self._writer.patch(f"{claim_path(claim)}/status", {"metadata": _version(now), "status": status}, CLAIM)
                return
            except ApiError as error:
                if not (error.is_temporary or error.status == 409):
                    raise
                await asyncio.sleep(max(error.retry_after, 0.05))


def _version(claim: ResourceClaim) -> dict[str, Any]:
    return {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}


def _is_older(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Return whether a claim is older than another version of it; resourceVersions are comparable since Kubernetes 1.35."""
    versions = claim.metadata.resource_version, other.metadata.resource_version
    return all(version.isdigit() for version in versions) and int(versions[0]) < int(versions[1])


def _decode(body: bytes) -> ResourceClaim:
    return msgspec.json.decode(body, type=ResourceClaim)


def _same_devices(one: Allocation, other: Allocation) -> bool:
    """Return whether two allocations contain the same devices."""

    def devices(allocation: Allocation) -> list[tuple[str, str, str, str]]:
        return sorted((r.request, r.driver, r.pool, r.device) for r in allocation.devices.results)

    return devices(one) == devices(other)


def _is_attached(claim: ResourceClaim) -> bool:
    """Return whether all binding conditions are true; raise StartFailed if a binding failure condition is."""
    allocation = claim.status.allocation
    if allocation is None:
        raise StartFailed(f"claim {claim.metadata.key} has lost its allocation")
    conditions_of = {(device.driver, device.pool, device.device): device.conditions for device in claim.status.devices}
    for result in allocation.devices.results:
        conditions = {
            c.type: c for c in conditions_of.get((result.driver, result.pool, result.device), []) if c.status == "True"
        }
        for name in result.binding_failure_conditions or ():
            if name in conditions:
                device = DeviceId(result.driver, result.pool, result.device)
                detail = conditions[name].message or conditions[name].reason
                raise StartFailed(f"attaching {device} failed: {name}{f': {detail}' if detail else ''}", [device])
        if any(name not in conditions for name in result.binding_conditions or ()):
            return False
    return True
