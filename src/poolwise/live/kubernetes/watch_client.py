"""The connection of a platform to its cluster: an event loop in a thread of its own, and what it tells through a queue."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from poolwise.errors import InputError
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.bind import Binder
from poolwise.live.kubernetes.claim_reservation import Reservations
from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.informer import Informer, Seen, Synced
from poolwise.live.kubernetes.lease import Leadership
from poolwise.live.kubernetes.objects import DeviceClass, Node, Pod, PodGroup, ResourceClaim, ResourceSlice
from poolwise.live.kubernetes.starts import Bound, NotBound

_DRA = "/apis/resource.k8s.io/v1"
_GROUPS = "/apis/scheduling.k8s.io/v1alpha2"
_PATIENCE = 20.0
"""Seconds for which a server that does not answer is tried again at the beginning."""
_KINDS: tuple[tuple[str, type], ...] = (
    ("/api/v1/nodes", Node),
    (f"{_DRA}/deviceclasses", DeviceClass),
    (f"{_DRA}/resourceslices", ResourceSlice),
    (f"{_DRA}/resourceclaims", ResourceClaim),
    ("/api/v1/pods", Pod),
)


class Stopped:
    """The run is to end, for a reason that is "" where it was asked to."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason


Told = Seen[Any] | Synced | Bound | NotBound | Stopped


class ClusterEvents(Protocol):
    """Where a platform hears of its cluster."""

    @property
    def told(self) -> queue.SimpleQueue[Told]:
        """What happened, for one reader."""
        ...


class WatchClient:
    """Watches a cluster and writes to it, from a thread of its own.

    Parameters
    ----------
    access
        Where the cluster is.
    lead
        The lease without which nothing is written, None where nobody else can lead.
    client
        Makes the client; tests give one that fails.

    Attributes
    ----------
    told : what happened, for one reader
    writer, reservations, binder : what writes, once it is open
    """

    def __init__(
        self,
        access: Access,
        *,
        lead: Leadership | None = None,
        client: Callable[[Access], Client] = Client,
        attach_patience: float = 600.0,
    ) -> None:
        self.access, self.told = access, queue.SimpleQueue[Told]()
        self._make, self._lead, self._attach = client, lead, attach_patience
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.followers: list[Informer[Any]] = []
        self.groups = False
        self.client: Client
        self.writer: ApiWriter
        self.reservations: Reservations
        self.binder: Binder

    def open(self) -> None:
        """Begin to watch; raises InputError where the server cannot be reached or does not let us."""
        self._thread.start()
        self.wait(self._open())

    def close(self) -> None:
        """End all that is under way, and the connection."""
        self.wait(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let something be done; what goes wrong with it ends the run."""
        self._loop.call_soon_threadsafe(self._begin, work)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something and return what comes of it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.told.put(Stopped(f"{type(problem).__name__}: {problem}"))

    async def _open(self) -> None:
        self.client = self._make(self.access)
        allowed = self._lead.allowed if self._lead is not None else lambda: None
        self.writer = ApiWriter(self.client, allowed)
        self.reservations = Reservations(self.writer, attach_patience=self._attach)
        self.binder = Binder(self.writer, self.reservations, self.told.put)
        for path in ("/api/v1/nodes", f"{_DRA}/deviceclasses"):
            await self._look(path)
        self.groups = await self._look(f"{_GROUPS}/podgroups", needed=False)
        if self._lead is not None:
            await self._lead.acquire(self.client)
            self._begin(self._lead.keep(self.client))
        for path, kind in (*_KINDS, *(((f"{_GROUPS}/podgroups", PodGroup),) if self.groups else ())):
            follower: Informer[Any] = Informer(self.client, path, kind, self._tell)
            self.followers.append(follower)
            self._begin(follower.run())

    async def _look(self, path: str, needed: bool = True) -> bool:
        """Whether objects at a path may be listed; raises InputError where they must be and cannot."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                await self.client.get(path, limit="1")
                return True
            except ApiError as error:
                if error.passes and time.monotonic() < until:
                    await asyncio.sleep(max(error.retry_after, 0.5))
                elif error.status in (403, 404) and not needed:
                    return False
                else:
                    raise InputError(
                        f"the cluster at {self.access.server} cannot be watched: {error}",
                        field="--kubeconfig",
                        remedy="check the address, the credentials and the role (deploy/kubernetes/)",
                    ) from error

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._lead is not None:
            await self._lead.give_up(self.client)
        await self.client.close()

    def _tell(self, what: Seen[Any] | Synced) -> None:
        match what:
            case Seen(ResourceClaim() as claim, deleted):
                self.reservations.saw(claim, deleted)
            case Synced(kind, keys) if kind is ResourceClaim:
                self.reservations.keep(keys)
            case Seen(Node() as node, deleted):
                change = self.binder.gone.add if deleted else self.binder.gone.discard
                change(node.metadata.name)
        self.told.put(what)
