"""Volume claims of pods: bound volumes restrict the nodes, and the others are provisioned on the node that is chosen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.node_constraints import selector_matches
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.volume import PersistentVolume, StorageClass

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation with the node on which a provisioner creates the volume of a claim."""
_LATE, _NO_PROVISIONER, _ONE_POD = "WaitForFirstConsumer", "kubernetes.io/no-provisioner", "ReadWriteOncePod"
_ZONE_LABELS = {
    f"{domain}/{kind}": f"topology.kubernetes.io/{kind}"
    for domain in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
    for kind in ("zone", "region")
}
"""Label of volumes and nodes -> current name of the label."""


@dataclass(frozen=True)
class VolumeProblem:
    """Why a pod with volume claims cannot be scheduled."""

    why: str
    field: str = ""  # of the pod, if its use is not supported; "" if the problem may resolve itself


def volume_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield (field, name of the claim) of the volumes of a pod that are claims."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"spec.volumes[{volume.name}].persistentVolumeClaim", volume.persistent_volume_claim.get("claimName", "")
        elif volume.ephemeral is not None:
            yield f"spec.volumes[{volume.name}].ephemeral", f"{pod.metadata.name}-{volume.name}"


def volume_problem(pod: Pod, cache: ClusterCache) -> VolumeProblem | None:
    """Return why the volume claims of a pod prevent its start on every node, None if they do not."""
    for field, name in volume_claims(pod):
        key = f"{pod.metadata.namespace}/{name}"
        claim = cache.volume_claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp:
            return VolumeProblem(f"volume claim {key} does not exist")
        owners = claim.metadata.owner_references
        if field.endswith("ephemeral") and not any(owner.uid == pod.metadata.uid for owner in owners):
            return VolumeProblem(f"volume claim {key} belongs to another owner")
        if _ONE_POD in claim.spec.access_modes:
            return VolumeProblem(f"volume claim {key} has the access mode {_ONE_POD}: use ReadWriteOnce", field)
        if claim.is_bound:
            if claim.spec.volume_name not in cache.volumes:
                return VolumeProblem(f"volume {claim.spec.volume_name} of claim {key} does not exist")
            continue
        kind = cache.storage_classes.get(claim.spec.storage_class_name or "")
        if claim.spec.volume_name or kind is None or kind.volume_binding_mode != _LATE:
            return VolumeProblem(f"volume claim {key} is not bound yet")
        if kind.provisioner == _NO_PROVISIONER:
            remedy = "set volumeName in the claim, or use a class with a provisioner"
            return VolumeProblem(
                f"volume claim {key} waits for its first pod, and its class has no provisioner: {remedy}", field
            )
    return None


class VolumeFilter:
    """The nodes on which the volumes of a pod can be used or provisioned; `avoided` are failed attempts (claim uid, node)."""

    def __init__(self, pod: Pod, cache: ClusterCache, avoided: Mapping[tuple[str, str], int]) -> None:
        keys = (f"{pod.metadata.namespace}/{name}" for _, name in volume_claims(pod))
        claims = [claim for key in keys if (claim := cache.volume_claims.get(key)) is not None]
        self.unbound = [claim for claim in claims if not claim.is_bound]
        self._volumes = [(claim, cache.volumes.get(claim.spec.volume_name)) for claim in claims if claim.is_bound]
        self._classes, self._nodes, self._avoided = cache.storage_classes, cache.nodes, avoided

    def problem(self, node: Node) -> str | None:
        """Return why a node cannot use or provision the volumes, or None if it can."""
        name = node.metadata.name
        for claim, volume in self._volumes:
            if volume is None or not volume_serves(volume, node):
                return f"volume {claim.spec.volume_name} of claim {claim.metadata.key} cannot be used on node {name}"
        now = time.monotonic_ns()
        for claim in self.unbound:
            if self._avoided.get((claim.metadata.uid, name), 0) > now:
                return f"provisioning volume claim {claim.metadata.key} on node {name} failed"
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected in self._nodes and selected != name and self._avoided.get((claim.metadata.uid, selected), 0) <= now:
                return f"volume claim {claim.metadata.key} is being provisioned on node {selected}"
            kind = self._classes.get(claim.spec.storage_class_name or "")
            if kind is None or not _in_topologies(kind, node):
                return f"storage class {claim.spec.storage_class_name} provisions no volumes on node {name}"
        return None


def volume_serves(volume: PersistentVolume, node: Node) -> bool:
    """Return whether a volume can be used on a node, by its node affinity and its zone labels.

    As in the plugin VolumeZone of kube-scheduler, zone labels of volumes do not restrict nodes without any zone label.
    """
    affinity = volume.spec.node_affinity
    if affinity is not None and not selector_matches(affinity.required, node):
        return False
    has = node.metadata.labels
    zones = {key: volume.metadata.labels[key].split("__") for key in _ZONE_LABELS if key in volume.metadata.labels}
    if not zones or not any(key in has for key in _ZONE_LABELS):
        return True
    return all(has.get(key, has.get(_ZONE_LABELS[key])) in values for key, values in zones.items())


def _in_topologies(kind: StorageClass, node: Node) -> bool:
    terms = kind.allowed_topologies
    return not terms or any(
        all(node.metadata.labels.get(expression.key) in expression.values for expression in term.match_label_expressions)
        for term in terms
    )
