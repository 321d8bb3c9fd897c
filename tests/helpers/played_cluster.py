"""A Kubernetes cluster in memory: what a link tells of it, and writes that come true at once, or when a test says so."""

import itertools
import queue
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.extended import ExtendedClaim
from poolwise.live.kubernetes.informer import Seen, Synced
from poolwise.live.kubernetes.objects import (
    Consumer,
    DeviceClass,
    ExtendedClaimName,
    Lease,
    Node,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceSlice,
)
from poolwise.live.kubernetes.platform import KubernetesPlatform
from poolwise.live.kubernetes.starts import Bound, PodStart
from poolwise.live.kubernetes.watch_client import Told
from poolwise.loop import Loop

KINDS: dict[str, type] = {
    "Node": Node,
    "Pod": Pod,
    "ResourceClaim": ResourceClaim,
    "ResourceSlice": ResourceSlice,
    "DeviceClass": DeviceClass,
    "PodGroup": PodGroup,
    "Lease": Lease,
}


class PlayedCluster:
    """Objects as dictionaries of Kubernetes go in; it stands for the link and for the writes of a platform.

    Attributes
    ----------
    objects : (kind, key) -> object
    started, stopped, given_back, said : what was written
    binds : whether starts come true at once
    """

    def __init__(self, *objects: dict[str, Any], binds: bool = True) -> None:
        self.told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self.objects: dict[tuple[type, str], Any] = {}
        self.started: list[tuple[int, tuple[PodStart, ...]]] = []
        self.stopped: list[tuple[str, str]] = []
        self.given_back: list[tuple[str, str]] = []
        self.said: dict[str, str] = {}
        self.binds = binds
        self._uids = itertools.count(1)
        for one in objects:
            self.add(one)

    def add(self, one: dict[str, Any]) -> Any:
        """Make an object, or replace it."""
        meta = {"uid": f"u{next(self._uids):06d}", "creationTimestamp": "2026-11-22T12:00:00Z", **one["metadata"]}
        return self.put(msgspec.convert({**one, "metadata": meta}, KINDS[one["kind"]]))

    def put(self, thing: Any) -> Any:
        """Tell of an object as it is now."""
        self.objects[type(thing), thing.metadata.key] = thing
        self.told.put(Seen(thing))
        return thing

    def remove(self, kind: type, key: str) -> None:
        """Tell that an object is gone."""
        self.told.put(Seen(self.objects.pop((kind, key)), deleted=True))

    def get(self, kind: type, key: str) -> Any:
        """An object as it is now."""
        return self.objects[kind, key]

    def finish(self, key: str) -> None:
        """Let a pod succeed."""
        pod = self.get(Pod, key)
        self.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded")))

    def open(self, scheduler: Scheduler, kind: type[KubernetesPlatform] = KubernetesPlatform, **options: Any) -> "Driven":
        """Begin to schedule what is there."""
        return Driven(self, self.platform(scheduler, kind, **options), scheduler)

    def platform(
        self, scheduler: Scheduler, kind: type[KubernetesPlatform] = KubernetesPlatform, **options: Any
    ) -> KubernetesPlatform:
        """See what is there."""
        for one in (Node, DeviceClass, ResourceSlice, ResourceClaim, Pod):
            self.told.put(Synced(one, frozenset(key for known, key in self.objects if known is one)))
        return kind(self, "poolwise", scheduler, self, **options)

    # Actions

    def start(self, run: int, pods: Sequence[PodStart]) -> None:
        self.started.append((run, tuple(pods)))
        if self.binds:
            self.come_true(run, pods)

    def come_true(self, run: int, pods: Sequence[PodStart]) -> None:
        """Write what a start writes, and tell so."""
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
            pod = self.get(Pod, start.pod.metadata.key)
            spec = msgspec.structs.replace(pod.spec, node_name=start.node)
            self.put(msgspec.structs.replace(pod, spec=spec, status=msgspec.structs.replace(pod.status, phase="Running")))
        self.told.put(Bound(run))

    def stop(self, pods: Sequence[Pod], reason: str) -> None:
        self.stopped += [(pod.metadata.key, reason) for pod in pods]

    def release_claim(self, claim: ResourceClaim, consumer: str) -> None:
        self.given_back.append((claim.metadata.key, consumer))
        now = self.get(ResourceClaim, claim.metadata.key)
        users = [user for user in now.status.reserved_for if user.uid != consumer]
        allocation = now.status.allocation if users else None
        status = msgspec.structs.replace(now.status, reserved_for=users, allocation=allocation)
        self.put(msgspec.structs.replace(now, status=status))

    def make(self, claim: ExtendedClaim) -> None:
        self.add(claim.body())
        pod = self.get(Pod, claim.pod.metadata.key)
        made = msgspec.convert(claim.status()["status"]["extendedResourceClaimStatus"], ExtendedClaimName)
        self.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, extended_resource_claim_status=made)))

    def say(self, pod: Pod, why: str) -> None:
        self.said[pod.metadata.key] = why

    def note(self, mirror: ClusterCache, notes: Mapping[str, str]) -> None:
        self.said.update(notes)


class Driven:
    """A platform and its loop, driven batch by batch."""

    def __init__(self, cluster: PlayedCluster, platform: KubernetesPlatform, scheduler: Scheduler) -> None:
        self.cluster, self.platform = cluster, platform
        self.loop = Loop(platform, scheduler)
        self.loop.apply_events(next(platform.events()))
        self.settle()

    def settle(self) -> "Driven":
        """Take all that has been told."""
        while not self.cluster.told.empty():
            told = [self.cluster.told.get() for _ in range(self.cluster.told.qsize())]
            if (batch := self.platform.batch(told)) is not None:
                self.loop.apply_events(batch)
        return self

    def later(self) -> "Driven":
        """Let the time pass until a pass is due though nothing happened, and go on."""
        left = self.platform.clock.left
        assert left is not None, "no pass is due"
        time.sleep(left + 0.01)
        if (batch := self.platform.batch([])) is not None:
            self.loop.apply_events(batch)
        return self.settle()

    def nodes(self) -> dict[str, str]:
        """Pod -> its node, of those that have one."""
        return {
            thing.metadata.name: thing.spec.node_name
            for (kind, _), thing in self.cluster.objects.items()
            if kind is Pod and thing.spec.node_name
        }
