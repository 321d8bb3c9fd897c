"""API server access of a node agent: claims, its own slices, and device conditions.

Writes use server-side apply: repeating a write has no effect, and fields of other writers are kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise.live.kubernetes.objects.node import Node

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/resourceclaims"
VERSION = "resource.k8s.io/v1"
_SLICES = f"{GROUP}/resourceslices"
_APPLY = "application/apply-patch+yaml"
_MANAGER = {"fieldManager": "poolwise-node-agent", "force": "true"}


class _Slices(msgspec.Struct):
    items: list[ResourceSlice] = []


class AgentCluster:
    """The part of a cluster that a node agent uses; all methods raise ApiError."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim, None if it does not exist."""
        return await self.client.read(f"{GROUP}/namespaces/{namespace}/resourceclaims/{name}", ResourceClaim)

    async def node_uid(self, node: str) -> str:
        """Return the uid of a node."""
        return msgspec.json.decode(await self.client.get(f"/api/v1/nodes/{node}"), type=Node).metadata.uid

    async def slices(self, driver: str) -> list[ResourceSlice]:
        """Return all slices of a driver."""
        text = await self.client.get(_SLICES, fieldSelector=f"spec.driver={driver}")
        return msgspec.json.decode(text, type=_Slices).items

    async def apply_slice(self, content: dict[str, Any]) -> None:
        """Create or replace a slice."""
        body = {"apiVersion": VERSION, "kind": "ResourceSlice", **content}
        await self.client.send("PATCH", f"{_SLICES}/{content['metadata']['name']}", body, params=_MANAGER, content=_APPLY)

    async def delete_slice(self, name: str) -> None:
        """Delete a slice if it exists."""
        try:
            await self.client.send("DELETE", f"{_SLICES}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise

    async def report(self, claim: ResourceClaim, devices: list[dict[str, Any]]) -> None:
        """Write the driver's device conditions to a claim's status; fails with 409 if the claim has changed."""
        meta = claim.metadata
        path = f"{GROUP}/namespaces/{meta.namespace}/resourceclaims/{meta.name}/status"
        named = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"apiVersion": VERSION, "kind": "ResourceClaim", "metadata": named, "status": {"devices": devices}}
        await self.client.send("PATCH", path, body, params=_MANAGER, content=_APPLY)
