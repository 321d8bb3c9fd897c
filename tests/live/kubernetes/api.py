"""Plain HTTP client of the API server, for thousands of objects: kubectl creates and deletes only a few per second."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import yaml

from tests.live.kubernetes.control_plane import ControlPlane

_PLACES = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
}


class Api:
    """An API server, accessed from outside the cluster."""

    def __init__(self, plane: ControlPlane, user: str = "admin") -> None:
        config = yaml.safe_load(plane.kubeconfig(user).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server, self._tls = (
            urlsplit(cluster["server"]),
            ssl.create_default_context(cafile=cluster["certificate-authority"]),
        )
        self._headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}

    def connect(self, timeout: float | None = 60.0) -> HTTPSConnection:
        return HTTPSConnection(self._server.hostname or "", self._server.port, context=self._tls, timeout=timeout)

    def open(self, connection: HTTPSConnection, method: str, path: str, body: Any = None) -> HTTPResponse:
        data = None if body is None else json.dumps(body)
        content = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        connection.request(method, path, data, self._headers | content)
        return connection.getresponse()

    def ask(self, method: str, path: str, body: Any = None, timeout: float = 60.0) -> Any:
        """Send a request and return the response as plain data."""
        with closing(self.connect(timeout)) as connection:
            return self._ask(connection, method, path, body)

    def _ask(self, connection: HTTPSConnection, method: str, path: str, body: Any = None) -> Any:
        answer = self.open(connection, method, path, body)
        text = answer.read()
        assert answer.status < 400, f"{method} {path}: {answer.status} {text[:300]!r}"
        return json.loads(text)

    def create(self, objects: Sequence[dict[str, Any]], at_once: int = 16) -> None:
        """Create objects with `at_once` concurrent connections."""

        def some(part: Sequence[dict[str, Any]]) -> None:
            with closing(self.connect()) as connection:
                for item in part:
                    self._ask(connection, "POST", _PLACES[item["kind"]], item)

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(some, [objects[k::at_once] for k in range(min(at_once, len(objects)))]))

    def count(self, kind: str) -> int:
        """Return the number of objects of a kind."""
        page = self.ask("GET", f"{_PLACES[kind]}?limit=1")
        return len(page["items"]) + page["metadata"].get("remainingItemCount", 0)


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    resourceVersion: str = ""


class _Spec(msgspec.Struct, frozen=True):
    nodeName: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Pod


_EVENTS = msgspec.json.Decoder(_Event)
"""Decoder of the few pod fields that are read: the watcher shares the machine with the measured scheduler."""


@dataclass
class Watched:
    """Times at which pods were first seen, and first seen with a node; seconds of the monotonic clock."""

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    broke: str = ""
    """Error that ended the watch, "" while it runs."""

    def has_bound(self, many: int) -> bool:
        """Return whether at least `many` pods have a node."""
        assert not self.broke, self.broke
        return len(self.bound) >= many

    def waits(self) -> np.ndarray:
        """Return the seconds from creation to binding of each pod."""
        return np.array([self.bound[name] - at for name, at in self.created.items()])

    def rate(self) -> float:
        """Return bindings per second, from the first to the last one."""
        times = sorted(self.bound.values())
        return (len(times) - 1) / (times[-1] - times[0])


@contextmanager
def watching(api: Api, names: str) -> Iterator[Watched]:
    """Watch future events of pods whose names have a prefix.

    The watch starts at the resourceVersion of a list: the initial events of a watch may be older and contain deleted pods. The
    server ends streams of slow readers; the watch resumes at the last version.
    """
    watched, over = Watched(), threading.Event()
    version = api.ask("GET", f"{_PLACES['Pod']}?limit=1")["metadata"]["resourceVersion"]

    def follow() -> None:  # only this thread closes the stream: a concurrent close would wait for the next event
        try:
            while not over.is_set():
                with closing(api.connect(None)) as connection:
                    for line in api.open(connection, "GET", f"{_PLACES['Pod']}?watch=true&resourceVersion={seen[0]}"):
                        if over.is_set():
                            break
                        seen[0] = note(line)
        except Exception as problem:
            watched.broke = repr(problem)

    def note(line: bytes) -> str:
        event, now = _EVENTS.decode(line), time.monotonic()
        if event.type == "ERROR":
            raise RuntimeError(line)
        meta = event.object.metadata
        if meta.name.startswith(names):
            watched.created.setdefault(meta.name, now)
            if event.object.spec.nodeName:
                watched.bound.setdefault(meta.name, now)
        return meta.resourceVersion

    seen = [version]
    threading.Thread(target=follow, daemon=True).start()
    try:
        yield watched
    finally:
        over.set()
