"""Starts of pods: the planned writes, and their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolwise.live.kubernetes.objects.claim import Allocation, ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.volume import PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class ClaimWrite:
    """A claim of a pod that is being started."""

    claim: ResourceClaim  # as last observed
    allocation: Allocation | None  # devices to allocate; None if it already has an allocation


@dataclass(frozen=True, slots=True)
class VolumeWrite:
    """A volume claim that is provisioned on the node of a start."""

    claim: PersistentVolumeClaim  # as last observed
    node: Node


@dataclass(frozen=True, slots=True)
class PodStart:
    """A pod and its node."""

    pod: Pod  # as last observed
    node: str
    claims: tuple[ClaimWrite, ...] = ()  # claims in the order of the pod
    nominate: bool = False  # whether to set the pod's nominatedNodeName first, because no allocation names the node
    volumes: tuple[VolumeWrite, ...] = ()  # volume claims to provision on the node


@dataclass(frozen=True, slots=True)
class Bound:
    """All pods of a run are bound."""

    run: int


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The start of a run failed."""

    run: int
    reason: str
    bound: tuple[str, ...] = ()  # keys of the pods that were bound nevertheless
    failed: tuple[DeviceId, ...] = ()  # devices whose attachment failed
    lost: bool = False  # whether its node or devices no longer exist
    volumes: tuple[tuple[str, str], ...] = ()  # (claim uid, node) of volumes that could not be provisioned


class StartFailed(Exception):
    """A pod cannot be started.

    Attributes
    ----------
    failed : devices whose attachment failed
    lost : whether the node or devices of the start no longer exist
    volumes : (claim uid, node) of volumes that could not be provisioned
    """

    def __init__(
        self, reason: str, failed: Sequence[DeviceId] = (), *, lost: bool = False, volumes: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(reason)
        self.failed, self.lost, self.volumes = tuple(failed), lost, tuple(volumes)


def pod_path(pod: Pod) -> str:
    """Return the API path of a pod."""
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def claim_path(claim: ResourceClaim) -> str:
    """Return the API path of a claim."""
    return f"/apis/resource.k8s.io/v1/namespaces/{claim.metadata.namespace}/resourceclaims/{claim.metadata.name}"
