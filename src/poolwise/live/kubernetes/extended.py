"""Extended resources that a class of devices offers, and the claim that a scheduler makes for a pod that asks for them.

A container asks for `example.com/gpu: 2` as for any resource; a class of devices says by its `extendedResourceName` that its
devices are meant. The pod's status says which request of the claim stands for which resource of which container (Kubernetes
1.36, KEP-5004).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.live.kubernetes.objects import FINALIZER, Container, DeviceClass, Pod
from poolwise.live.kubernetes.quantity import parse_quantity

IMPLIED = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class, this is a resource that stands for its devices whatever else the class says."""
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


def class_of(resource: str, classes: Iterable[DeviceClass]) -> str | None:
    """The class whose devices a resource stands for: of several that name it the youngest, of these the first by name."""
    named = [kind for kind in classes if resource in (kind.spec.extended_resource_name, IMPLIED + kind.metadata.name)]
    youngest = max((kind.metadata.creation_timestamp for kind in named), default="")
    return min((kind.metadata.name for kind in named if kind.metadata.creation_timestamp == youngest), default=None)


@dataclass(frozen=True)
class DeviceAsk:
    """A request of a claim, and the containers that use its devices.

    Attributes
    ----------
    name : of the request
    device_class, count : what it asks for
    """

    name: str
    device_class: str
    count: int

    def written(self) -> dict[str, Any]:
        """The request as Kubernetes has it."""
        exactly = {"deviceClassName": self.device_class, "allocationMode": "ExactCount", "count": self.count}
        return {"name": self.name, "exactly": exactly}


@dataclass(frozen=True)
class ExtendedClaim:
    """The claim for the extended resources of a pod, which is still to be made.

    Attributes
    ----------
    pod : whose it is
    asks : its requests, by name
    uses : (container, resource, name of the request) of all that containers ask for
    """

    pod: Pod
    asks: tuple[DeviceAsk, ...]
    uses: tuple[tuple[str, str, str], ...]

    @property
    def name(self) -> str:
        """The same one each time, so that making it again makes no second one."""
        meta = self.pod.metadata
        return f"{meta.name[:200]}-extended-resources-{meta.uid.partition('-')[0]}"

    def body(self) -> dict[str, Any]:
        """The claim: its pod controls it, so that it is deleted with the pod."""
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
            "spec": {"devices": {"requests": [ask.written() for ask in self.asks]}},
        }

    def status(self) -> dict[str, Any]:
        """What the pod's status says of the claim."""
        uses = [
            {"containerName": container, "resourceName": resource, "requestName": request}
            for container, resource, request in self.uses
        ]
        made = {"resourceClaimName": self.name, "requestMappings": uses}
        return {"metadata": {"uid": self.pod.metadata.uid}, "status": {"extendedResourceClaimStatus": made}}


def extended_claim(pod: Pod, backed: Mapping[str, str]) -> ExtendedClaim:
    """The claim for a pod's resources that stand for devices; `backed` is resource -> class of devices.

    Each container that stays has a request of its own. Containers that are over before the next begins use the devices of those
    that come after them, and share one more request where these are too few.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    asks: list[DeviceAsk] = []
    uses: list[tuple[str, str, str]] = []
    for resource, kind in sorted(backed.items()):
        asked = {k: count for k, container in enumerate(containers) if (count := _count(container, resource))}
        name = {k: f"container-{k}-request-{sorted(containers[k].resources.requests).index(resource)}" for k in asked}
        stay = [k for k in asked if k >= len(pod.spec.init_containers) or containers[k].restart_policy == "Always"]
        brief = [k for k in asked if k not in stay]
        asks += [DeviceAsk(name[k], kind, asked[k]) for k in stay]
        uses += [(containers[k].name, resource, name[k]) for k in stay]
        lacking = {k: asked[k] - sum(asked[later] for later in stay if later > k) for k in brief}
        worst = max(brief, key=lambda k: lacking[k], default=-1)
        if worst >= 0 and lacking[worst] > 0:
            asks.append(DeviceAsk(name[worst], kind, lacking[worst]))
        for k in brief:
            left = asked[k]
            for later in (later for later in stay if later > k):
                if left > 0:
                    uses.append((containers[k].name, resource, name[later]))
                    left -= asked[later]
            if left > 0:
                uses.append((containers[k].name, resource, name[worst]))
    return ExtendedClaim(pod, tuple(sorted(asks, key=lambda ask: ask.name)), tuple(uses))


def _count(container: Container, resource: str) -> int:
    return int(parse_quantity(container.resources.requests.get(resource, "0")))
