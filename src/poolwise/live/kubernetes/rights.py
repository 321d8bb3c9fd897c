"""Rights of the scheduler's service account, as `deploy/kubernetes/` grants them, and the consequence of lacking each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

READ = ("list", "watch")


@dataclass(frozen=True)
class Right:
    """A rule of a role."""

    group: str  # API group, "" for the core
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    effect: str  # what does not work without it
    of_lease: bool = False  # whether it concerns leases in one namespace
    named: bool = False  # whether it concerns only the lease with the scheduler's name

    def each(self) -> Iterator[tuple[str, str]]:
        """Yield (resource, verb)."""
        yield from ((resource, verb) for resource in self.resources for verb in self.verbs)


_DRA, _CLAIMS = "resource.k8s.io", "pods that claim devices do not start"

SHADOW_RIGHTS: tuple[Right, ...] = (
    Right("", ("nodes", "pods"), READ, "no pod is scheduled"),
    Right("", ("namespaces",), READ, "affinity terms with a namespaceSelector match no pod"),
    Right(_DRA, ("resourceslices", "deviceclasses", "resourceclaims"), READ, "no pod is scheduled"),
    Right(_DRA, ("devicetaintrules",), READ, "devices that a DeviceTaintRule takes out of service are allocated"),
    Right("scheduling.k8s.io", ("podgroups",), READ, "pods of a PodGroup do not start"),
    Right("", ("persistentvolumes", "persistentvolumeclaims"), READ, "pods with volume claims do not start"),
    Right("storage.k8s.io", ("storageclasses",), READ, "pods with volume claims that are not bound do not start"),
)
"""Rules of `shadow.yaml`: read access, also for a scheduler in shadow mode."""

SCHEDULER_RIGHTS: tuple[Right, ...] = (
    *SHADOW_RIGHTS,
    Right("", ("pods",), ("get",), "a binding without a response is not verified, and its pod may wait until a restart"),
    Right("", ("pods/binding",), ("create",), "no pod starts"),
    Right("", ("pods/status",), ("patch",), "pods with claims of several nodes do not start, and no pod gets a condition"),
    Right("", ("pods/eviction",), ("create",), "policies cannot stop runs, and incomplete gangs keep their nodes"),
    Right("", ("persistentvolumeclaims",), ("patch",), "WaitForFirstConsumer volumes are not provisioned"),
    Right("", ("persistentvolumes",), ("get",), "pods with WaitForFirstConsumer volumes do not start"),
    Right("events.k8s.io", ("events",), ("create",), "pods get no events"),
    Right(_DRA, ("resourceclaims",), ("get", "patch"), _CLAIMS),
    Right(_DRA, ("resourceclaims",), ("create",), "pods with extended resources that devices back do not start"),
    Right(_DRA, ("resourceclaims/status",), ("patch",), _CLAIMS),
    Right(_DRA, ("resourceclaims/binding",), ("patch",), f"{_CLAIMS} on Kubernetes 1.36 and later"),
)
"""Rules of the cluster role in `rbac.yaml`."""

LEASE_RIGHTS: tuple[Right, ...] = (
    Right("coordination.k8s.io", ("leases",), ("create",), "the scheduler cannot create its lease, and exits", of_lease=True),
    Right(
        "coordination.k8s.io",
        ("leases",),
        ("get", "update"),
        "the scheduler cannot hold its lease, and exits",
        of_lease=True,
        named=True,
    ),
)
"""Rules of the role for the lease in `rbac.yaml`."""
