"""What a node agent asks of an API server: claims, its own slices, and the conditions of devices.

What it writes it applies (server-side apply): the same message twice is one, and what others wrote stays.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.objects import Node, ResourceClaim, ResourceSlice

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/resourceclaims"
VERSION = "resource.k8s.io/v1"
_SLICES = f"{GROUP}/resourceslices"
_APPLY = "application/apply-patch+yaml"
_MANAGER = {"fieldManager": "poolwise-node-agent", "force": "true"}


class AgentCluster(Protocol):
    """The part of a cluster that a node agent sees; all of it raises ApiError."""

    async def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as it is now; None where there is none."""
        ...

    async def node_uid(self, node: str) -> str:
        """The uid of a node."""
        ...

    async def slices(self, driver: str) -> list[ResourceSlice]:
        """All slices of a driver."""
        ...

    async def apply_slice(self, content: dict[str, Any]) -> None:
        """Make a slice, or make it what is given."""
        ...

    async def delete_slice(self, name: str) -> None:
        """Delete a slice, if it is there."""
        ...

    async def report(self, claim: ResourceClaim, devices: list[dict[str, Any]]) -> None:
        """Say in a claim's status what this driver's devices are; refused (409) where the claim is another one by now."""
        ...


class _Slices(msgspec.Struct):
    items: list[ResourceSlice] = []


class ServerCluster:
    """The same from a real API server."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Read a claim."""
        try:
            text = await self.client.get(f"{GROUP}/namespaces/{namespace}/resourceclaims/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return msgspec.json.decode(text, type=ResourceClaim)

    async def node_uid(self, node: str) -> str:
        """Read a node's uid."""
        return msgspec.json.decode(await self.client.get(f"/api/v1/nodes/{node}"), type=Node).metadata.uid

    async def slices(self, driver: str) -> list[ResourceSlice]:
        """List a driver's slices."""
        text = await self.client.get(_SLICES, fieldSelector=f"spec.driver={driver}")
        return msgspec.json.decode(text, type=_Slices).items

    async def apply_slice(self, content: dict[str, Any]) -> None:
        """Apply a slice."""
        body = {"apiVersion": VERSION, "kind": "ResourceSlice", **content}
        await self.client.send("PATCH", f"{_SLICES}/{content['metadata']['name']}", body, params=_MANAGER, content=_APPLY)

    async def delete_slice(self, name: str) -> None:
        """Delete a slice."""
        try:
            await self.client.send("DELETE", f"{_SLICES}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise

    async def report(self, claim: ResourceClaim, devices: list[dict[str, Any]]) -> None:
        """Apply the status of devices; uid and version make sure that it is said of the allocation that was seen."""
        meta = claim.metadata
        path = f"{GROUP}/namespaces/{meta.namespace}/resourceclaims/{meta.name}/status"
        named = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"apiVersion": VERSION, "kind": "ResourceClaim", "metadata": named, "status": {"devices": devices}}
        await self.client.send("PATCH", path, body, params=_MANAGER, content=_APPLY)
