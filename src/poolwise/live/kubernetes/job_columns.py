"""Job table of a cluster: the requests of each job for the resources that the scheduler models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

import numpy as np

from poolwise.arrays import IntArray
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.demand import shareable
from poolwise.live.kubernetes.machine import (
    BANDWIDTH,
    CLASS,
    CONSTRAINT,
    KIND,
    MEMORY,
    NODES,
    PRIORITY,
    PROFILE,
    STORAGE,
    MachineMapping,
    supports_resource,
)
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.quantity import requested_amount
from poolwise.live.logs import log_event
from poolwise.model import JobTable


class JobColumns:
    """Builds job tables. Resources that the scheduler does not model get no column; `epoch` is ns since 1970 of time 0."""

    def __init__(self, cache: ClusterCache, scheduler: Scheduler, epoch: int) -> None:
        self._cache, self._scheduler, self._epoch = cache, scheduler, epoch
        self._mapping, self._classes = MachineMapping.empty(), dict[str, str]()
        self._columns: tuple[str, ...] = ()
        self._known: dict[str, bool] = {}  # resource -> whether the scheduler models it on the current machine
        self._logged: set[str] = set()

    def rebuild(self, mapping: MachineMapping, classes: Mapping[str, str], jobs: Sequence[PodJob]) -> None:
        """Choose the columns that these jobs need on a machine; `classes` maps each device class to its type."""
        self._mapping, self._classes = mapping, dict(classes)
        self._known.clear()
        self._columns = self._resources(jobs)

    def supports(self, jobs: Sequence[PodJob]) -> bool:
        """Return whether the columns and node sets cover the requests of more jobs."""
        if any(job.demand.constraints not in self._mapping.sets for job in jobs) or not self._has_single_types(jobs):
            return False
        return set(self._resources(jobs)) <= set(self._columns)

    def includes(self, resource: str) -> bool:
        """Return whether the tables have a column for a resource."""
        return resource in self._columns

    def table(self, jobs: Sequence[PodJob]) -> JobTable:
        """Return the rows of jobs."""

        def column(values: Iterable[int]) -> IntArray:
            return np.array(list(values), dtype=np.int64)

        requested = [self._requests_of(job) for job in jobs]
        tasks = column(len(job.pods) for job in jobs)
        if self._mapping.view == "whole":
            own = self._mapping.machine.local_memory if len(self._mapping.nodes) else 0
            pooled = [row.get("pool", 0) for row in requested]
            memory = column(own + p if p else min(row.get(MEMORY, 0), own) for row, p in zip(requested, pooled, strict=True))
            requests, tasks = {NODES: tasks, MEMORY: memory}, np.ones_like(tasks)
        else:
            requests = {name: column(row.get(name, 0) for row in requested) for name in self._columns}
        profiles = {PROFILE: np.array([job.profile for job in jobs], dtype=object)} if len(self._cache.names) > 1 else {}
        return JobTable(
            np.zeros(len(jobs), dtype=np.int64),
            column(job.submitted - self._epoch for job in jobs),
            column(job.demand.requested for job in jobs),
            tasks,
            requests,
            {
                CONSTRAINT: np.array([self._mapping.sets.get(job.demand.constraints, "") for job in jobs], dtype=object),
                PRIORITY: column(job.priority for job in jobs),
                CLASS: column(-job.priority for job in jobs),
                KIND: np.array([job.kind for job in jobs], dtype=object),
                **profiles,
            },
            draw=column(job.draw for job in jobs),
            name=[job.name for job in jobs],
            epoch=self._epoch,
        )

    def _has_single_types(self, jobs: Sequence[PodJob]) -> bool:
        """Return whether each request of the jobs chooses from devices of one known type."""
        claims = (self._cache.claims.get(key) for job in jobs for keys in job.claims for key in keys)
        for claim in claims:
            for request in claim.spec.devices.requests if claim is not None else ():
                names = [w.device_class_name for w in request.alternatives if w.device_class_name in self._cache.classes]
                if len({self._classes.get(name) for name in names}) > 1 or any(name not in self._classes for name in names):
                    return False
        return True

    def _resources(self, jobs: Sequence[PodJob]) -> tuple[str, ...]:
        """Return the resources that the jobs request and the scheduler models."""
        requested = {name for job in jobs for name, amount in self._requests_of(job).items() if amount}
        if self._mapping.view == "whole":
            self._log_unmodeled(requested - {"cores", MEMORY, "pods", "pool"})
            return (NODES, MEMORY)
        return ("cores", *sorted(name for name in requested if name != "cores" and self._is_modeled(name)))

    def _is_modeled(self, name: str) -> bool:
        if not self._mapping.nodes:
            return False  # nothing can be placed; checked again once there are nodes
        if name not in self._known:
            self._known[name] = supports_resource(self._mapping.machine, self._scheduler, name)
            if not self._known[name]:
                self._log_unmodeled({name})
        return self._known[name]

    def _log_unmodeled(self, names: Set[str]) -> None:
        """Log each resource that the scheduler does not model, once."""
        for name in sorted(names - self._logged):
            log_event("resource_not_modeled", resource=name, then="capacity is checked when pods start")
        self._logged |= names

    def _requests_of(self, job: PodJob) -> dict[str, int]:
        """Return the requests of one task for node resources and devices by type; if claims of pods differ, the smallest."""
        first, *others = (self._claimed_devices(keys, job.unallocated) for keys in job.claims)
        requested = Counter({"cores": 0, **job.demand.amounts})
        requested.update({name: min([amount, *(claimed[name] for claimed in others)]) for name, amount in first.items()})
        return requested

    def _claimed_devices(self, keys: Sequence[str], unallocated: Collection[str]) -> Counter[str]:
        """Count the devices by type that a pod's claims request. Shareable claims count only if they are in `unallocated`."""
        requested = Counter[str]()
        for key in keys:
            claim = self._cache.claims.get(key)
            if claim is not None and key not in unallocated and shareable(claim):
                continue
            for request in claim.spec.devices.requests if claim is not None else ():
                best = request.alternatives[0]
                kind = self._classes.get(best.device_class_name)
                if kind is None:
                    continue
                amounts = best.capacity.requests
                if BANDWIDTH in amounts or STORAGE in amounts or "space" in amounts:
                    for name, text in amounts.items():
                        resource = BANDWIDTH if name == BANDWIDTH else STORAGE
                        requested[resource] += best.count * requested_amount(name, text)
                elif MEMORY in amounts:
                    requested["pool"] += best.count * requested_amount(MEMORY, amounts[MEMORY])
                else:
                    requested[kind] += best.count
        return requested
