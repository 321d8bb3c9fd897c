"""Claims of a start: they get their devices and are reserved for pods, devices are attached; and all of that is taken back.

Every write names the version of what it changes, so that repeating it does no harm.
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
    """Gives claims their devices, and takes them back.

    Parameters
    ----------
    attach_patience
        Seconds for which binding conditions are awaited.
    """

    def __init__(self, writer: ApiWriter, *, attach_patience: float = 600.0) -> None:
        self._writer, self.attach_patience = writer, attach_patience
        self._claims: dict[str, ResourceClaim] = {}  # the latest seen, by uid
        self._seen: dict[str, asyncio.Event] = {}  # uid -> set when it is seen to change
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def saw(self, claim: ResourceClaim, deleted: bool) -> None:
        """Take notice of a claim; a watch may tell of a version before the one that a write has answered."""
        if deleted:
            self._claims.pop(claim.metadata.uid, None)
        elif (known := self._claims.get(claim.metadata.uid)) is None or not _is_older(claim, known):
            self._claims[claim.metadata.uid] = claim
        if (event := self._seen.get(claim.metadata.uid)) is not None:
            event.set()

    def keep(self, keys: Set[str]) -> None:
        """Take notice of the claims that there are, after a watch began anew."""
        for claim in [claim for claim in self._claims.values() if claim.metadata.key not in keys]:
            self.saw(claim, deleted=True)

    async def reserve(self, start: PodStart, write: ClaimWrite) -> ResourceClaim:
        """Give a claim its devices, and reserve it for a pod."""
        lock = self._locks.setdefault(write.claim.metadata.uid, asyncio.Lock())
        async with lock:
            claim = self._claims.get(write.claim.metadata.uid, write.claim)
            until = time.monotonic() + self._writer.patience
            while True:
                try:
                    return await self._reserve_once(start, write, claim)
                except ApiError as error:
                    if time.monotonic() > until or not (error.passes or error.status == 409):
                        raise
                    await asyncio.sleep(max(error.retry_after, 0.05))
                claim = await self._writer.again(lambda: self._writer.read_claim(write.claim))

    async def _reserve_once(self, start: PodStart, write: ClaimWrite, claim: ResourceClaim) -> ResourceClaim:
        path, me = claim_path(claim), start.pod.metadata
        if claim.metadata.uid != write.claim.metadata.uid or claim.metadata.deletion_timestamp:
            raise StartFailed(f"claim {claim.metadata.key} was deleted")
        has = claim.status.allocation
        if has is None and write.allocation is None:
            raise StartFailed(f"claim {claim.metadata.key} has lost its devices")
        if has is not None and write.allocation is not None and not _same(has, write.allocation):
            raise StartFailed(f"claim {claim.metadata.key} was given devices by somebody else")
        if has is None and FINALIZER not in claim.metadata.finalizers:
            body = {"metadata": _version(claim) | {"finalizers": [*claim.metadata.finalizers, FINALIZER]}}
            claim = _decoded(await self._writer.patch(path, body, CLAIM))
        users = claim.status.reserved_for
        if has is not None and any(user.uid == me.uid for user in users):
            return claim
        mine = Consumer(resource="pods", name=me.name, uid=me.uid)
        status: dict[str, Any] = {"reservedFor": [*users, mine]}
        if has is None:
            status["allocation"] = write.allocation
        now = _decoded(await self._writer.patch(f"{path}/status", {"metadata": _version(claim), "status": status}, CLAIM))
        if now.metadata.uid in self._claims:  # it has not been deleted meanwhile
            self.saw(now, deleted=False)
        return now

    async def attached(self, claim: ResourceClaim) -> None:
        """Wait until the binding conditions of all devices hold."""
        uid, until = claim.metadata.uid, time.monotonic() + self.attach_patience
        allocation = claim.status.allocation
        if allocation is None or not any(result.binding_conditions for result in allocation.devices.results):
            return
        event = self._seen.setdefault(uid, asyncio.Event())
        try:
            while True:
                event.clear()
                if _attached(self._claims.get(uid, claim)):
                    return
                left = until - time.monotonic()
                try:
                    await asyncio.wait_for(event.wait(), max(left, 0.001))
                except TimeoutError:
                    devices = [DeviceId(r.driver, r.pool, r.device) for r in allocation.devices.results if r.binding_conditions]
                    raise StartFailed(f"{devices[0]} was not attached within {self.attach_patience:g} s", devices) from None
                if uid not in self._claims:
                    raise StartFailed(f"claim {claim.metadata.key} was deleted")
        finally:
            self._seen.pop(uid, None)

    async def release(self, claim: ResourceClaim, consumer: str) -> None:
        """Take a reservation of a pod (uid) back, and the devices with the last one."""
        while True:
            now = await self._writer.again(lambda: self._writer.read_claim(claim))
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
                if not (error.passes or error.status == 409):
                    raise
                await asyncio.sleep(max(error.retry_after, 0.05))


def _version(claim: ResourceClaim) -> dict[str, Any]:
    return {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}


def _is_older(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a version of a claim is older than another. Versions are numbers that grow: Kubernetes says so since 1.35."""
    versions = claim.metadata.resource_version, other.metadata.resource_version
    return all(version.isdigit() for version in versions) and int(versions[0]) < int(versions[1])


def _decoded(body: bytes) -> ResourceClaim:
    return msgspec.json.decode(body, type=ResourceClaim)


def _same(one: Allocation, other: Allocation) -> bool:
    """Whether two allocations give the same devices."""

    def devices(allocation: Allocation) -> list[tuple[str, str, str, str]]:
        return sorted((r.request, r.driver, r.pool, r.device) for r in allocation.devices.results)

    return devices(one) == devices(other)


def _attached(claim: ResourceClaim) -> bool:
    """Whether all binding conditions hold; raises StartFailed where a failure condition does."""
    allocation = claim.status.allocation
    if allocation is None:
        raise StartFailed(f"claim {claim.metadata.key} has lost its devices")
    said = {(status.driver, status.pool, status.device): status.conditions for status in claim.status.devices}
    for result in allocation.devices.results:
        conditions = {c.type: c for c in said.get((result.driver, result.pool, result.device), []) if c.status == "True"}
        for name in result.binding_failure_conditions or ():
            if name in conditions:
                device = DeviceId(result.driver, result.pool, result.device)
                words = conditions[name].message or conditions[name].reason
                raise StartFailed(f"{device} could not be attached: {name}{f': {words}' if words else ''}", [device])
        if any(name not in conditions for name in result.binding_conditions or ()):
            return False
    return True
