"""Fields of pods that affect scheduling: applied, or refused with the field and a remedy. No field is ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.pod_group import PodGroup

ELSEWHERE = "remove it, or let kube-scheduler place the pod"
_DISKS = {
    "gce_persistent_disk": "gcePersistentDisk",
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "cinder": "cinder",
    "iscsi": "iscsi",
    "rbd": "rbd",
    "vsphere_volume": "vsphereVolume",
}
"""Volumes of which a node may hold a limited number, or which only one node may use at a time."""


@dataclass(frozen=True)
class PodFeature:
    """One or several fields of pods."""

    name: str  # as the documentation shows it
    support: Literal["applied", "refused", "reported"]
    effect: str  # what the scheduler does with it; for refused fields, the remedy
    # for refused fields: the paths of a pod that use it
    find: Callable[[Pod], Iterable[str]] = lambda pod: ()


def _comparing_tolerations(pod: Pod) -> Iterator[str]:
    yield from (
        f"spec.tolerations with operator {toleration.operator}"
        for toleration in pod.spec.tolerations
        if toleration.operator in ("Lt", "Gt")
    )


def _disks(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        yield from (f"spec.volumes[{volume.name}].{name}" for key, name in _DISKS.items() if getattr(volume, key) is not None)


FEATURES: tuple[PodFeature, ...] = (
    PodFeature("`nodeSelector`, required node affinity", "applied", "restricts the nodes"),
    PodFeature("taints of nodes, tolerations", "applied", "restricts the nodes; tolerations may be added to a waiting pod"),
    PodFeature("requests of containers, sidecars and init containers, overhead", "applied", "counted as in kube-scheduler"),
    PodFeature(
        "`podAffinity`, required", "applied", "restricts the nodes; the first pod of a group that selects itself may start"
    ),
    PodFeature(
        "`podAntiAffinity`, required", "applied", "restricts the nodes of the pod, and those of the pods that it selects"
    ),
    PodFeature(
        "topology spread, `DoNotSchedule`",
        "applied",
        "restricts the nodes; the default constraints of a cluster are not applied",
    ),
    PodFeature("`PreferNoSchedule` taints of nodes", "applied", "a [preference](#preferences) of weight 3"),
    PodFeature("node affinity, preferred", "applied", "a [preference](#preferences) of weight 2"),
    PodFeature("`podAffinity`, `podAntiAffinity`, preferred", "applied", "a [preference](#preferences) of weight 2"),
    PodFeature("topology spread, `ScheduleAnyway`", "applied", "a [preference](#preferences) of weight 2"),
    PodFeature(
        "`hostPort`, also through `hostNetwork`",
        "applied",
        "no two pods on a node use the same port; 0.0.0.0 means every address",
    ),
    PodFeature("in-place resize", "applied", "the largest of the desired, admitted and applied amounts counts"),
    PodFeature("`resourceClaims`, extended resources", "applied", "see [devices](#limits)"),
    PodFeature("device taints, `DeviceTaintRule`", "applied", "tainted devices are allocated only to claims that tolerate it"),
    PodFeature(
        "volume claims, also ephemeral ones",
        "applied",
        "node affinity and zone of bound volumes restrict the nodes; `WaitForFirstConsumer` volumes are provisioned on the "
        "chosen node",
    ),
    PodFeature("`schedulingGates`", "applied", "the pod waits until they are removed"),
    PodFeature("`schedulingGroup` with a gang, or the group labels", "applied", "its pods start together"),
    PodFeature("`priority`", "applied", "a column that queue orders may use; that of a `PodGroup` replaces those of its pods"),
    PodFeature(
        "preemption by `priority`",
        "reported",
        "no pod is evicted for another, and the condition says so",
    ),
    PodFeature("tolerations with `Lt` or `Gt`", "refused", "use Equal or Exists", _comparing_tolerations),
    PodFeature(
        "volume claims with `ReadWriteOncePod`, or `WaitForFirstConsumer` without a provisioner",
        "refused",
        "use `ReadWriteOnce`; set `volumeName` in the claim",
    ),
    PodFeature("cloud disks, `iscsi`, `rbd`", "refused", "use a volume that does not bind to nodes", _disks),
    PodFeature("topology and claims of a `PodGroup`", "refused", ELSEWHERE),
)
"""All fields of pods that kube-scheduler 1.36 considers."""


def unsupported_fields(pod: Pod, group: PodGroup | None = None) -> Iterator[tuple[str, str]]:
    """Yield fields of a pod, or of its group, that this scheduler does not support, each with a remedy."""
    for feature in FEATURES:
        for path in feature.find(pod):
            yield path, feature.effect
    if group is not None and group.spec.scheduling_constraints:
        yield f"spec.schedulingConstraints of PodGroup {group.metadata.name}", ELSEWHERE
    if group is not None and group.spec.resource_claims:
        yield f"spec.resourceClaims of PodGroup {group.metadata.name}", ELSEWHERE
