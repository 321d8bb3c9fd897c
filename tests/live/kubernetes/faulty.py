"""A proxy in front of the API server that injects server and network faults and counts them.

Plain HTTP on loopback; it forwards the caller's credentials. Faults are drawn from a seed, request by request.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import yaml
from aiohttp import web

from tests.live.kubernetes.control_plane import ControlPlane

WRITES = ("POST", "PUT", "PATCH", "DELETE")


@dataclass
class Fault:
    """Probabilities of faults, per request or per watch event."""

    conflict: float = 0.0
    busy: float = 0.0
    broken: float = 0.0
    unsent: float = 0.0
    unanswered: float = 0.0
    slow: float = 0.0
    cut: float = 0.0
    gone: float = 0.0
    kill_every: int = 0
    """Kill the scheduler after every `kill_every` writes, 0 for never."""


@dataclass
class FaultyServer:
    """The proxy.

    Attributes
    ----------
    faults : number of injected faults by kind
    writes : number of forwarded writes
    spans : times at which each write, except to leases, was forwarded and answered; seconds of the monotonic clock
    victim : process to kill after writes
    leases : whether requests for leases are forwarded
    """

    plane: ControlPlane
    trouble: Fault
    seed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    spans: list[tuple[float, float]] = field(default_factory=list)
    leases: bool = True
    victim: int | None = None
    url: str = ""

    def __post_init__(self) -> None:
        config = yaml.safe_load(self.plane.kubeconfig().read_text())["clusters"][0]["cluster"]
        self._server, self._tls = config["server"], ssl.create_default_context(cafile=config["certificate-authority"])
        self._draw = random.Random(self.seed)

    def kubeconfig(self, user: str = "admin") -> Path:
        """Return a kubeconfig for the proxy."""
        content = yaml.safe_load(self.plane.kubeconfig(user).read_text())
        content["clusters"][0]["cluster"] = {"server": self.url}
        path = self.plane.folder / f"faulty-{user}-{urlsplit(self.url).port}.kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await self._watch(request)
        trouble, chance = self.trouble, self._draw.random
        if not self.leases and "/leases/" in request.path:
            return self._fail("lease out of reach", 500, "InternalError")
        write = request.method in WRITES
        if write and chance() < trouble.conflict:
            return self._fail("409 before", 409, "Conflict")
        if chance() < trouble.busy:
            return self._fail("429", 429, "TooManyRequests", {"Retry-After": "1"} if chance() < 0.1 else {})
        if chance() < trouble.broken:
            return self._fail("500 before", 500, "InternalError")
        if chance() < trouble.unsent:
            return self._hang_up(request, "cut before")
        if chance() < trouble.slow:
            self.faults["slow"] += 1
            await asyncio.sleep(chance())
        body = await request.read()
        begun = time.monotonic()
        answer = await self._pass_on(request, body)
        if write:
            self.writes += 1
            if "/leases" not in request.path:
                self.spans.append((begun, time.monotonic()))
            if trouble.kill_every and self.writes % trouble.kill_every == 0 and self.victim is not None:
                self.faults["killed after a write"] += 1
                os.kill(self.victim, signal.SIGKILL)
                self.victim = None
        if chance() < trouble.unanswered:
            return self._hang_up(request, "cut after")
        return answer

    def _fail(self, kind: str, status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
        self.faults[kind] += 1
        body = {"kind": "Status", "status": "Failure", "reason": reason, "message": "injected", "code": status}
        return web.json_response(body, status=status, headers=headers)

    def _hang_up(self, request: web.Request, kind: str) -> web.Response:
        self.faults[kind] += 1
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _pass_on(self, request: web.Request, body: bytes) -> web.Response:
        headers = {k: v for k, v in request.headers.items() if k in ("Authorization", "Content-Type", "Accept")}
        async with self._session.request(
            request.method, self._server + request.path_qs, data=body or None, headers=headers
        ) as answer:
            text = await answer.read()
            return web.Response(body=text, status=answer.status, content_type=answer.content_type)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        chance = self._draw.random
        response = web.StreamResponse()
        if request.query.get("resourceVersion") and chance() < self.trouble.gone:
            self.faults["410"] += 1
            await response.prepare(request)
            await response.write(
                b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old","reason":"Expired"}}\n'
            )
            await response.write_eof()
            return response
        headers = {"Authorization": request.headers["Authorization"]}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._server + request.path_qs, headers=headers, timeout=timeout) as answer:
            response.set_status(answer.status)
            await response.prepare(request)
            async for block in answer.content.iter_any():
                if chance() < self.trouble.cut:
                    self.faults["watch cut"] += 1
                    await response.write(block[: len(block) // 2])
                    if request.transport is not None:
                        request.transport.abort()
                    return response
                try:
                    await response.write(block)
                except ConnectionError:  # the scheduler is gone
                    return response
        return response

    async def serve(self, ready: threading.Event) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=self._tls))
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await self._stop.wait()
        await runner.cleanup()
        await self._session.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def faulty(plane: ControlPlane, trouble: Fault, seed: int = 0) -> Iterator[FaultyServer]:
    """Run the proxy in a thread."""
    server, ready = FaultyServer(plane, trouble, seed), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(ready)), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
