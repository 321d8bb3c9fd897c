"""Actions of the scheduler on a cluster: pod starts, evictions, claim releases, and messages to users."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from poolwise.live.kubernetes.api_writer import CLAIM, MESSAGE
from poolwise.live.kubernetes.client import STRATEGIC, ApiError
from poolwise.live.kubernetes.extended import ExtendedClaim
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceTaintRule
from poolwise.live.kubernetes.objects.meta import Meta
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.starts import PodStart, StartFailed, pod_path
from poolwise.live.kubernetes.watch_client import WatchClient
from poolwise.live.logs import log_event

_RETRY_DELAY = 60.0  # seconds after which a refused claim is created again


class Actions:
    """Receiver of the scheduler's decisions. This one writes nothing, for shadow mode: decisions appear in the record only."""

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Bind the pods of a run; the outcome arrives as a cluster event."""

    def abandon(self, run: int, reason: str) -> None:
        """Undo the start of a run that waits for a node or devices that no longer exist."""

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        """Evict pods."""

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        """Remove a pod (uid) from a claim's reservations; the last removal also deallocates the devices."""

    def create_claim(self, claim: ExtendedClaim) -> None:
        """Create the claim for the extended resources of a pod."""

    def report_unschedulable(self, pod: Pod, why: str) -> None:
        """Report to a pod's user why it waits."""

    def report_event(self, pod: Pod, reason: str, note: str, *, warning: bool = True) -> None:
        """Emit an event about a pod; `reason` is a word in CamelCase."""

    def report_rule(self, rule: DeviceTaintRule, note: str) -> None:
        """Emit an event about a taint rule that cannot be evaluated."""


class ClusterActions(Actions):
    """Actions that are written to the cluster in the background."""

    def __init__(self, watch_client: WatchClient, name: str) -> None:
        self._watch_client, self._name = watch_client, name
        self._reported: dict[str, tuple[str, str]] = {}  # pod -> uid, message
        self._releasing: set[tuple[str, str]] = set()  # (claim uid, pod uid) of releases in progress

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Reserve the claims of pods and bind the pods."""
        for start in pods:
            self._reported.pop(start.pod.metadata.key, None)
        self._watch_client.submit(self._watch_client.binder.start(run, pods))

    def abandon(self, run: int, reason: str) -> None:
        """Undo the start of a run, unless its pods are being bound already."""
        self._watch_client.call(lambda: self._watch_client.binder.abandon(run, reason))

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        """Evict pods, retrying for a limited time if a disruption budget forbids it; log each eviction and emit an event."""
        for pod in pods:
            self._watch_client.submit(self._evict(pod, reason))

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        """Release a reservation unless that release is already in progress."""
        if (key := (claim.metadata.uid, consumer)) not in self._releasing:
            self._releasing.add(key)
            self._watch_client.submit(self._release(claim, consumer))

    def create_claim(self, claim: ExtendedClaim) -> None:
        """Create a claim and record it in the pod's status."""
        self._watch_client.submit(self._create_with_retry(claim))

    def report_unschedulable(self, pod: Pod, why: str) -> None:
        """Set the condition PodScheduled=False and emit an event."""
        if any(c.type == "PodScheduled" and c.status == "False" and c.message == why for c in pod.status.conditions):
            self._reported.pop(pod.metadata.key, None)  # the pod already carries this message
        elif self._reported.get(pod.metadata.key) != (pod.metadata.uid, why):
            self._reported[pod.metadata.key] = pod.metadata.uid, why
            self._watch_client.submit(self._write_condition(pod, why))

    def report_event(self, pod: Pod, reason: str, note: str, *, warning: bool = True) -> None:
        """Emit an event about a pod."""
        self._watch_client.submit(self._post_event_or_log(pod, reason, note, warning))

    def report_rule(self, rule: DeviceTaintRule, note: str) -> None:
        """Emit an event about a taint rule that cannot be evaluated."""
        self._watch_client.submit(self._post_event_or_log(rule, "TaintRuleNotEvaluated", note, True))

    async def _release(self, claim: ResourceClaim, consumer: str) -> None:
        try:
            await self._watch_client.reservations.release(claim, consumer)
        except (ApiError, StartFailed) as error:
            log_event("claim_release_failed", claim=claim.metadata.key, error=str(error))
        finally:
            self._releasing.discard((claim.metadata.uid, consumer))

    async def _create_with_retry(self, claim: ExtendedClaim) -> None:
        """Retry until the claim exists or the pod is gone: an exhausted quota or a missing permission may be fixed."""
        while True:
            try:
                await self._watch_client.writer.retry(lambda: self._create_once(claim))
                return
            except (ApiError, StartFailed) as error:
                if isinstance(error, ApiError) and error.status in (404, 409):
                    return  # the pod no longer exists
                self.report_unschedulable(claim.pod, f"cannot create the claim for its extended resources: {error}")
            await asyncio.sleep(_RETRY_DELAY)

    async def _create_once(self, claim: ExtendedClaim) -> None:
        writer, meta = self._watch_client.writer, claim.pod.metadata
        try:
            await writer.post(f"/apis/resource.k8s.io/v1/namespaces/{meta.namespace}/resourceclaims", claim.body(), CLAIM)
        except ApiError as error:
            if error.status != 409:
                raise
            existing = await writer.read_claim(ResourceClaim(metadata=Meta(name=claim.name, namespace=meta.namespace)))
            if not any(owner.uid == meta.uid for owner in existing.metadata.owner_references):
                raise StartFailed(f"claim {existing.metadata.key} belongs to another owner") from error
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
            await self._watch_client.writer.retry(
                lambda: self._watch_client.writer.post(f"{pod_path(pod)}/eviction", body, MESSAGE)
            )
        except ApiError as error:
            if error.status != 404:
                log_event("eviction_failed", pod=meta.key, reason=reason, error=str(error))
            return
        log_event("pod_evicted", pod=meta.key, uid=meta.uid, reason=reason)
        await self._post_event_or_log(pod, "Evicted", f"{self._name} evicted the pod: {reason}", True)

    async def _write_condition(self, pod: Pod, why: str) -> None:
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastProbeTime": None,
            "lastTransitionTime": stamp,
        }
        meta = pod.metadata
        try:
            body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
            await self._watch_client.writer.patch(f"{pod_path(pod)}/status", body, MESSAGE, STRATEGIC)
            await self._post_event(pod, "FailedScheduling", why)
        except ApiError as error:  # the pod is gone, or the message is written again when it changes
            self._reported.pop(meta.key, None)
            if error.status not in (404, 409):
                log_event("condition_write_failed", pod=meta.key, error=str(error))

    async def _post_event_or_log(self, item: Pod | DeviceTaintRule, reason: str, note: str, warning: bool) -> None:
        try:
            await self._post_event(item, reason, note, warning)
        except ApiError as error:
            if error.status != 404:
                log_event("event_write_failed", object=item.metadata.key, reason=reason, error=str(error))

    async def _post_event(self, item: Pod | DeviceTaintRule, reason: str, note: str, warning: bool = True) -> None:
        meta = item.metadata
        regarding = {"kind": type(item).__name__, "name": meta.name, "uid": meta.uid}
        if isinstance(item, Pod):
            regarding |= {"apiVersion": "v1", "namespace": meta.namespace}
        reporter = item.spec.scheduler_name if isinstance(item, Pod) else self._name
        namespace = meta.namespace or "default"  # events about cluster-scoped objects are in the default namespace
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{meta.name}-", "namespace": namespace},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "action": "Scheduling",
            "note": note[:1024],
            "regarding": regarding,
            "reportingController": reporter,
            "reportingInstance": reporter,
        }
        await self._watch_client.writer.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event, MESSAGE)
