"""What is to be written to start pods, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.objects import Allocation, Pod, ResourceClaim


@dataclass(frozen=True, slots=True)
class ClaimWrite:
    """A claim that a pod needs.

    Attributes
    ----------
    claim : as it was seen
    allocation : the devices that it is to have; None where it has some
    """

    claim: ResourceClaim
    allocation: Allocation | None


@dataclass(frozen=True, slots=True)
class PodStart:
    """A pod and where it goes.

    Attributes
    ----------
    pod : as it was seen
    node : name
    claims : in the order of the pod
    nominate : whether the node is written to the pod first, since no allocation names it
    """

    pod: Pod
    node: str
    claims: tuple[ClaimWrite, ...] = ()
    nominate: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """All pods of a run have their nodes."""

    run: int


@dataclass(frozen=True, slots=True)
class NotBound:
    """A start failed.

    Attributes
    ----------
    reason : why
    bound : keys of the pods that have a node nevertheless
    failed : devices that could not be attached
    """

    run: int
    reason: str
    bound: tuple[str, ...] = ()
    failed: tuple[DeviceId, ...] = ()


class StartFailed(Exception):
    """A start cannot be made real."""

    def __init__(self, reason: str, failed: Sequence[DeviceId] = ()) -> None:
        super().__init__(reason)
        self.failed = tuple(failed)


def pod_path(pod: Pod) -> str:
    """Where a pod is."""
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def claim_path(claim: ResourceClaim) -> str:
    """Where a claim is."""
    return f"/apis/resource.k8s.io/v1/namespaces/{claim.metadata.namespace}/resourceclaims/{claim.metadata.name}"
