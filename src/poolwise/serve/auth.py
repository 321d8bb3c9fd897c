"""Access control: requests must carry the token, and come from this computer and from the server's own pages."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web

COOKIE = "poolwise"
LOOPBACK = "127.0.0.1"
_OWN = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; img-src 'self' data:"
_REPORT = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:; form-action 'none'"
)
_ENDS = "; base-uri 'none'; frame-ancestors 'none'"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guard(token: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return middleware that rejects requests without the token, from other hosts, and from other origins."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host.rpartition(":")[0] not in (LOOPBACK, "localhost"):
            raise web.HTTPForbidden(text="This server accepts only the hosts 127.0.0.1 and localhost.")
        origin = request.headers.get("Origin")
        if request.method != "GET" and origin != f"http://{request.host}":
            raise web.HTTPForbidden(text="This server accepts requests only from its own pages.")
        supplied = request.query.get("token")
        if supplied is not None and _same(supplied, token):
            redirect = web.HTTPFound(request.path)
            redirect.set_cookie(f"{COOKIE}-{request.host.rpartition(':')[2]}", token, httponly=True, samesite="Strict")
            raise redirect
        if not _same(request.cookies.get(f"{COOKIE}-{request.host.rpartition(':')[2]}", ""), token):
            raise web.HTTPUnauthorized(text="Open the address that `poolwise serve` printed; it contains the token.")
        return await handler(request)

    return checked


async def add_security_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add headers to every response that forbid foreign content, framing, MIME sniffing and caching."""
    policy = _REPORT if response.headers.pop("X-Poolwise-Report", None) else _OWN
    response.headers.update({
        "Content-Security-Policy": policy + _ENDS,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    })  # fmt: skip


def _same(supplied: str, other: str) -> bool:
    """Compare two strings in constant time."""
    return hmac.compare_digest(supplied.encode(), other.encode())
