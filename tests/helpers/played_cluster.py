"""In-memory Kubernetes cluster: emits watch events, and receives actions, completing starts at once or on demand."""

import itertools
import queue
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes import cache
from poolwise.live.kubernetes.extended import ExtendedClaim
from poolwise.live.kubernetes.informer import Synced, WatchEvent
from poolwise.live.kubernetes.objects.claim import Consumer, ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceClass, DeviceTaintRule, ResourceSlice
from poolwise.live.kubernetes.objects.lease import Lease
from poolwise.live.kubernetes.objects.meta import Namespace
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import ExtendedClaimName, Pod
from poolwise.live.kubernetes.objects.pod_group import PodGroup
from poolwise.live.kubernetes.objects.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from poolwise.live.kubernetes.platform import KubernetesPlatform
from poolwise.live.kubernetes.starts import BindFailed, Bound, PodStart
from poolwise.live.kubernetes.watch_client import ClusterEvent
from poolwise.loop import Loop
from poolwise.quantities import SECOND

KINDS: dict[str, type] = {
    "Namespace": Namespace,
    "Node": Node,
    "Pod": Pod,
    "ResourceClaim": ResourceClaim,
    "ResourceSlice": ResourceSlice,
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
    "PodGroup": PodGroup,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "StorageClass": StorageClass,
    "Lease": Lease,
}


class FakeKubernetes:
    """A cluster in memory, in the roles of the watch client and the actions of a platform; takes objects as dictionaries.

    Attributes
    ----------
    events : queue of watch events
    objects : (kind, key) -> object
    started, abandoned, stopped, released, messages, reported : actions received so far
    binds_at_once : whether starts complete at once
    """

    def __init__(self, *objects: dict[str, Any], binds_at_once: bool = True) -> None:
        self.events: queue.SimpleQueue[ClusterEvent] = queue.SimpleQueue()
        self.objects: dict[tuple[type, str], Any] = {}
        self.started: list[tuple[int, tuple[PodStart, ...]]] = []
        self.stopped: list[tuple[str, str]] = []
        self.released: list[tuple[str, str]] = []
        self.abandoned: list[tuple[int, str]] = []
        self.messages: dict[str, str] = {}
        self.reported: list[tuple[str, str, str]] = []
        self.binds_at_once = binds_at_once
        self._uids = itertools.count(1)
        for item in objects:
            self.add(item)

    def add(self, item: dict[str, Any]) -> Any:
        """Create or replace an object from a dictionary."""
        meta = {"uid": f"u{next(self._uids):06d}", "creationTimestamp": "2026-11-22T12:00:00Z", **item["metadata"]}
        return self.put(msgspec.convert({**item, "metadata": meta}, KINDS[item["kind"]]))

    def put(self, item: Any) -> Any:
        """Store an object and emit a watch event."""
        self.objects[type(item), item.metadata.key] = item
        self.events.put(WatchEvent(item))
        return item

    def remove(self, kind: type, key: str) -> None:
        """Delete an object and emit a watch event."""
        self.events.put(WatchEvent(self.objects.pop((kind, key)), deleted=True))

    def get(self, kind: type, key: str) -> Any:
        """Return the current object."""
        return self.objects[kind, key]

    def finish(self, key: str) -> None:
        """Let a pod succeed."""
        pod = self.get(Pod, key)
        self.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded")))

    def open(
        self, scheduler: Scheduler, kind: type[KubernetesPlatform] = KubernetesPlatform, **options: Any
    ) -> "DrivenPlatform":
        """Open a platform on the current objects and drive it."""
        return DrivenPlatform(self, self.platform(scheduler, kind, **options), scheduler)

    def platform(
        self, scheduler: Scheduler, kind: type[KubernetesPlatform] = KubernetesPlatform, **options: Any
    ) -> KubernetesPlatform:
        """Open a platform on the current objects."""
        for item in cache.KINDS:
            self.events.put(Synced(item, frozenset(key for kind, key in self.objects if kind is item)))
        return kind(self, "poolwise", scheduler, self, **options)

    # Actions

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        self.started.append((run, tuple(pods)))
        if self.binds_at_once:
            self.complete_start(run, pods)

    def complete_start(self, run: int, pods: Sequence[PodStart]) -> None:
        """Write the allocations and bindings of a start, and emit its outcome."""
        self.reserve_claims(pods)
        for start in pods:
            pod = self.get(Pod, start.pod.metadata.key)
            spec = msgspec.structs.replace(pod.spec, node_name=start.node)
            self.put(msgspec.structs.replace(pod, spec=spec, status=msgspec.structs.replace(pod.status, phase="Running")))
        self.events.put(Bound(run))

    def reserve_claims(self, pods: Sequence[PodStart]) -> None:
        """Write the allocations of a start, whose devices then remain to be attached."""
        for start in pods:
            for write in start.claims:
                claim = self.get(ResourceClaim, write.claim.metadata.key)
                mine = Consumer(resource="pods", name=start.pod.metadata.name, uid=start.pod.metadata.uid)
                status = msgspec.structs.replace(
                    claim.status,
                    allocation=write.allocation if claim.status.allocation is None else claim.status.allocation,
                    reserved_for=[*claim.status.reserved_for, mine],
                )
                self.put(msgspec.structs.replace(claim, status=status))

    def abandon(self, run: int, reason: str) -> None:
        self.abandoned.append((run, reason))
        for start in next(pods for number, pods in self.started if number == run):
            for write in start.claims:
                self.release_claim(write.claim, start.pod.metadata.uid)
        self.events.put(BindFailed(run, reason, lost=True))

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        self.stopped += [(pod.metadata.key, reason) for pod in pods]

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        self.released.append((claim.metadata.key, consumer))
        now = self.get(ResourceClaim, claim.metadata.key)
        users = [user for user in now.status.reserved_for if user.uid != consumer]
        allocation = now.status.allocation if users else None
        status = msgspec.structs.replace(now.status, reserved_for=users, allocation=allocation)
        self.put(msgspec.structs.replace(now, status=status))

    def create_claim(self, claim: ExtendedClaim) -> None:
        self.add(claim.body())
        pod = self.get(Pod, claim.pod.metadata.key)
        made = msgspec.convert(claim.status()["status"]["extendedResourceClaimStatus"], ExtendedClaimName)
        self.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, extended_resource_claim_status=made)))

    def report_unschedulable(self, pod: Pod, why: str) -> None:
        self.messages[pod.metadata.key] = why

    def report_event(self, pod: Pod, reason: str, note: str, *, warning: bool = True) -> None:
        self.reported.append((pod.metadata.key, reason, note))

    def report_rule(self, rule: DeviceTaintRule, note: str) -> None:
        self.reported.append((rule.metadata.key, "TaintRuleNotEvaluated", note))


class DrivenPlatform:
    """A platform and its control loop, driven batch by batch. Its clock advances only in `wait_for_pass`."""

    def __init__(self, cluster: FakeKubernetes, platform: KubernetesPlatform, scheduler: Scheduler) -> None:
        self.cluster, self.platform = cluster, platform
        self._steady = time.monotonic_ns()
        platform.clock._steady = lambda: self._steady
        self.loop = Loop(platform, scheduler)
        self.loop.step(next(platform.events()))
        self.settle()

    def settle(self) -> "DrivenPlatform":
        """Process all queued events."""
        while not self.cluster.events.empty():
            received = [self.cluster.events.get() for _ in range(self.cluster.events.qsize())]
            if (batch := self.platform.batch(received)) is not None:
                self.loop.step(batch)
        return self

    def wait_for_pass(self) -> "DrivenPlatform":
        """Advance the clock until a pass is due without events, run it, and process the events that follow."""
        left = self.platform.clock.seconds_left
        assert left is not None, "no pass is due"
        self._steady += int(left * SECOND) + 1
        if (batch := self.platform.batch([])) is not None:
            self.loop.step(batch)
        return self.settle()

    def nodes(self) -> dict[str, str]:
        """Return pod name -> node name, for pods with a node."""
        return {
            item.metadata.name: item.spec.node_name
            for (kind, _), item in self.cluster.objects.items()
            if kind is Pod and item.spec.node_name
        }
