"""An HTTPS server in this process, with the test certificates: an API server, or an OpenID Connect issuer; and a proxy."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.helpers.data import DATA

TLS = DATA / "tls"


class Request:
    """A received request: path, Authorization header, body, and the common name of the client certificate, if any."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.path, self.authorization = handler.path, handler.headers.get("Authorization", "")
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
        certificate: Any = handler.connection.getpeercert()  # type: ignore[attr-defined]
        self.certificate = dict(pair for group in (certificate or {}).get("subject", ()) for pair in group).get(
            "commonName", ""
        )


@contextmanager
def https_server(respond: Callable[[Request], tuple[int, Any]]) -> Iterator[str]:
    """Serve JSON on 127.0.0.1 until the block ends; yield the URL. Client certificates are verified but not required."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, content = respond(Request(self))
            payload = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    context.load_verify_locations(TLS / "ca.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def proxy_server() -> Iterator[tuple[str, list[str]]]:
    """Serve an HTTP proxy on 127.0.0.1 until the block ends; yield the URL, and the hosts that clients connect to."""
    targets: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            targets.append(self.path)
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                self.send_response(200)
                self.end_headers()
                ends = {self.connection: server, server: self.connection}
                while block := (end := select.select([*ends], [], [])[0][0]).recv(65536):
                    ends[end].sendall(block)
            self.close_connection = True

        def log_message(self, *_: Any) -> None: ...

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}", targets
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
