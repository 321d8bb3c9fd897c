"""Jobs that no node could run even without other pods: they stay out of the queue until the cluster changes.

A pass therefore takes as long with thousands of them as without any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from poolwise.errors import InputError
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.device_allocation import Devices, allocate
from poolwise.live.kubernetes.devices import DeviceUsage
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.placement import request_key
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.state import ClusterState

MAX_ALLOCATIONS = 10_000
"""Maximum number of device allocations to try before the cluster changes; further requests count as feasible."""
_Shape = tuple[tuple[str, int], ...]  # allocatable amounts of a node


class Feasibility:
    """Infeasible jobs, with the reason of each.

    Usage, host ports, affinity, spread and volumes do not count, because other pods and volumes may change them. Equal requests
    are evaluated once until `reset`.
    """

    def __init__(self, cache: ClusterCache, state: ClusterState) -> None:
        self.infeasible: dict[PodJob, str] = {}
        self._cache, self._state = cache, state
        self._reasons: dict[bytes, str] = {}  # request of a pod -> why it is infeasible, "" if it is not
        self._shapes: dict[NodeConstraints, dict[_Shape, list[Node]]] = {}  # nodes that constraints allow
        self._allocations = 0  # tried since the last reset

    def withhold(self, job: PodJob) -> str:
        """Return why a job is infeasible, "" if it is not; remember it as infeasible, or forget it."""
        why = next((why for task in range(len(job.pods)) if (why := self._reason(job, task))), "")
        if why:
            self.infeasible[job] = why
        else:
            self.infeasible.pop(job, None)
        return why

    def forget(self, jobs: Iterable[PodJob]) -> None:
        """Forget jobs that no longer wait."""
        for job in jobs:
            self.infeasible.pop(job, None)

    def reset(self) -> list[PodJob]:
        """Evaluate all infeasible jobs again, after changes of nodes or devices; return those that have become feasible."""
        self._reasons.clear()
        self._shapes.clear()
        self._allocations = 0
        return [job for job in list(self.infeasible) if not self.withhold(job)]

    def _reason(self, job: PodJob, task: int) -> str:
        key = request_key(job, task, self._cache)
        if not key:  # a claim has devices already, or does not exist any more
            return self._node_reason(job)
        if key not in self._reasons:
            self._reasons[key] = self._node_reason(job) or self._device_reason(job, task)
        return self._reasons[key]

    def _node_reason(self, job: PodJob) -> str:
        """Return why no node has the amounts that the largest pod of a job needs, as its placement assumes for all pods."""
        amounts, shapes = job.demand.amounts, self._shapes_of(job.demand.constraints)
        if not self._state.mapping.nodes:
            return "the cluster has no nodes that could run jobs"
        if not shapes:
            return "no node matches the pod's node selector, affinity and tolerations"
        largest: dict[str, int] = {}
        for shape in shapes:
            has = dict(shape)
            if _has_all(has, amounts):
                return ""
            for name in amounts:
                largest[name] = max(largest.get(name, 0), has.get(name, 0))
        for name, wanted in amounts.items():
            if wanted > largest[name]:
                text = self._state.mapping.machine.amount_text
                return (
                    f"no node is large enough: needs {text(name, wanted)} {name}, the largest has {text(name, largest[name])}"
                )
        return f"no node has enough {', '.join(amounts)} at once"

    def _device_reason(self, job: PodJob, task: int) -> str:
        """Return why no node would have the devices if none were in use."""
        claims = [self._cache.claims[key] for key in job.claims[task]]
        if not any(claim.spec.devices.requests for claim in claims):
            return ""
        why, tried, unique = "", set[int](), count(-1, -1)
        for shape, nodes in self._shapes_of(job.demand.constraints).items():
            if not _has_all(dict(shape), job.demand.amounts):
                continue
            for node in nodes:
                key = self._cache.inventory.device_set_key(node)
                if (key := next(unique) if key is None else key) in tried:
                    continue
                tried.add(key)
                if not (why := self._shortage(claims, node)):
                    return ""
        return f"{why}, even if none were in use" if why else ""

    def _shortage(self, claims: Sequence[ResourceClaim], node: Node) -> str:
        """Return the shortage for claims on a node with unused devices; "" if there is none, or after too many evaluations."""
        self._allocations += 1
        if self._allocations > MAX_ALLOCATIONS:
            return ""
        try:
            allocation = allocate(claims, node, Devices(self._cache.inventory, DeviceUsage(), self._cache.classes))
        except InputError:  # the start reports it
            return ""
        return allocation if isinstance(allocation, str) else ""

    def _shapes_of(self, constraints: NodeConstraints) -> dict[_Shape, list[Node]]:
        """Return the nodes that constraints allow, by their allocatable amounts."""
        if constraints not in self._shapes:
            by_shape = self._shapes[constraints] = dict[_Shape, list[Node]]()
            for name in self._state.allowed_nodes(constraints):
                node = self._cache.nodes[name]
                by_shape.setdefault(tuple(self._state.allocatable(node).items()), []).append(node)
        return self._shapes[constraints]


def _has_all(has: Mapping[str, int], amounts: Mapping[str, int]) -> bool:
    return all(amount <= has.get(name, 0) for name, amount in amounts.items())
