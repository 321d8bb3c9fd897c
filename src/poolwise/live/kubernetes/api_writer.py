"""Writes to an API server: limited concurrency, priorities, and a leadership check before each write."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from poolwise.live.kubernetes.client import MERGE, ApiError, Client
from poolwise.live.kubernetes.lease import NotLeading
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.starts import StartFailed, claim_path, pod_path

BIND, CLAIM, MESSAGE = range(3)  # urgency of writes that queue for a slot; lower numbers go first
_LEASE_INTERVAL = 0.1  # seconds between checks of a lease that is not renewed
Answer = TypeVar("Answer")


@dataclass
class WriteQueue:
    """A semaphore for writes that admits the most urgent waiter first."""

    limit: int
    _busy: int = 0
    _waiting: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    _count: Iterator[int] = field(default_factory=itertools.count)

    @asynccontextmanager
    async def slot(self, urgency: int) -> AsyncIterator[None]:
        """Wait for a slot; a lower number is more urgent."""
        if self._busy >= self.limit:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (urgency, next(self._count), mine))
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._release_slot()
                raise
        else:
            self._busy += 1
        try:
            yield
        finally:
            self._release_slot()

    def _release_slot(self) -> None:
        while self._waiting:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)  # the waiter takes over this slot
                return
        self._busy -= 1


class ApiWriter:
    """Writes to a cluster, and the reads that writes need, on the event loop of its client.

    Writes are suspended while `check_leader` raises NotLeading. Requests that fail temporarily are retried for `retry_timeout`
    seconds.
    """

    def __init__(self, client: Client, check_leader: Callable[[], None], *, retry_timeout: float = 30.0) -> None:
        self._client, self._check_leader, self.retry_timeout = client, check_leader, retry_timeout
        self._slots = WriteQueue(32)

    async def patch(self, path: str, body: Any, urgency: int, content: str = MERGE) -> bytes:
        """Patch an object."""
        return await self._write("PATCH", path, body, urgency, content)

    async def post(self, path: str, body: Any, urgency: int) -> bytes:
        """Create an object."""
        return await self._write("POST", path, body, urgency, "application/json")

    async def _write(self, method: str, path: str, body: Any, urgency: int, content: str) -> bytes:
        async with self._slots.slot(urgency):
            await self._wait_until_leader()
            return await self._client.send(method, path, body, content=content)

    async def _wait_until_leader(self) -> None:
        """Wait while the lease is not renewed; the renewal ends the process if another one acquires the lease."""
        while True:
            try:
                self._check_leader()
                return
            except NotLeading:
                await asyncio.sleep(_LEASE_INTERVAL)

    async def retry(self, request: Callable[[], Awaitable[Answer]], *, conflicts: bool = False) -> Answer:
        """Retry an idempotent request while its errors are temporary.

        With `conflicts`, status 409 counts as temporary: use it for requests that name no resourceVersion.
        """
        until, wait = time.monotonic() + self.retry_timeout, 0.05
        while True:
            try:
                return await request()
            except ApiError as error:
                if not (error.is_temporary or (conflicts and error.status == 409)) or time.monotonic() > until:
                    raise
                await asyncio.sleep(max(error.retry_after, wait))
                wait = min(2 * wait, 2.0)

    async def read_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the current claim; raise StartFailed if it was deleted."""
        return await self._read(claim_path(claim), f"claim {claim.metadata.key}", ResourceClaim)

    async def read_pod(self, pod: Pod) -> Pod:
        """Return the current pod; raise StartFailed if it was deleted or recreated."""
        current = await self._read(pod_path(pod), f"pod {pod.metadata.key}", Pod)
        if current.metadata.uid != pod.metadata.uid:
            raise StartFailed(f"pod {pod.metadata.key} was deleted")
        return current

    async def _read(self, path: str, what: str, kind: type[Answer]) -> Answer:
        answer = await self._client.read(path, kind)
        if answer is None:
            raise StartFailed(f"{what} was deleted")
        return answer
