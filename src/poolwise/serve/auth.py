"""Who may ask: those with the token, on this machine, from this server's own pages."""

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
    """Middleware that lets only the holder of the token in, and forbids content from elsewhere."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host.rpartition(":")[0] not in (LOOPBACK, "localhost"):
            raise web.HTTPForbidden(text="This server answers to 127.0.0.1 and localhost only.")
        origin = request.headers.get("Origin")
        if request.method != "GET" and origin != f"http://{request.host}":
            raise web.HTTPForbidden(text="Questions are taken from this server's own pages only.")
        given = request.query.get("token")
        if given is not None and _same(given, token):
            found = web.HTTPFound(request.path)
            found.set_cookie(f"{COOKIE}-{request.host.rpartition(':')[2]}", token, httponly=True, samesite="Strict")
            raise found
        if not _same(request.cookies.get(f"{COOKIE}-{request.host.rpartition(':')[2]}", ""), token):
            raise web.HTTPUnauthorized(text="Open the address that `poolwise serve` printed: it carries the token.")
        return await handler(request)

    return checked


async def forbid_foreign(request: web.Request, response: web.StreamResponse) -> None:
    """Put the headers on every answer: nothing is loaded from elsewhere, nothing frames or sniffs it."""
    policy = _REPORT if response.headers.pop("X-Poolwise-Report", None) else _OWN
    response.headers.update({
        "Content-Security-Policy": policy + _ENDS,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    })  # fmt: skip


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
