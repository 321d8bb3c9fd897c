"""HTTP client of an API server: JSON requests, errors as exceptions, and watch streams line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from poolwise.errors import InputError, PoolwiseError
from poolwise.live.kubernetes.access import Access
from poolwise.version import __version__

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_UNAUTHORIZED = 401
T = TypeVar("T")


class ApiError(PoolwiseError):
    """An error response of an API server, or a request without a response.

    The HTTP `status` is 0 without a response, in which case the request may still have taken effect. `retry_after` (s) is 0
    unless the server asks to wait.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status or 'no answer'} {reason}: {message}".strip())
        self.status, self.reason, self.retry_after = status, reason, retry_after

    @property
    def is_temporary(self) -> bool:
        """True if the same request may succeed later: the server is busy, failing or unreachable."""
        return self.status in (0, 408, 429) or self.status >= 500


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


class Client:
    """A session with an API server, bound to one event loop; `timeout` (s) applies to each request."""

    def __init__(self, access: Access, *, connections: int = 40, timeout: float = 30.0) -> None:
        self.access, self.timeout = access, timeout
        connector = aiohttp.TCPConnector(limit=connections, ssl=access.tls if access.tls is not None else True)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=True, headers={"User-Agent": f"poolwise/{__version__}"}
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, **params: str) -> bytes:
        """Read an object or a list and return the response body."""
        return await self.send("GET", path, params=params)

    async def read(self, path: str, kind: type[T]) -> T | None:
        """Return an object, None if it does not exist; raise ApiError."""
        try:
            return msgspec.json.decode(await self.get(path), type=kind)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> bytes:
        """Send a request, again if the server rejects credentials that can be renewed; return the body or raise ApiError."""
        data = None if body is None else msgspec.json.encode(body)
        token = await self._token()
        try:
            return await self._send(method, path, data, params, content, token)
        except ApiError as error:
            if error.status != _UNAUTHORIZED or not self.access.reject(token):
                raise
        return await self._send(method, path, data, params, content, await self._token())

    async def _send(
        self, method: str, path: str, data: bytes | None, params: Mapping[str, str] | None, content: str, token: str
    ) -> bytes:
        try:
            async with self._session.request(
                method,
                self._url(path),
                data=data,
                params=params or None,
                headers=_headers(token, content if data is not None else ""),
                timeout=aiohttp.ClientTimeout(total=self.timeout),
                proxy=self.access.proxy,
                server_hostname=self.access.server_name,
            ) as answer:
                payload = await answer.read()
                if answer.status < 400:
                    return payload
                raise _error(answer.status, payload, answer.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, type(error).__name__, str(error)) from error

    async def lines(self, path: str, params: Mapping[str, str], idle_timeout: float) -> AsyncIterator[bytes]:
        """Yield the lines of a streamed response until it ends; raise ApiError after `idle_timeout` seconds without data."""
        token = await self._token()
        try:
            async with self._session.get(
                self._url(path),
                params=params,
                headers=_headers(token),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.timeout, sock_read=idle_timeout),
                proxy=self.access.proxy,
                server_hostname=self.access.server_name,
            ) as answer:
                if answer.status >= 400:
                    if answer.status == _UNAUTHORIZED:
                        self.access.reject(token)
                    raise _error(answer.status, await answer.read(), answer.headers.get("Retry-After", ""))
                rest: list[bytes] = []
                async for block in answer.content.iter_any():
                    first, *more = block.split(b"\n")
                    rest.append(first)
                    for line in more:
                        yield b"".join(rest)
                        rest = [line]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, type(error).__name__, str(error)) from error

    def _url(self, path: str) -> URL:
        return URL(self.access.server + path, encoded=True)  # Kubernetes names need no quoting, which is slow

    async def _token(self) -> str:
        try:
            return await self.access.bearer_token()
        except InputError as error:
            raise ApiError(0, "CredentialsExpired", error.message) from error
        except OSError as error:  # the token file is replaced from time to time
            raise ApiError(0, "CredentialsUnreadable", str(error)) from error


def _headers(token: str, content: str = "") -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if content:
        headers["Content-Type"] = content
    return headers


def _error(status: int, payload: bytes, retry: str) -> ApiError:
    try:
        details = msgspec.json.decode(payload, type=_Status)
    except msgspec.DecodeError:
        details = _Status(message=payload[:200].decode(errors="replace"))
    return ApiError(status, details.reason, details.message, float(retry) if retry.isdigit() else 0.0)
