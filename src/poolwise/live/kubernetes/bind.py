"""What a start writes: claims get their devices, binding conditions are awaited, pods are bound.

Pods of one start are bound once all of them can be. Every write names the version or the uid of what it changes, so that
repeating it does no harm, and a write without an answer is looked up before it is repeated.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from poolwise.live.kubernetes.client import MERGE, ApiError, Client
from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.objects import Allocation, Consumer, Pod, ResourceClaim

FINALIZER = "resource.kubernetes.io/delete-protection"
BIND, CLAIM, SAY = range(3)
"""What comes first where writes wait for each other."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ClaimWrite:
    """A claim that a pod needs.

    Attributes
    ----------
    claim : as it was seen
    allocation : the devices that it is to have; None where it has some
    """

    claim: ResourceClaim
    allocation: Allocation | None


@dataclass(frozen=True, slots=True)
class PodStart:
    """A pod and where it goes.

    Attributes
    ----------
    pod : as it was seen
    node : name
    claims : in the order of the pod
    nominate : whether the node is written to the pod first, since no allocation names it
    """

    pod: Pod
    node: str
    claims: tuple[ClaimWrite, ...] = ()
    nominate: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """All pods of a run have their nodes."""

    run: int


@dataclass(frozen=True, slots=True)
class NotBound:
    """A start failed.

    Attributes
    ----------
    reason : why
    bound : keys of the pods that have a node nevertheless
    failed : devices that could not be attached
    """

    run: int
    reason: str
    bound: tuple[str, ...] = ()
    failed: tuple[DeviceId, ...] = ()


class StartFailed(Exception):
    """A start cannot be made real."""

    def __init__(self, reason: str, failed: Sequence[DeviceId] = ()) -> None:
        super().__init__(reason)
        self.failed = tuple(failed)


@dataclass
class Turns:
    """Lets some writes be under way at once, the urgent ones first."""

    most: int
    _busy: int = 0
    _waiting: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    _count: Any = field(default_factory=itertools.count)

    @asynccontextmanager
    async def turn(self, urgency: int) -> AsyncIterator[None]:
        """Wait for a turn; the lower the number, the sooner."""
        if self._busy >= self.most:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (urgency, next(self._count), mine))
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._next()
                raise
        else:
            self._busy += 1
        try:
            yield
        finally:
            self._next()

    def _next(self) -> None:
        while self._waiting:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)  # it takes over this turn
                return
        self._busy -= 1


class Binder:
    """Makes starts real, on the event loop of its client.

    Parameters
    ----------
    tell
        Takes what became of each start.
    allowed
        Raises where nothing may be written any more, since another process leads.
    patience
        Seconds for which writes that fail for the moment are repeated.
    attach_patience
        Seconds for which binding conditions are awaited.
    """

    def __init__(
        self,
        client: Client,
        tell: Callable[[Bound | NotBound], None],
        allowed: Callable[[], None],
        *,
        patience: float = 30.0,
        attach_patience: float = 600.0,
        writes: int = 32,
    ) -> None:
        self.client, self._tell, self._allowed = client, tell, allowed
        self.patience, self.attach_patience = patience, attach_patience
        self.turns = Turns(writes)
        self.claims: dict[str, ResourceClaim] = {}  # the latest seen, by uid
        self._seen: dict[str, asyncio.Event] = {}  # uid -> set when it is seen to change
        self._locks: dict[str, asyncio.Lock] = {}

    def saw(self, claim: ResourceClaim, deleted: bool) -> None:
        """Take notice of a claim."""
        if deleted:
            self.claims.pop(claim.metadata.uid, None)
        else:
            self.claims[claim.metadata.uid] = claim
        if (event := self._seen.get(claim.metadata.uid)) is not None:
            event.set()

    async def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Make a start real, or undo it."""
        bound: list[str] = []
        try:
            await _all(self._prepare(pod) for pod in pods)
            results = await asyncio.gather(*(self._bind(pod) for pod in pods), return_exceptions=True)
            bound = [pod.pod.metadata.key for pod, result in zip(pods, results, strict=True) if result is None]
            for result in results:
                if result is not None:
                    raise result
        except (StartFailed, ApiError) as problem:
            await self._undo([pod for pod in pods if pod.pod.metadata.key not in bound])
            self._tell(NotBound(run, str(problem), tuple(bound), getattr(problem, "failed", ())))
            return
        self._tell(Bound(run))

    async def patch(self, path: str, body: Any, urgency: int, content: str = MERGE) -> bytes:
        """Change an object."""
        return await self._write("PATCH", path, body, urgency, content)

    async def post(self, path: str, body: Any, urgency: int) -> bytes:
        """Make an object."""
        return await self._write("POST", path, body, urgency, "application/json")

    # Claims

    async def _prepare(self, start: PodStart) -> None:
        """Do all that comes before a pod is bound."""
        if start.nominate:
            await self.again(lambda: self.patch(f"{pod_path(start.pod)}/status", _nomination(start), CLAIM))
        ready = [await self._reserve(start, write) for write in start.claims]
        for claim in ready:
            await self._attached(claim)

    async def _reserve(self, start: PodStart, write: ClaimWrite) -> ResourceClaim:
        """Give a claim its devices, and reserve it for a pod."""
        async with self._locks.setdefault(write.claim.metadata.uid, asyncio.Lock()):
            claim = self.claims.get(write.claim.metadata.uid, write.claim)
            until = time.monotonic() + self.patience
            while True:
                try:
                    return await self._reserve_once(start, write, claim)
                except ApiError as error:
                    if time.monotonic() > until or not (error.passes or error.status == 409):
                        raise
                    await asyncio.sleep(max(error.retry_after, 0.05))
                claim = await self.again(lambda: self._read_claim(write.claim))

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
            claim = _decode(await self.patch(path, body, CLAIM), ResourceClaim)
        users = claim.status.reserved_for
        if has is not None and any(user.uid == me.uid for user in users):
            return claim
        mine = Consumer(resource="pods", name=me.name, uid=me.uid)
        status: dict[str, Any] = {"reservedFor": [*users, mine]}
        if has is None:
            status["allocation"] = write.allocation
        return _decode(
            await self.patch(f"{path}/status", {"metadata": _version(claim), "status": status}, CLAIM), ResourceClaim
        )

    async def _read_claim(self, claim: ResourceClaim) -> ResourceClaim:
        try:
            return _decode(await self.client.get(claim_path(claim)), ResourceClaim)
        except ApiError as error:
            if error.status == 404:
                raise StartFailed(f"claim {claim.metadata.key} was deleted") from error
            raise

    async def _attached(self, claim: ResourceClaim) -> None:
        """Wait until the binding conditions of all devices hold."""
        uid, until = claim.metadata.uid, time.monotonic() + self.attach_patience
        allocation = claim.status.allocation
        if allocation is None or not any(result.binding_conditions for result in allocation.devices.results):
            return
        event = self._seen.setdefault(uid, asyncio.Event())
        try:
            while True:
                event.clear()
                if _attached(self.claims.get(uid, claim)):
                    return
                left = until - time.monotonic()
                try:
                    await asyncio.wait_for(event.wait(), max(left, 0.001))
                except TimeoutError:
                    devices = [DeviceId(r.driver, r.pool, r.device) for r in allocation.devices.results if r.binding_conditions]
                    raise StartFailed(f"{devices[0]} was not attached within {self.attach_patience:g} s", devices) from None
                if uid not in self.claims:
                    raise StartFailed(f"claim {claim.metadata.key} was deleted")
        finally:
            self._seen.pop(uid, None)

    # Pods

    async def _bind(self, start: PodStart) -> None:
        """Bind a pod to its node."""
        meta, until = start.pod.metadata, time.monotonic() + self.patience
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": start.node},
        }
        while True:
            try:
                await self.post(f"{pod_path(start.pod)}/binding", body, BIND)
                return
            except ApiError as error:
                if not (error.passes or error.status in (404, 409)):
                    raise
                wait = max(error.retry_after, 0.05)
                first = error
            pod = await self.again(lambda: self._read_pod(start.pod))
            if pod.spec.node_name == start.node:
                return
            if pod.spec.node_name or first.status == 409 or time.monotonic() > until:
                where = f"; it is on node {pod.spec.node_name}" if pod.spec.node_name else ""
                raise StartFailed(f"pod {meta.key} could not be bound: {first}{where}")
            await asyncio.sleep(wait)

    async def _read_pod(self, pod: Pod) -> Pod:
        try:
            found = _decode(await self.client.get(pod_path(pod)), Pod)
        except ApiError as error:
            if error.status == 404:
                raise StartFailed(f"pod {pod.metadata.key} was deleted") from error
            raise
        if found.metadata.uid != pod.metadata.uid:
            raise StartFailed(f"pod {pod.metadata.key} was deleted")
        return found

    # Undoing

    async def _undo(self, pods: Sequence[PodStart]) -> None:
        """Take back the claims of pods that were not bound; what fails here is cleared later."""
        for start in pods:
            for write in start.claims:
                try:
                    await self.release(write.claim, start.pod.metadata.uid)
                except (ApiError, StartFailed):
                    continue

    async def release(self, claim: ResourceClaim, consumer: str) -> None:
        """Take a reservation of a pod (uid) back, and the devices with the last one."""
        while True:
            now = await self.again(lambda: self._read_claim(claim))
            if now.metadata.uid != claim.metadata.uid or now.status.allocation is None:
                return
            users = [user for user in now.status.reserved_for if user.uid != consumer]
            if len(users) == len(now.status.reserved_for) and users:
                return
            status: dict[str, Any] = {"reservedFor": users or None}
            if not users:
                status |= {"allocation": None, "devices": None}
            try:
                await self.patch(f"{claim_path(claim)}/status", {"metadata": _version(now), "status": status}, CLAIM)
                return
            except ApiError as error:
                if not (error.passes or error.status == 409):
                    raise
                await asyncio.sleep(max(error.retry_after, 0.05))

    # Writing

    async def _write(self, method: str, path: str, body: Any, urgency: int, content: str) -> bytes:
        async with self.turns.turn(urgency):
            self._allowed()
            return await self.client.send(method, path, body, content=content)

    async def again(self, request: Callable[[], Any]) -> Any:
        """Repeat a request that does no harm for as long as it may pass."""
        until, wait = time.monotonic() + self.patience, 0.05
        while True:
            try:
                return await request()
            except ApiError as error:
                if not error.passes or time.monotonic() > until:
                    raise
                await asyncio.sleep(max(error.retry_after, wait))
                wait = min(2 * wait, 2.0)


async def _all(steps: Any) -> None:
    """Await all of some steps, then raise the first failure."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def pod_path(pod: Pod) -> str:
    """Where a pod is."""
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def claim_path(claim: ResourceClaim) -> str:
    """Where a claim is."""
    return f"/apis/resource.k8s.io/v1/namespaces/{claim.metadata.namespace}/resourceclaims/{claim.metadata.name}"


def _version(claim: ResourceClaim) -> dict[str, Any]:
    return {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}


def _nomination(start: PodStart) -> dict[str, Any]:
    return {"metadata": {"uid": start.pod.metadata.uid}, "status": {"nominatedNodeName": start.node}}


def _decode(body: bytes, kind: type[Answer]) -> Answer:
    return msgspec.json.decode(body, type=kind)


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
