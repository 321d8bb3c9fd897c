"""Connection of a platform to its cluster: watches and writes on an event loop in its own thread."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.bind import Binder, Reservations
from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.informer import Informer, Synced, WatchEvent
from poolwise.live.kubernetes.lease import Leadership
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceClass, DeviceTaintRule, ResourceSlice
from poolwise.live.kubernetes.objects.meta import Namespace
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.pod_group import PodGroup
from poolwise.live.kubernetes.objects.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from poolwise.live.kubernetes.starts import BindFailed, Bound
from poolwise.live.kubernetes.volume_binder import VolumeBinder
from poolwise.live.logs import log_event

_DRA = "/apis/resource.k8s.io/v1"
_GROUPS = "/apis/scheduling.k8s.io/v1alpha2"
OPTIONAL_KINDS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (PodGroup, (f"{_GROUPS}/podgroups",)),
    (DeviceTaintRule, tuple(f"/apis/resource.k8s.io/{v}/devicetaintrules" for v in ("v1", "v1beta2", "v1beta1", "v1alpha3"))),
    (Namespace, ("/api/v1/namespaces",)),
    (StorageClass, ("/apis/storage.k8s.io/v1/storageclasses",)),
    (PersistentVolume, ("/api/v1/persistentvolumes",)),
    (PersistentVolumeClaim, ("/api/v1/persistentvolumeclaims",)),
)
"""Kinds that a cluster may not serve or permit, with their paths, the preferred version first."""
_FORBIDDEN, _NOT_FOUND = 403, 404
_LEAST_RETRY = 0.5  # seconds between attempts after a temporary error, unless the server requests a longer wait
_PERMISSION_INTERVAL = 30.0  # seconds between attempts to read an optional kind that the role does not permit
_FORBIDDEN_TIMEOUT = 5.0  # seconds for which a denied request is retried: the server may not have loaded its roles yet
_CONNECT_TIMEOUT = 20.0  # seconds for which an unresponsive server is retried at startup
_KINDS: tuple[tuple[str, type], ...] = (
    ("/api/v1/nodes", Node),
    (f"{_DRA}/deviceclasses", DeviceClass),
    (f"{_DRA}/resourceslices", ResourceSlice),
    (f"{_DRA}/resourceclaims", ResourceClaim),
    ("/api/v1/pods", Pod),
)


class Stopped:
    """The end of the run; `reason` is "" for a requested stop."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason


ClusterEvent = WatchEvent[Any] | Synced | Bound | BindFailed | Stopped


class WatchClient:
    """Watches a cluster and writes to it, in its own thread."""

    def __init__(self, access: Access, *, leadership: Leadership | None = None, attach_timeout: float = 600.0) -> None:
        self.access, self.events = access, queue.SimpleQueue[ClusterEvent]()
        self._leadership, self._attach_timeout = leadership, attach_timeout
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.client: Client
        self.writer: ApiWriter  # this and the next three exist after `open`
        self.reservations: Reservations
        self.volume_binder: VolumeBinder
        self.binder: Binder

    def open(self) -> None:
        """Start the watches; raise InputError if the server is unreachable or denies access."""
        self._thread.start()
        self.run(self._open())

    def close(self) -> None:
        """Cancel all tasks, release the lease and close the connection."""
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine in the background; an exception ends the run."""
        self._loop.call_soon_threadsafe(self._begin, coroutine)

    def call(self, function: Callable[[], None]) -> None:
        """Call a function on the event loop, after the coroutines submitted before."""
        self._loop.call_soon_threadsafe(function)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _begin(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.events.put(Stopped(f"{type(problem).__name__}: {problem}"))

    async def _open(self) -> None:
        self.client = Client(self.access)
        check_leader = self._leadership.check_leader if self._leadership is not None else lambda: None
        self.writer = ApiWriter(self.client, check_leader)
        self.reservations = Reservations(self.writer, attach_timeout=self._attach_timeout)
        self.volume_binder = VolumeBinder(self.client, self.writer, timeout=self._attach_timeout)
        self.binder = Binder(self.writer, self.reservations, self.events.put, self.volume_binder)
        for path in ("/api/v1/nodes", f"{_DRA}/deviceclasses"):
            await self._can_list(path)
        served_paths = await asyncio.gather(*(self._served_path(paths) for _, paths in OPTIONAL_KINDS))
        if self._leadership is not None:
            await self._leadership.acquire(self.client)
            self._begin(self._leadership.renew(self.client))
        for served, (kind, paths) in zip(served_paths, OPTIONAL_KINDS, strict=True):
            if served:
                self._watch(served, kind)
            else:
                self._handle_event(Synced(kind, frozenset()))
            if served is None:
                self._begin(self._watch_once_permitted(kind, paths))
        for path, kind in _KINDS:
            self._watch(path, kind)

    def _watch(self, path: str, kind: type) -> None:
        informer: Informer[Any] = Informer(self.client, path, kind, self._handle_event)
        self._begin(informer.run())

    async def _watch_once_permitted(self, kind: type, paths: Sequence[str]) -> None:
        """Watch a kind as soon as the role permits it."""
        log_event("watch_forbidden", logging.WARNING, kind=kind.__name__)
        served = None
        while served is None:
            await asyncio.sleep(_PERMISSION_INTERVAL)
            with suppress(InputError):  # the server is unreachable
                served = await self._served_path(paths)
        if served:
            self._watch(served, kind)

    async def _served_path(self, paths: Sequence[str]) -> str | None:
        """Return the first of these paths that the cluster serves, "" if it serves none, or None if that is not permitted."""
        forbidden = False
        for path in paths:
            try:
                await self._can_list(path, 0.0 if forbidden else _FORBIDDEN_TIMEOUT)
                return path
            except InputError as problem:
                if not isinstance(problem.__cause__, ApiError) or problem.__cause__.status not in (_FORBIDDEN, _NOT_FOUND):
                    raise
                forbidden |= problem.__cause__.status == _FORBIDDEN
        return None if forbidden else ""

    async def _can_list(self, path: str, patience: float = _FORBIDDEN_TIMEOUT) -> None:
        """Raise InputError unless objects at a path can be listed; retry temporary errors for a while."""
        began = time.monotonic()
        while True:
            try:
                await self.client.get(path, limit="1")
                return
            except ApiError as error:
                limit = _CONNECT_TIMEOUT if error.is_temporary else patience if error.status == _FORBIDDEN else 0.0
                if time.monotonic() < began + limit:
                    await asyncio.sleep(max(error.retry_after, _LEAST_RETRY))
                else:
                    problem = f"cannot watch the cluster at {self.access.server}: {error}"
                    remedy = "check the address, the credentials and the role (deploy/kubernetes/)"
                    raise InputError(problem, field="--kubeconfig", remedy=remedy) from error

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._leadership is not None:
            await self._leadership.release(self.client)
        await self.client.close()

    def _handle_event(self, event: WatchEvent[Any] | Synced) -> None:
        match event:
            case WatchEvent(ResourceClaim() as claim, deleted):
                self.reservations.observe(claim, deleted)
            case Synced(kind, keys) if kind is ResourceClaim:
                self.reservations.retain(keys)
            case WatchEvent(PersistentVolumeClaim() as volume_claim, deleted):
                self.volume_binder.observe(volume_claim, deleted)
            case WatchEvent(Node() as node, deleted):
                change = self.binder.deleted_nodes.add if deleted else self.binder.deleted_nodes.discard
                change(node.metadata.name)
        self.events.put(event)
