"""The connection of a platform to its cluster: an event loop in a thread of its own, and what it tells through a queue."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.bind import Binder, Bound, NotBound
from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.objects import DeviceClass, Node, Pod, PodGroup, ResourceClaim, ResourceSlice
from poolwise.live.kubernetes.watch import Follower, Seen, Synced

_DRA = "/apis/resource.k8s.io/v1"
_GROUPS = "/apis/scheduling.k8s.io/v1alpha2"
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


News = Seen[Any] | Synced | Bound | NotBound | Stopped


class Link:
    """Watches a cluster and writes to it, from a thread of its own.

    Parameters
    ----------
    access
        Where the cluster is.
    allowed
        Raises where nothing may be written.
    client
        Makes the client; tests give one that fails.

    Attributes
    ----------
    told : what happened, for one reader
    """

    def __init__(
        self,
        access: Access,
        *,
        allowed: Callable[[], None] = lambda: None,
        client: Callable[[Access], Client] = Client,
        attach_patience: float = 600.0,
    ) -> None:
        self.access, self.told = access, queue.SimpleQueue[News]()
        self._make, self._allowed, self._attach = client, allowed, attach_patience
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.followers: list[Follower[Any]] = []
        self.groups = False
        self.client: Client
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
        self.binder = Binder(self.client, self.told.put, self._allowed, attach_patience=self._attach)
        try:
            await self.client.get("/api/v1/nodes", limit="1")
            await self.client.get(f"{_DRA}/deviceclasses", limit="1")
        except ApiError as error:
            raise InputError(
                f"the cluster at {self.access.server} cannot be watched: {error}",
                field="--kubeconfig",
                remedy="check the address, the credentials and the role (deploy/kubernetes/)",
            ) from error
        try:
            await self.client.get(f"{_GROUPS}/podgroups", limit="1")
            self.groups = True
        except ApiError as error:
            if error.status not in (403, 404):
                raise
        for path, kind in (*_KINDS, *(((f"{_GROUPS}/podgroups", PodGroup),) if self.groups else ())):
            follower: Follower[Any] = Follower(self.client, path, kind, self._tell)
            self.followers.append(follower)
            self._begin(follower.run())

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()

    def _tell(self, what: Seen[Any] | Synced) -> None:
        if isinstance(what, Seen) and isinstance(what.thing, ResourceClaim):
            self.binder.saw(what.thing, what.deleted)
        self.told.put(what)
