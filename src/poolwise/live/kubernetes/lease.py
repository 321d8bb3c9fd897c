"""Leader election: one of several replicas holds a lease, and stops writing before another one can acquire it.

A lease does not fence writes: the API server accepts them from any client. The leader therefore counts the lease from the time
before each renewal request and writes nothing in its last third; a successor waits for the full duration on its own clock.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.objects.lease import Lease
from poolwise.live.logs import log_event

_FORBIDDEN_TIMEOUT = 60.0  # seconds for which requests may be denied, as while the server loads its roles


class NotLeading(PoolwiseError):
    """Writing is forbidden: the lease was not renewed in time."""


class Leadership:
    """A lease that this process holds or waits for. It lasts for some seconds after each renewal."""

    def __init__(self, namespace: str, name: str, seconds: float = 15.0) -> None:
        self.namespace, self.name, self.seconds = namespace, name, seconds
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
        self._until = 0.0
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    @property
    def is_leader(self) -> bool:
        """True if this process may write."""
        return time.monotonic() < self._until

    def check_leader(self) -> None:
        """Raise NotLeading if this process may not write."""
        if not self.is_leader:
            raise NotLeading(f"the lease {self.namespace}/{self.name} was not renewed in time: another process may lead")

    async def acquire(self, client: Client) -> None:
        """Wait until this process holds the lease."""
        seen, since = "", time.monotonic()
        announced: str | None = None  # logged holder of the lease
        permitted = since  # time of the last request that the server permitted
        while True:
            begun = time.monotonic()
            try:
                lease = await self._read(client)
                permitted = begun
                if lease is not None and lease.metadata.resource_version != seen:
                    seen, since = lease.metadata.resource_version, begun
                held = lease is not None and lease.spec.holder_identity not in (None, "", self.identity)
                lasts = (lease.spec.lease_duration_seconds if lease is not None else None) or self.seconds
                if held and lease is not None and lease.spec.holder_identity != announced:
                    announced = lease.spec.holder_identity
                    log_event("lease_held", lease=f"{self.namespace}/{self.name}", holder=announced)
                if not held or begun - since > lasts:
                    await self._write(client, lease, begun)
                    log_event("lease_acquired", lease=f"{self.namespace}/{self.name}", identity=self.identity)
                    return
            except ApiError as error:
                denied = error.status == 403 and time.monotonic() < permitted + _FORBIDDEN_TIMEOUT
                if not (error.is_temporary or error.status == 409 or denied):
                    raise
            await asyncio.sleep(min(1.0, self.seconds / 10))

    async def renew(self, client: Client) -> None:
        """Renew the lease until cancelled; raise NotLeading if another process acquired it.

        While the server does not respond, writes are suspended from the last third of the lease on. They resume with the next
        renewal, which succeeds only if no other process has held the lease in the meantime.
        """
        while True:
            await asyncio.sleep(self.seconds / 7)
            begun = time.monotonic()
            try:
                lease = await self._read(client)
                if lease is None or lease.spec.holder_identity != self.identity:
                    self._until = 0.0
                    raise NotLeading(f"the lease {self.namespace}/{self.name} was acquired by another process")
                await self._write(client, lease, begun)
            except ApiError as error:
                log_event("lease_renewal_failed", error=str(error))

    async def release(self, client: Client) -> None:
        """Release the lease so that another process can acquire it at once."""
        self._until = 0.0
        try:
            lease = await self._read(client)
            if lease is not None and lease.spec.holder_identity == self.identity:
                await client.send("PUT", f"{self._path}/{self.name}", self._body("", lease))
        except ApiError as error:
            log_event("lease_release_failed", error=str(error))

    async def _read(self, client: Client) -> Lease | None:
        return await client.read(f"{self._path}/{self.name}", Lease)

    async def _write(self, client: Client, lease: Lease | None, begun: float) -> None:
        body = self._body(self.identity, lease)
        if lease is None:
            await client.send("POST", self._path, body)
        else:
            await client.send("PUT", f"{self._path}/{self.name}", body)
        self._until = begun + self.seconds * 2 / 3

    def _body(self, holder: str, lease: Lease | None) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = lease is not None and lease.spec.holder_identity == self.identity
        transitions = lease.spec.lease_transitions or 0 if lease is not None else 0
        meta = {"name": self.name, "namespace": self.namespace}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": meta if lease is None else {**meta, "resourceVersion": lease.metadata.resource_version},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(self.seconds)),
                "acquireTime": lease.spec.acquire_time if mine and lease is not None else now,
                "renewTime": now,
                "leaseTransitions": transitions if mine else transitions + 1,
            },
        }
