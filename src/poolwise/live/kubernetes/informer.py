"""Informer of one kind of objects: list and watch in one stream, resumed after interruptions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.logs import log_event

_INITIAL = "k8s.io/initial-events-end"
_HTTP_GONE = 410
Object = TypeVar("Object")


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[Object]):
    """An object after a change, or its last state if it was deleted."""

    item: Object
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Synced:
    """The initial list of a kind is complete; objects with other keys no longer exist."""

    kind: type
    keys: frozenset[str]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}
    name: str = ""
    namespace: str = ""


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta = msgspec.field(default_factory=_BookmarkMeta)
    code: int = 0
    message: str = ""


_events, _bookmarks = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Bookmark)


@dataclass
class Informer(Generic[Object]):
    """Reports every object under a path and its changes, decoded as `kind`, to `emit`.

    A stream that ends, or has no data for `idle_timeout` seconds (the server sends bookmarks once a minute), is resumed at the
    last resourceVersion. If the server no longer has that version, the informer relists and `Synced` names the objects.
    """

    client: Client
    path: str
    kind: type[Object]
    emit: Callable[[WatchEvent[Object] | Synced], None]
    idle_timeout: float = 150.0
    _resource_version: str = field(default="", init=False)

    async def run(self) -> None:
        """Watch until cancelled."""
        failures = 0
        while True:
            before = self._resource_version
            try:
                await self._stream()
                failures = 0
            except ApiError as error:
                if error.status in (400, 404, _HTTP_GONE):
                    self._resource_version = ""
                failures = 0 if self._resource_version != before else failures + 1
                log_event("watch_interrupted", path=self.path, error=str(error))
                wait = min(10.0, 0.05 * 2 ** min(failures, 8)) * random.uniform(0.5, 1)
                await asyncio.sleep(max(error.retry_after, wait))

    async def _stream(self) -> None:
        params = {"watch": "true", "allowWatchBookmarks": "true"}
        if self._resource_version:
            params["resourceVersion"] = self._resource_version
        else:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        keys: set[str] | None = None if self._resource_version else set()
        decoder = msgspec.json.Decoder(self.kind)
        async for line in self.client.lines(self.path, params, self.idle_timeout):
            if not line:
                continue
            try:
                event = _events.decode(line)
            except msgspec.DecodeError as problem:  # the connection was cut within a line
                raise ApiError(0, "DecodeError", str(problem)) from problem
            if event.type == "ERROR":
                status = _bookmarks.decode(event.object)
                raise ApiError(status.code, "Error", status.message)
            if event.type == "BOOKMARK":
                mark = _bookmarks.decode(event.object).metadata
                if keys is not None and mark.annotations.get(_INITIAL):
                    self.emit(Synced(self.kind, frozenset(keys)))
                    keys = None
                if keys is None:
                    self._resource_version = mark.resource_version
                continue
            item: Any = decoder.decode(event.object)
            if keys is None:
                self._resource_version = item.metadata.resource_version
            else:
                keys.add(item.metadata.key)
            self.emit(WatchEvent(item, event.type == "DELETED"))
