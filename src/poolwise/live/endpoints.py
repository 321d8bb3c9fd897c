"""HTTP endpoints of a live run on one port: /metrics for Prometheus, /healthz and /readyz for probes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from poolwise.errors import InputError
from poolwise.live.logs import log_event


@contextmanager
def serve_endpoints(
    registry: CollectorRegistry, ready: Callable[[], str], port: int, host: str = "127.0.0.1"
) -> Iterator[tuple[str, int]]:
    """Serve metrics while the context is open; yields host and port. Raises InputError if the port cannot be bound.

    `ready` returns why the process is not ready (no snapshot yet, another process leads), or "" if it is. With port 0, the
    system chooses one.
    """
    try:
        server = ThreadingHTTPServer((host, port), _handler(registry, ready))
    except OSError as error:
        raise InputError(
            f"cannot bind {host}:{port}: {error.strerror}", field="--port", remedy="choose another port"
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="endpoints", daemon=True)
    thread.start()
    log_event("listening", host=host, port=server.server_address[1])
    try:
        yield host, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(registry: CollectorRegistry, ready: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    self._answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)
                case "/healthz":
                    self._answer(200, b"ok\n")
                case "/readyz":
                    why = ready()
                    self._answer(503 if why else 200, f"{why or 'ok'}\n".encode())
                case _:
                    self._answer(404, b"unknown path; use /metrics, /healthz or /readyz\n")

        def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Drop access logs: probes and Prometheus send a request every few seconds."""

    return Handler
