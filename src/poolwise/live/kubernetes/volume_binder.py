"""Provisioning of volumes: select the node of a volume claim, and wait until a volume is bound to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

import msgspec

from poolwise.live.kubernetes.api_writer import CLAIM, ApiWriter
from poolwise.live.kubernetes.client import Client
from poolwise.live.kubernetes.objects.volume import PersistentVolume, PersistentVolumeClaim
from poolwise.live.kubernetes.start_waits import StartWaits
from poolwise.live.kubernetes.starts import StartFailed, VolumeWrite
from poolwise.live.kubernetes.volumes import SELECTED_NODE, volume_serves


class VolumeBinder:
    """Selects nodes for volume claims; `timeout` (s) limits the wait for the provisioner."""

    def __init__(self, client: Client, writer: ApiWriter, *, timeout: float) -> None:
        self._client, self._writer, self._timeout = client, writer, timeout
        self._claims: dict[str, PersistentVolumeClaim] = {}  # latest version of each, by uid
        self._changed: dict[str, set[asyncio.Event]] = {}  # uid -> events that are set when the claim changes

    def observe(self, claim: PersistentVolumeClaim, deleted: bool) -> None:
        """Update a claim from a watch event or a write's response, ignoring versions older than the known one."""
        previous = self._claims.get(claim.metadata.uid)
        if deleted:
            self._claims.pop(claim.metadata.uid, None)
        elif previous is None or not claim.metadata.is_older_than(previous.metadata):
            self._claims[claim.metadata.uid] = claim
        for event in self._changed.get(claim.metadata.uid, ()):
            event.set()

    async def select_node(self, volumes: Sequence[VolumeWrite]) -> None:
        """Annotate claims with the node on which their provisioners create the volumes."""
        for volume in volumes:
            if volume.claim.metadata.annotations.get(SELECTED_NODE) != volume.node.metadata.name:
                await self._writer.retry(partial(self._annotate, volume), conflicts=True)

    async def _annotate(self, volume: VolumeWrite) -> None:
        meta = volume.claim.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        body = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: volume.node.metadata.name}}}
        self.observe(msgspec.json.decode(await self._writer.patch(path, body, CLAIM), type=PersistentVolumeClaim), False)

    async def wait_bound(self, volume: VolumeWrite, waits: StartWaits) -> None:
        """Wait until a volume that serves the node is bound to a claim; raise StartFailed on failure or timeout."""
        meta, node = volume.claim.metadata, volume.node.metadata.name
        until, cause = time.monotonic() + self._timeout, [(meta.uid, node)]
        with waits.wait() as event:
            changed = self._changed.setdefault(meta.uid, set())
            changed.add(event)
            try:
                while True:
                    event.clear()
                    waits.check()
                    claim = self._claims.get(meta.uid)
                    if claim is None:
                        raise StartFailed(f"volume claim {meta.key} was deleted")
                    if claim.is_bound:
                        break
                    if claim.metadata.annotations.get(SELECTED_NODE) != node:
                        reason = f"the provisioner of volume claim {meta.key} gave up on node {node}"
                        raise StartFailed(reason, volumes=cause)
                    try:
                        await asyncio.wait_for(event.wait(), max(until - time.monotonic(), 0.001))
                    except TimeoutError:
                        reason = f"volume claim {meta.key} was not bound within {self._timeout:g} s on node {node}"
                        raise StartFailed(reason, volumes=cause) from None
            finally:
                changed.discard(event)
                if not changed:
                    self._changed.pop(meta.uid, None)
        path = f"/api/v1/persistentvolumes/{claim.spec.volume_name}"
        bound = await self._writer.retry(lambda: self._client.read(path, PersistentVolume))
        if bound is None or not volume_serves(bound, volume.node):
            raise StartFailed(f"volume {claim.spec.volume_name} of claim {meta.key} cannot be used on node {node}", lost=True)
