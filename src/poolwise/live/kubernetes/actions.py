"""What decisions write to the cluster: starts, stops, and what users are told of their pods."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from poolwise.live.kubernetes.api_writer import CLAIM, SAY
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.client import STRATEGIC, ApiError
from poolwise.live.kubernetes.extended import ExtendedClaim
from poolwise.live.kubernetes.objects import Meta, Pod, ResourceClaim
from poolwise.live.kubernetes.starts import PodStart, StartFailed, pod_path
from poolwise.live.kubernetes.watch_client import WatchClient
from poolwise.live.logs import say

_REST = 60.0
"""Seconds after which what was refused is tried again."""


class Actions(Protocol):
    """Where decisions go."""

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Make a start real; the link tells what became of it."""
        ...

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        """Evict pods."""
        ...

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        """End the reservation of a claim for a pod (uid), and take its devices with the last one."""
        ...

    def make(self, claim: ExtendedClaim) -> None:
        """Make the claim for the extended resources of a pod."""
        ...

    def say(self, pod: Pod, why: str) -> None:
        """Say why a pod waits."""
        ...

    def note(self, mirror: ClusterCache, notes: Mapping[str, str]) -> None:
        """Say why pods are left alone, where that is new."""
        ...


class ClusterActions:
    """Actions to the cluster, in the background."""

    def __init__(self, link: WatchClient, name: str) -> None:
        self._link, self._name = link, name
        self._said: dict[str, tuple[str, str]] = {}  # pod -> uid, words
        self._giving: set[tuple[str, str]] = set()  # claim and pod (uid) whose reservation is being ended

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Make a start real."""
        for start in pods:
            self._said.pop(start.pod.metadata.key, None)
        self._link.do(self._link.binder.start(run, pods))

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        """Evict pods; a disruption budget may forbid that for a while."""
        for pod in pods:
            self._link.do(self._evict(pod, reason))

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        """End a reservation; nothing is written twice at a time."""
        if (what := (claim.metadata.uid, consumer)) not in self._giving:
            self._giving.add(what)
            self._link.do(self._give_back(claim, consumer))

    def make(self, claim: ExtendedClaim) -> None:
        """Make a claim, and write to its pod that it is there."""
        self._link.do(self._make(claim))

    def say(self, pod: Pod, why: str) -> None:
        """Write the condition PodScheduled=False, and an event."""
        if any(c.type == "PodScheduled" and c.status == "False" and c.message == why for c in pod.status.conditions):
            self._said.pop(pod.metadata.key, None)  # it stands there, whoever wrote it
        elif self._said.get(pod.metadata.key) != (pod.metadata.uid, why):
            self._said[pod.metadata.key] = pod.metadata.uid, why
            self._link.do(self._condition(pod, why))

    def note(self, mirror: ClusterCache, notes: Mapping[str, str]) -> None:
        """Write the conditions of pods that are left alone."""
        for key, why in notes.items():
            if (pod := mirror.pending_pod(key)) is not None:
                self.say(pod, why)

    async def _give_back(self, claim: ResourceClaim, consumer: str) -> None:
        try:
            await self._link.reservations.release(claim, consumer)
        except (ApiError, StartFailed) as error:
            say("not given back", claim=claim.metadata.key, error=str(error))
        finally:
            self._giving.discard((claim.metadata.uid, consumer))

    async def _make(self, claim: ExtendedClaim) -> None:
        """Try until it is made or the pod is gone: a quota, or a right that is missing, may be mended."""
        while True:
            try:
                await self._link.writer.again(lambda: self._make_once(claim))
                return
            except (ApiError, StartFailed) as error:
                if isinstance(error, ApiError) and error.status in (404, 409):
                    return  # there is no such pod any more
                self.say(claim.pod, f"the claim for its extended resources cannot be made: {error}")
            await asyncio.sleep(_REST)

    async def _make_once(self, claim: ExtendedClaim) -> None:
        writer, meta = self._link.writer, claim.pod.metadata
        try:
            await writer.post(f"/apis/resource.k8s.io/v1/namespaces/{meta.namespace}/resourceclaims", claim.body(), CLAIM)
        except ApiError as error:
            if error.status != 409:
                raise
            found = await writer.read_claim(ResourceClaim(metadata=Meta(name=claim.name, namespace=meta.namespace)))
            if not any(owner.uid == meta.uid for owner in found.metadata.owner_references):
                raise StartFailed(f"claim {found.metadata.key} is somebody else's") from error
        await writer.patch(f"{pod_path(claim.pod)}/status", claim.status(), CLAIM)

    async def _evict(self, pod: Pod, reason: str) -> None:
        meta = pod.metadata
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "deleteOptions": {"preconditions": {"uid": meta.uid}},
        }
        try:
            await self._link.writer.again(lambda: self._link.writer.post(f"{pod_path(pod)}/eviction", body, SAY))
        except ApiError as error:
            if error.status != 404:
                say("not evicted", pod=meta.key, reason=reason, error=str(error))

    async def _condition(self, pod: Pod, why: str) -> None:
        now = datetime.now(UTC)
        stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastProbeTime": None,
            "lastTransitionTime": stamp,
        }
        meta = pod.metadata
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{meta.name}-", "namespace": meta.namespace},
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": "Warning",
            "reason": "FailedScheduling",
            "action": "Scheduling",
            "note": why[:1024],
            "regarding": {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "reportingController": self._name,
            "reportingInstance": self._name,
        }
        try:
            body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
            await self._link.writer.patch(f"{pod_path(pod)}/status", body, SAY, STRATEGIC)
            await self._link.writer.post(f"/apis/events.k8s.io/v1/namespaces/{meta.namespace}/events", event, SAY)
        except ApiError as error:  # the pod is gone, or it is said again when there is something new
            self._said.pop(meta.key, None)
            if error.status not in (404, 409):
                say("not told", pod=meta.key, error=str(error))


class ShadowActions:
    """Actions nothing: what was decided is in the record."""

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Write nothing."""

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        """Write nothing."""

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        """Write nothing."""

    def make(self, claim: ExtendedClaim) -> None:
        """Write nothing."""

    def say(self, pod: Pod, why: str) -> None:
        """Write nothing."""

    def note(self, mirror: ClusterCache, notes: Mapping[str, str]) -> None:
        """Write nothing."""
