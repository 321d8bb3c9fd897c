"""API servers that deny or fail requests for a while."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from poolwise.errors import InputError
from poolwise.live.kubernetes import lease, watch_client
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.informer import Synced
from poolwise.live.kubernetes.lease import Leadership, NotLeading
from poolwise.live.kubernetes.objects.device import DeviceTaintRule
from poolwise.live.kubernetes.objects.lease import Lease
from poolwise.live.kubernetes.objects.pod_group import PodGroup
from poolwise.live.kubernetes.watch_client import WatchClient

BOOKMARK = json.dumps(
    {
        "type": "BOOKMARK",
        "object": {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}},
    }
).encode()


class FlakyServer:
    """A client of an empty cluster whose server answers the first requests to each path with an error."""

    def __init__(self, status: int, failures: int, unserved: tuple[str, ...] = (), denied: tuple[str, ...] = ()) -> None:
        self.status, self.failures, self.unserved, self.denied = status, failures, unserved, denied
        self.asked, self.watched = Counter[str](), set[str]()

    def __call__(self, access: Any) -> FlakyServer:
        return self

    def _answer(self, path: str) -> None:
        self.asked[path] += 1
        if self.asked[path] <= self.failures:
            raise ApiError(self.status, "", "")
        if any(part in path for part in self.denied):
            raise ApiError(403, "Forbidden", "")
        if any(part in path for part in self.unserved):
            raise ApiError(404, "NotFound", "")

    async def get(self, path: str, **params: str) -> bytes:
        self._answer(path)
        return b"{}"

    async def read(self, path: str, kind: type) -> None:
        self._answer(path)

    async def send(self, *_: Any, **__: Any) -> bytes:
        return b"{}"

    async def lines(self, path: str, params: Any, idle_timeout: float) -> AsyncIterator[bytes]:
        self._answer(f"watch {path}")
        self.watched.add(path)
        yield BOOKMARK
        await asyncio.sleep(3600)

    async def close(self) -> None: ...


def synced(server: FlakyServer, monkeypatch: pytest.MonkeyPatch, kinds: int = 11) -> set[type]:
    """Open a watch client, and return the kinds that it has read completely."""
    monkeypatch.setattr(watch_client, "Client", server)
    client = WatchClient(cast(Any, type("Access", (), {"server": "https://x"})()))
    try:
        client.open()
        kinds_synced = set[type]()
        while len(kinds_synced) < kinds:
            event = client.events.get(timeout=20)
            assert isinstance(event, Synced), event
            kinds_synced.add(event.kind)
        return kinds_synced
    finally:
        client.close()


@pytest.mark.parametrize("status", [403, 429, 500, 503, 0])
def test_temporary_errors_do_not_end_the_process(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_client, "_LEAST_RETRY", 0.01)
    server = FlakyServer(status, failures=2, unserved=("resource.k8s.io/v1/devicetaintrules",))
    assert len(synced(server, monkeypatch)) == 11
    assert "/apis/resource.k8s.io/v1beta2/devicetaintrules" in server.watched
    assert "/apis/scheduling.k8s.io/v1alpha2/podgroups" in server.watched


def test_permanent_denial_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WatchClient._can_list, "__defaults__", (0.2,))
    with pytest.raises(InputError, match="403"):
        synced(FlakyServer(403, failures=10**6), monkeypatch)


def test_optional_kinds_are_watched_once_the_role_permits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_client, "_FORBIDDEN_TIMEOUT", 0.0)
    monkeypatch.setattr(watch_client, "_PERMISSION_INTERVAL", 0.1)
    server = FlakyServer(503, failures=0, denied=("devicetaintrules", "podgroups"))
    monkeypatch.setattr(watch_client, "Client", server)
    client = WatchClient(cast(Any, type("Access", (), {"server": "https://x"})()))
    try:
        client.open()
        server.denied = ()
        kinds = list[type]()
        while kinds.count(DeviceTaintRule) < 2 or kinds.count(PodGroup) < 2:
            kinds.append(cast(Any, client.events.get(timeout=20)).kind)
    finally:
        client.close()


def test_standby_survives_a_temporary_denial() -> None:
    server, leadership = FlakyServer(403, failures=2), Leadership("poolwise", "poolwise", 0.5)
    asyncio.run(leadership.acquire(cast(Any, server)))
    assert leadership.is_leader


def test_standby_fails_if_its_role_never_permits_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_FORBIDDEN_TIMEOUT", 0.1)
    with pytest.raises(ApiError, match="403"):
        asyncio.run(Leadership("poolwise", "poolwise", 0.5).acquire(cast(Any, FlakyServer(403, failures=10**6))))


class LeaseServer:
    """A client of a server that stores one lease, and denies requests on demand."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.down, self.version = False, 0

    async def read(self, path: str, kind: type) -> Lease | None:
        if self.down:
            raise ApiError(503, "", "")
        return self.lease

    async def send(self, method: str, path: str, body: Any, **options: Any) -> bytes:
        if self.down:
            raise ApiError(503, "", "")
        if "spec" in body:
            self.version += 1
            meta = {"name": "x", "namespace": "y", "resourceVersion": str(self.version)}
            self.lease = msgspec.convert({"metadata": meta, "spec": body["spec"]}, Lease)
        return b"{}"


def test_writes_wait_for_a_late_renewal_and_end_if_another_process_leads() -> None:
    """A server that does not respond for longer than the lease does not end the leader."""

    async def run() -> None:
        server, leadership = LeaseServer(), Leadership("y", "x", 0.7)
        client = cast(Any, server)
        writer = ApiWriter(client, leadership.check_leader)
        await leadership.acquire(client)
        renewal = asyncio.create_task(leadership.renew(client))
        server.down = True
        while leadership.is_leader:
            await asyncio.sleep(0.05)
        write = asyncio.create_task(writer.post("/pods", {}, 0))
        await asyncio.sleep(0.5)
        assert not write.done() and not renewal.done()
        server.down = False
        assert await asyncio.wait_for(write, 5) == b"{}"
        assert server.lease is not None
        spec = msgspec.structs.replace(server.lease.spec, holder_identity="another")
        server.lease = msgspec.structs.replace(server.lease, spec=spec)
        with pytest.raises(NotLeading):
            await asyncio.wait_for(renewal, 5)

    asyncio.run(run())


def test_missing_token_file_is_a_temporary_error(tmp_path: Path) -> None:
    async def run() -> None:
        client = Client(Access("http://127.0.0.1:1", None, token_file=tmp_path / "token"))
        try:
            with pytest.raises(ApiError, match="CredentialsUnreadable") as raised:
                await client.get("/api/v1/nodes")
            assert raised.value.is_temporary
        finally:
            await client.close()

    asyncio.run(run())
