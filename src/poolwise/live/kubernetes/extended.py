"""Extended resources backed by devices, and the claim that a scheduler creates for a pod that requests them.

A container requests `example.com/gpu: 2` like any resource; a device class backs it through its `extendedResourceName`. The
pod's status maps each resource of each container to a request of the claim (Kubernetes 1.36, KEP-5004).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from poolwise.live.kubernetes.objects.claim import FINALIZER, DeviceRequest, ExactRequest
from poolwise.live.kubernetes.objects.device import DeviceClass
from poolwise.live.kubernetes.objects.pod import Container, Pod
from poolwise.live.kubernetes.quantity import parse_quantity

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Prefix of the implicit extended resource of a device class; the class name follows."""
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


def device_class_of(resource: str, classes: Iterable[DeviceClass]) -> str | None:
    """Return the class that backs a resource: of several, the most recently created one, then the first by name."""
    named = [kind for kind in classes if resource in (kind.spec.extended_resource_name, IMPLICIT_PREFIX + kind.metadata.name)]
    youngest = max((kind.metadata.creation_timestamp for kind in named), default="")
    return min((kind.metadata.name for kind in named if kind.metadata.creation_timestamp == youngest), default=None)


@dataclass(frozen=True)
class ExtendedClaim:
    """A claim for the extended resources of a pod, to be created by the scheduler."""

    pod: Pod  # owner of the claim
    requests: tuple[DeviceRequest, ...]  # by name
    mappings: tuple[tuple[str, str, str], ...]  # (container, resource, request name) of each resource that a container requests

    @property
    def name(self) -> str:
        """Name of the claim, deterministic so that creating it twice fails."""
        meta = self.pod.metadata
        return f"{meta.name[:200]}-extended-resources-{meta.uid.partition('-')[0]}"

    def body(self) -> dict[str, Any]:
        """Return the claim; its pod is the controller owner, so that garbage collection deletes it with the pod."""
        meta = self.pod.metadata
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": self.name,
                "namespace": meta.namespace,
                "annotations": {ANNOTATION: "true"},
                "finalizers": [FINALIZER],
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": msgspec.to_builtins(self.requests)}},
        }

    def status(self) -> dict[str, Any]:
        """Return the patch of the pod's status that names the claim."""
        mappings = [
            {"containerName": container, "resourceName": resource, "requestName": request}
            for container, resource, request in self.mappings
        ]
        made = {"resourceClaimName": self.name, "requestMappings": mappings}
        return {"metadata": {"uid": self.pod.metadata.uid}, "status": {"extendedResourceClaimStatus": made}}


def extended_claim(pod: Pod, device_backed: Mapping[str, str]) -> ExtendedClaim:
    """Return the claim for a pod's device-backed resources; `device_backed` maps each resource to its device class.

    Each long-running container gets its own request. Init containers, which terminate before the next container starts, reuse
    the devices of later containers; if those are too few, they share one more request.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    requests: list[DeviceRequest] = []
    mappings: list[tuple[str, str, str]] = []
    for resource, kind in sorted(device_backed.items()):
        counts = {k: count for k, container in enumerate(containers) if (count := _count(container, resource))}
        name = {k: f"container-{k}-request-{sorted(containers[k].resources.requests).index(resource)}" for k in counts}
        long_running = [k for k in counts if k >= len(pod.spec.init_containers) or containers[k].restart_policy == "Always"]
        init_only = [k for k in counts if k not in long_running]
        requests += [_request(name[k], kind, counts[k]) for k in long_running]
        mappings += [(containers[k].name, resource, name[k]) for k in long_running]
        missing = {k: counts[k] - sum(counts[later] for later in long_running if later > k) for k in init_only}
        worst = max(init_only, key=lambda k: missing[k], default=-1)
        if worst >= 0 and missing[worst] > 0:
            requests.append(_request(name[worst], kind, missing[worst]))
        for k in init_only:
            left = counts[k]
            for later in (later for later in long_running if later > k):
                if left > 0:
                    mappings.append((containers[k].name, resource, name[later]))
                    left -= counts[later]
            if left > 0:
                mappings.append((containers[k].name, resource, name[worst]))
    return ExtendedClaim(pod, tuple(sorted(requests, key=lambda request: request.name)), tuple(mappings))


def _request(name: str, kind: str, count: int) -> DeviceRequest:
    return DeviceRequest(name=name, exactly=ExactRequest(device_class_name=kind, count=count))


def _count(container: Container, resource: str) -> int:
    return int(parse_quantity(container.resources.requests.get(resource, "0")))
