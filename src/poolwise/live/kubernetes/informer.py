"""Following the objects of a kind: list and watch in one stream, taken up again where it broke off."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from poolwise.live.kubernetes.client import ApiError, Client

_INITIAL = "k8s.io/initial-events-end"
_GONE = 410
_log = logging.getLogger(__name__)
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Seen(Generic[Thing]):
    """An object as it is now, or as it was when it was deleted."""

    thing: Thing
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Synced:
    """All objects of a kind have been seen: those that are not among these keys are gone."""

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


class Informer(Generic[Thing]):
    """Tells of every object at a path, and of its changes.

    A stream that ends is taken up at the last version; where the server no longer has that, all objects are told again, and
    `Synced` says which are there.

    Parameters
    ----------
    tell
        Takes what is seen, in the order in which it happened.
    quiet
        Seconds without a line after which a stream is begun anew; the server sends bookmarks once a minute.
    """

    def __init__(
        self, client: Client, path: str, kind: type[Thing], tell: Callable[[Seen[Thing] | Synced], None], quiet: float = 150.0
    ) -> None:
        self.client, self.path, self.kind, self.tell, self.quiet = client, path, kind, tell, quiet
        self.breaks = 0
        self._decoder = msgspec.json.Decoder(kind)
        self._version = ""

    async def run(self) -> None:
        """Follow until cancelled."""
        failures = 0
        while True:
            before = self._version
            try:
                await self._stream()
                failures = 0
            except ApiError as error:
                if error.status in (400, 404, _GONE):
                    self._version = ""
                failures = 0 if self._version != before else failures + 1
                _log.info("watch of %s: %s", self.path, error)
                wait = min(10.0, 0.05 * 2 ** min(failures, 8)) * random.uniform(0.5, 1)
                await asyncio.sleep(max(error.retry_after, wait))
            self.breaks += 1

    async def _stream(self) -> None:
        """Follow one stream to its end."""
        params = {"watch": "true", "allowWatchBookmarks": "true"}
        if self._version:
            params["resourceVersion"] = self._version
        else:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        keys: set[str] | None = None if self._version else set()
        async for line in self.client.lines(self.path, params, self.quiet):
            if not line:
                continue
            try:
                event = _events.decode(line)
            except msgspec.DecodeError as problem:  # a connection that was cut within a line
                raise ApiError(0, "DecodeError", str(problem)) from problem
            if event.type == "ERROR":
                said = _bookmarks.decode(event.object)
                raise ApiError(said.code, "Error", said.message)
            if event.type == "BOOKMARK":
                mark = _bookmarks.decode(event.object).metadata
                if keys is not None and mark.annotations.get(_INITIAL):
                    self.tell(Synced(self.kind, frozenset(keys)))
                    keys = None
                if keys is None:
                    self._version = mark.resource_version
                continue
            thing: Any = self._decoder.decode(event.object)
            if keys is None:
                self._version = thing.metadata.resource_version
            else:
                keys.add(thing.metadata.key)
            self.tell(Seen(thing, event.type == "DELETED"))
