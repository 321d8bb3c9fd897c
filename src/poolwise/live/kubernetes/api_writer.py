"""Writing to an API server: so many writes at once, the urgent ones first, and none by a process that does not lead."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from poolwise.live.kubernetes.client import MERGE, ApiError, Client
from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.starts import StartFailed, claim_path, pod_path

BIND, CLAIM, SAY = range(3)
"""What comes first where writes wait for each other."""
Answer = TypeVar("Answer")


@dataclass
class WriteQueue:
    """Lets some writes be under way at once, the urgent ones first."""

    most: int
    _busy: int = 0
    _waiting: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    _count: Iterator[int] = field(default_factory=itertools.count)

    @asynccontextmanager
    async def slot(self, urgency: int) -> AsyncIterator[None]:
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


class ApiWriter:
    """Actions to a cluster and reads what it must know for that, on the event loop of its client.

    Parameters
    ----------
    allowed
        Raises where nothing may be written any more, since another process leads.
    patience
        Seconds for which requests that fail for the moment are repeated.
    writes
        So many writes are under way at once.
    """

    def __init__(self, client: Client, allowed: Callable[[], None], *, patience: float = 30.0, writes: int = 32) -> None:
        self._client, self._allowed, self.patience = client, allowed, patience
        self._turns = WriteQueue(writes)

    async def patch(self, path: str, body: Any, urgency: int, content: str = MERGE) -> bytes:
        """Change an object."""
        return await self._write("PATCH", path, body, urgency, content)

    async def post(self, path: str, body: Any, urgency: int) -> bytes:
        """Make an object."""
        return await self._write("POST", path, body, urgency, "application/json")

    async def _write(self, method: str, path: str, body: Any, urgency: int, content: str) -> bytes:
        async with self._turns.slot(urgency):
            self._allowed()
            return await self._client.send(method, path, body, content=content)

    async def again(self, request: Callable[[], Awaitable[Answer]], *, conflicts: bool = False) -> Answer:
        """Repeat a request that does no harm for as long as it may pass; `conflicts` pass where it names no version."""
        until, wait = time.monotonic() + self.patience, 0.05
        while True:
            try:
                return await request()
            except ApiError as error:
                if not (error.passes or (conflicts and error.status == 409)) or time.monotonic() > until:
                    raise
                await asyncio.sleep(max(error.retry_after, wait))
                wait = min(2 * wait, 2.0)

    async def read_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim as it is now; raises StartFailed where it is gone."""
        return await self._read(claim_path(claim), f"claim {claim.metadata.key}", ResourceClaim)

    async def read_pod(self, pod: Pod) -> Pod:
        """A pod as it is now; raises StartFailed where it is gone."""
        found = await self._read(pod_path(pod), f"pod {pod.metadata.key}", Pod)
        if found.metadata.uid != pod.metadata.uid:
            raise StartFailed(f"pod {pod.metadata.key} was deleted")
        return found

    async def _read(self, path: str, what: str, kind: type[Answer]) -> Answer:
        try:
            return msgspec.json.decode(await self._client.get(path), type=kind)
        except ApiError as error:
            if error.status == 404:
                raise StartFailed(f"{what} was deleted") from error
            raise
