"""Requests to an API server: JSON in and out, errors as exceptions, watches line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.access import Access
from poolwise.version import __version__

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(PoolwiseError):
    """What an API server answered in place of what was asked for.

    Attributes
    ----------
    status : of HTTP; 0 where there was no answer, so that nobody knows whether the request took effect
    reason : in a word
    retry_after : seconds that the server asks to wait, 0 without
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status or 'no answer'} {reason}: {message}".strip())
        self.status, self.reason, self.retry_after = status, reason, retry_after

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later: the server is busy, broken or gone."""
        return self.status in (0, 408, 429) or self.status >= 500


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


class Client:
    """A session with an API server, of one event loop.

    Parameters
    ----------
    access
        Where it is.
    connections
        Most of them at once.
    timeout
        Seconds after which a request has no answer.
    """

    def __init__(self, access: Access, *, connections: int = 40, timeout: float = 30.0) -> None:
        self.access, self.timeout = access, timeout
        self.requests = 0
        connector = aiohttp.TCPConnector(limit=connections, ssl=access.tls if access.tls is not None else True)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=True, headers={"User-Agent": f"poolwise/{__version__}"}
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, **params: str) -> bytes:
        """Read an object or a list."""
        return await self.send("GET", path, params=params)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> bytes:
        """Send a request and return the answer's body; raises ApiError."""
        self.requests += 1
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(
                method,
                self._url(path),
                data=data,
                params=params or None,
                headers=self._headers(content if data is not None else ""),
                timeout=aiohttp.ClientTimeout(total=self.timeout),
            ) as answer:
                text = await answer.read()
                if answer.status < 400:
                    return text
                raise _error(answer.status, text, answer.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise ApiError(0, type(problem).__name__, str(problem)) from problem

    async def lines(self, path: str, params: Mapping[str, str], quiet: float) -> AsyncIterator[bytes]:
        """Read an answer line by line, however long lines are; ends with the stream, or after `quiet` seconds without one."""
        self.requests += 1
        try:
            async with self._session.get(
                self._url(path),
                params=params,
                headers=self._headers(""),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.timeout, sock_read=quiet),
            ) as answer:
                if answer.status >= 400:
                    raise _error(answer.status, await answer.read(), answer.headers.get("Retry-After", ""))
                rest: list[bytes] = []
                async for block in answer.content.iter_any():
                    first, *more = block.split(b"\n")
                    rest.append(first)
                    for line in more:
                        yield b"".join(rest)
                        rest = [line]
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise ApiError(0, type(problem).__name__, str(problem)) from problem

    def _url(self, path: str) -> URL:
        return URL(self.access.server + path, encoded=True)  # names of Kubernetes need no quoting, which takes time

    def _headers(self, content: str) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if token := self.access.bearer():
            headers["Authorization"] = f"Bearer {token}"
        if content:
            headers["Content-Type"] = content
        return headers


def _error(status: int, text: bytes, retry: str) -> ApiError:
    try:
        said = msgspec.json.decode(text, type=_Status)
    except msgspec.DecodeError:
        said = _Status(message=text[:200].decode(errors="replace"))
    return ApiError(status, said.reason, said.message, float(retry) if retry.isdigit() else 0.0)
