"""Pod binding: allocate and reserve claims, wait for binding conditions, bind the pods of a start; and release of claims.

The pods of a start are bound only after all of them are prepared. A write without a response is verified before it is retried.
Every write of a claim names its resourceVersion, so that repeating it is safe.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence, Set
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from poolwise.live.kubernetes.api_writer import BIND, CLAIM, ApiWriter
from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.objects.claim import FINALIZER, Allocation, Consumer, ResourceClaim
from poolwise.live.kubernetes.objects.meta import Meta
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.start_waits import StartWaits
from poolwise.live.kubernetes.starts import BindFailed, Bound, ClaimWrite, PodStart, StartFailed, claim_path, pod_path
from poolwise.live.kubernetes.volume_binder import VolumeBinder
from poolwise.live.logs import log_event


class Reservations:
    """Allocates and releases the devices of claims. `attach_timeout` (s) limits the wait for device binding conditions."""

    def __init__(self, writer: ApiWriter, *, attach_timeout: float = 600.0) -> None:
        self._writer, self.attach_timeout = writer, attach_timeout
        self._claims: dict[str, ResourceClaim] = {}  # latest version of each, by uid
        self._changed: dict[str, set[asyncio.Event]] = {}  # uid -> events that are set when the claim changes
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def observe(self, claim: ResourceClaim, deleted: bool) -> None:
        """Update a claim from a watch event or a write's response, ignoring versions older than the known one."""
        if deleted:
            self._claims.pop(claim.metadata.uid, None)
        elif (previous := self._claims.get(claim.metadata.uid)) is None or not claim.metadata.is_older_than(previous.metadata):
            self._claims[claim.metadata.uid] = claim
        for event in self._changed.get(claim.metadata.uid, ()):
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
            claim = msgspec.json.decode(await self._writer.patch(path, body, CLAIM), type=ResourceClaim)
        users = claim.status.reserved_for
        if has is not None and claim.is_reserved_for(meta.uid):
            return claim
        mine = Consumer(resource="pods", name=meta.name, uid=meta.uid)
        status: dict[str, Any] = {"reservedFor": [*users, mine]}
        if has is None:
            status["allocation"] = write.allocation
        changed = await self._writer.patch(f"{path}/status", {"metadata": _version(claim), "status": status}, CLAIM)
        now = msgspec.json.decode(changed, type=ResourceClaim)
        if now.metadata.uid in self._claims:  # not deleted in the meantime
            self.observe(now, deleted=False)
        return now

    async def wait_attached(self, claim: ResourceClaim, waits: StartWaits) -> None:
        """Wait until the binding conditions of all devices are true; raise StartFailed on failure or timeout."""
        uid, until = claim.metadata.uid, time.monotonic() + self.attach_timeout
        devices = [result.id for result in claim.allocated_devices if result.binding_conditions]
        if not devices:
            return
        with waits.wait() as event:
            changed = self._changed.setdefault(uid, set())
            changed.add(event)
            try:
                waits.check()
                while True:
                    event.clear()
                    if _is_attached(self._claims.get(uid, claim)):
                        return
                    left = until - time.monotonic()
                    try:
                        await asyncio.wait_for(event.wait(), max(left, 0.001))
                    except TimeoutError:
                        reason = f"{devices[0]} was not attached within {self.attach_timeout:g} s"
                        raise StartFailed(reason, devices) from None
                    waits.check()
                    if uid not in self._claims:
                        raise StartFailed(f"claim {claim.metadata.key} was deleted")
            finally:
                changed.discard(event)
                if not changed:
                    self._changed.pop(uid, None)

    async def release(self, claim: ResourceClaim, consumer: str, allocation: Allocation | None = None) -> None:
        """Remove a pod (uid) from a claim's reservations; the last removal also deallocates the devices.

        Another process may schedule the same pods. The reservation therefore remains if that process has bound the pod, or if
        it has allocated different devices than `allocation`.
        """
        while True:
            now = await self._writer.retry(lambda: self._writer.read_claim(claim))
            if now.metadata.uid != claim.metadata.uid or now.status.allocation is None:
                return
            if allocation is not None and not _same_devices(now.status.allocation, allocation):
                return
            if await self._is_bound(now, consumer):
                return
            users = [user for user in now.status.reserved_for if user.uid != consumer]
            if len(users) == len(now.status.reserved_for) and users:
                return
            status: dict[str, Any] = {"reservedFor": users or None}
            if not users:
                status |= {"allocation": None, "devices": None}
            try:
                await self._writer.patch(f"{claim_path(claim)}/status", {"metadata": _version(now), "status": status}, CLAIM)
                log_event("reservation_released", claim=claim.metadata.key, uid=consumer, deallocated=not users)
                return
            except ApiError as error:
                if not (error.is_temporary or error.status == 409):
                    raise
                await asyncio.sleep(max(error.retry_after, 0.05))

    async def _is_bound(self, claim: ResourceClaim, consumer: str) -> bool:
        """Return whether the pod (uid) that a claim is reserved for has a node and has not terminated."""
        for user in claim.status.reserved_for:
            if user.uid == consumer:
                user_pod = Pod(metadata=Meta(name=user.name, namespace=claim.metadata.namespace, uid=user.uid))
                try:
                    pod = await self._writer.retry(partial(self._writer.read_pod, user_pod))
                except StartFailed:  # it was deleted
                    return False
                return bool(pod.spec.node_name) and not pod.terminated
        return False


class Binder:
    """Binds the pods of starts."""

    def __init__(
        self,
        writer: ApiWriter,
        reservations: Reservations,
        report: Callable[[Bound | BindFailed], None],
        volumes: VolumeBinder | None = None,
    ) -> None:
        self._writer, self._reservations, self._report, self._volumes = writer, reservations, report, volumes
        self.deleted_nodes: set[str] = set()  # names of deleted nodes; the API server would still bind pods to them
        self._waits: dict[int, StartWaits] = {}  # run -> waits of its start

    def abandon(self, run: int, reason: str) -> None:
        """Undo the start of a run whose node or devices no longer exist, unless its pods are being bound already."""
        if (waits := self._waits.get(run)) is not None:
            waits.fail(StartFailed(reason, lost=True))

    async def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Bind the pods of a run, or undo the start, and report the outcome."""
        bound: list[str] = []
        waits = self._waits[run] = StartWaits()
        try:
            await _await_all(self._prepare(pod, waits) for pod in pods)
            waits.check()
            results = await asyncio.gather(*(self._bind(pod) for pod in pods), return_exceptions=True)
            bound = [pod.pod.metadata.key for pod, result in zip(pods, results, strict=True) if result is None]
            for result in results:
                if result is not None:
                    raise result
        except (StartFailed, ApiError) as problem:
            await self._undo([pod for pod in pods if pod.pod.metadata.key not in bound])
            cause = problem if isinstance(problem, StartFailed) else StartFailed("")
            self._report(BindFailed(run, str(problem), tuple(bound), cause.failed, cause.lost, cause.volumes))
            return
        finally:
            del self._waits[run]
        self._report(Bound(run))

    async def _prepare(self, start: PodStart, waits: StartWaits) -> None:
        """Prepare a pod; its failure ends the waits of the other pods of the start."""
        try:
            await self._reserve(start, waits)
        except (StartFailed, ApiError) as problem:
            waits.fail(problem)
            raise

    async def _reserve(self, start: PodStart, waits: StartWaits) -> None:
        """Nominate the node, reserve the claims and wait until their devices are attached."""
        if start.nominate and start.pod.status.nominated_node_name != start.node:
            path = f"{pod_path(start.pod)}/status"
            body = {"metadata": {"uid": start.pod.metadata.uid}, "status": {"nominatedNodeName": start.node}}
            await self._writer.retry(lambda: self._writer.patch(path, body, CLAIM), conflicts=True)
        ready = [await self._reservations.reserve(start, write) for write in start.claims]
        if self._volumes is not None:
            await self._volumes.select_node(start.volumes)
        for claim in ready:
            await self._reservations.wait_attached(claim, waits)
        if self._volumes is not None:
            for volume in start.volumes:
                await self._volumes.wait_bound(volume, waits)

    async def _bind(self, start: PodStart) -> None:
        """Bind a pod to its node, verifying the pod after each failed attempt."""
        meta, until = start.pod.metadata, time.monotonic() + self._writer.retry_timeout
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": start.node},
        }
        while True:
            if start.node in self.deleted_nodes:
                raise StartFailed(f"node {start.node} was deleted")
            try:
                await self._writer.post(f"{pod_path(start.pod)}/binding", body, BIND)
                return
            except ApiError as error:
                if not (error.is_temporary or error.status in (404, 409)):
                    raise
                wait, first = max(error.retry_after, 0.05), error
            pod = await self._writer.retry(lambda: self._writer.read_pod(start.pod))
            if pod.spec.node_name == start.node:
                return
            if pod.spec.node_name or pod.spec.scheduling_gates or time.monotonic() > until:
                suffix = f"; it is on node {pod.spec.node_name}" if pod.spec.node_name else ""
                raise StartFailed(f"cannot bind pod {meta.key}: {first}{suffix}")
            await asyncio.sleep(wait)

    async def _undo(self, pods: Sequence[PodStart]) -> None:
        """Release the claims of pods that were not bound; failed releases are repeated before the next start."""
        for start in pods:
            for write in start.claims:
                try:
                    await self._reservations.release(write.claim, start.pod.metadata.uid, write.allocation)
                except (ApiError, StartFailed):
                    continue


async def _await_all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all steps, then raise the first failure."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _version(claim: ResourceClaim) -> dict[str, Any]:
    return {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}


def _same_devices(allocation: Allocation, other: Allocation) -> bool:
    first, second = (sorted((r.request, r.driver, r.pool, r.device) for r in a.devices.results) for a in (allocation, other))
    return first == second


def _is_attached(claim: ResourceClaim) -> bool:
    """Return whether all binding conditions are true; raise StartFailed if a binding failure condition is true."""
    if claim.status.allocation is None:
        raise StartFailed(f"claim {claim.metadata.key} has lost its allocation")
    reported = {device.id: {c.type: c for c in device.conditions if c.status == "True"} for device in claim.status.devices}
    for result in claim.allocated_devices:
        conditions = reported.get(result.id, {})
        for name in result.binding_failure_conditions or ():
            if name in conditions:
                detail = conditions[name].message or conditions[name].reason
                raise StartFailed(f"attaching {result.id} failed: {name}{f': {detail}' if detail else ''}", [result.id])
        if any(name not in conditions for name in result.binding_conditions or ()):
            return False
    return True
