"""The job table of a cluster: what each job asks for, as far as the scheduler looks after it."""

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
    STORAGE,
    Shape,
    knows,
)
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.quantity import needed
from poolwise.live.logs import say
from poolwise.model import JobTable


class JobColumns:
    """Makes job tables.

    Parameters
    ----------
    mirror
        The cluster.
    scheduler
        What it does not look after has no column.
    epoch
        Ns since 1970 of time 0.
    """

    def __init__(self, mirror: ClusterCache, scheduler: Scheduler, epoch: int) -> None:
        self._mirror, self._scheduler, self._epoch = mirror, scheduler, epoch
        self._shape, self._classes = Shape.of_nothing(), dict[str, str]()
        self._columns: tuple[str, ...] = ()
        self._known: dict[str, bool] = {}  # of the machine as it is
        self._told: set[str] = set()

    def anew(self, shape: Shape, classes: Mapping[str, str], jobs: Sequence[PodJob], edition: int) -> JobTable:
        """Make a table with the columns that these jobs need; `classes` says of what type the devices of each class are."""
        self._shape, self._classes = shape, dict(classes)
        self._known.clear()
        self._columns = self._resources(jobs)
        return self.table(jobs, edition)

    def can_hold(self, jobs: Sequence[PodJob]) -> bool:
        """Whether there is a column, or a set of nodes, for all that some more jobs ask for."""
        if any(job.demand.where not in self._shape.sets for job in jobs) or not self._knows_devices(jobs):
            return False
        return set(self._resources(jobs)) <= set(self._columns)

    def table(self, jobs: Sequence[PodJob], edition: int) -> JobTable:
        """Make the rows of some jobs."""

        def column(values: Iterable[int]) -> IntArray:
            return np.array(list(values), dtype=np.int64)

        asked = [self._asked(job) for job in jobs]
        tasks = column(len(job.pods) for job in jobs)
        if self._shape.view == "whole":
            own = self._shape.machine.local_memory if len(self._shape.nodes) else 0
            pooled = [row.get("pool", 0) for row in asked]
            memory = column(own + p if p else min(row.get(MEMORY, 0), own) for row, p in zip(asked, pooled, strict=True))
            requests, tasks = {NODES: tasks, MEMORY: memory}, np.ones_like(tasks)
        else:
            requests = {name: column(row.get(name, 0) for row in asked) for name in self._columns}
        return JobTable(
            np.zeros(len(jobs), dtype=np.int64),
            column(job.submitted - self._epoch for job in jobs),
            column(job.demand.requested for job in jobs),
            tasks,
            requests,
            {
                CONSTRAINT: np.array([self._shape.sets.get(job.demand.where, "") for job in jobs], dtype=object),
                PRIORITY: column(job.priority for job in jobs),
                CLASS: column(-job.priority for job in jobs),
                KIND: np.array([job.kind for job in jobs], dtype=object),
            },
            draw=column(job.draw for job in jobs),
            name=[job.name for job in jobs],
            epoch=self._epoch,
            edition=edition,
        )

    def _knows_devices(self, jobs: Sequence[PodJob]) -> bool:
        """Whether the devices that jobs choose from are of one type each."""
        claims = (self._mirror.claims.get(key) for job in jobs for keys in job.claims for key in keys)
        for claim in claims:
            for request in claim.spec.devices.requests if claim is not None else ():
                names = [w.device_class_name for w in request.alternatives if w.device_class_name in self._mirror.classes]
                if len({self._classes.get(name) for name in names}) > 1 or any(name not in self._classes for name in names):
                    return False
        return True

    def _resources(self, jobs: Sequence[PodJob]) -> tuple[str, ...]:
        """Names of the requests of jobs that the scheduler looks after."""
        asked = {name for job in jobs for name, amount in self._asked(job).items() if amount}
        if self._shape.view == "whole":
            self._tell(asked - {"cores", MEMORY, "pods", "pool"})
            return (NODES, MEMORY)
        return ("cores", *sorted(name for name in asked if name != "cores" and self._looked_after(name)))

    def _looked_after(self, name: str) -> bool:
        if not self._shape.nodes:
            return False  # nothing can be placed: it is asked when there are nodes again
        if name not in self._known:
            self._known[name] = knows(self._scheduler, self._shape.machine, name)
            if not self._known[name]:
                self._tell({name})
        return self._known[name]

    def _tell(self, names: Set[str]) -> None:
        """Log once of each resource that the scheduler does not count."""
        for name in sorted(names - self._told):
            say("not counted by the scheduler", resource=name, then="whether there is room is found when pods start")
        self._told |= names

    def _asked(self, job: PodJob) -> dict[str, int]:
        """What one task of a job asks for: of a node, and devices by type.

        Where pods of a group claim different amounts it is the least of them: the start, which knows each pod, decides then.
        """
        first, *others = (self._claimed(keys, job.unmet) for keys in job.claims)
        asked = Counter({"cores": 0, **job.demand.amounts})
        asked.update({name: min([amount, *(claimed[name] for claimed in others)]) for name, amount in first.items()})
        return asked

    def _claimed(self, keys: Sequence[str], unmet: Collection[str]) -> Counter[str]:
        """Devices by type that claims of a pod ask for; none where pods may share a claim that is not one of those `unmet`."""
        asked = Counter[str]()
        for key in keys:
            claim = self._mirror.claims.get(key)
            if claim is not None and key not in unmet and shareable(claim):
                continue
            for request in claim.spec.devices.requests if claim is not None else ():
                best = request.alternatives[0]
                kind = self._classes.get(best.device_class_name)
                if kind is None:
                    continue
                amounts = best.capacity.requests
                if BANDWIDTH in amounts or STORAGE in amounts or "space" in amounts:
                    for name, text in amounts.items():
                        known = BANDWIDTH if name == BANDWIDTH else STORAGE
                        asked[known] += best.count * needed(name, text)
                elif MEMORY in amounts:
                    asked["pool"] += best.count * needed(MEMORY, amounts[MEMORY])
                else:
                    asked[kind] += best.count
        return asked
