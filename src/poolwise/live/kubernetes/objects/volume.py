"""Volumes, claims for them, and storage classes."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.meta import ApiRecord, Meta
from poolwise.live.kubernetes.objects.selectors import NodeSelector, Requirement


class VolumeAffinity(ApiRecord, frozen=True):
    """Nodes on which a volume can be used."""

    required: NodeSelector | None = None


class VolumeSpec(ApiRecord, frozen=True):
    node_affinity: VolumeAffinity | None = None


class PersistentVolume(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: VolumeSpec = VolumeSpec()


class VolumeClaimSpec(ApiRecord, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] = []


class VolumeClaimStatus(ApiRecord, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()

    @property
    def is_bound(self) -> bool:
        """True if a volume is bound to the claim."""
        return self.status.phase == "Bound"


class TopologyTerm(ApiRecord, frozen=True):
    """Labels of nodes; all of them must match."""

    match_label_expressions: list[Requirement] = []


class StorageClass(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologyTerm] = []
