"""Jobs formed from pods: a single pod, or a gang whose pods start together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from poolwise.errors import InputError
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.demand import KIND, PodDemand, claim_keys, group_of, shareable
from poolwise.live.kubernetes.device_allocation import check_supported
from poolwise.live.kubernetes.extended import ExtendedClaim, extended_claim
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.pod_group import PodGroup
from poolwise.live.kubernetes.pod_features import unsupported_fields
from poolwise.live.kubernetes.volumes import volume_problem
from poolwise.quantities import SECOND, format_count

SETTLING = 3 * SECOND
"""Delay (ns) of messages about causes that usually resolve themselves: a missing claim, or missing pods of a group."""


class PodMessages:
    """Reasons why pods are not scheduled, with the time at which each is reported."""

    def __init__(self, clock: LiveClock) -> None:
        self.reasons: dict[str, str] = {}  # by pod
        self._clock = clock
        self._due: dict[str, int] = {}  # key -> time of the report (ns)

    def record(self, keys: Iterable[str], why: str, *, settling: bool = False) -> None:
        """Record why pods are not scheduled; with `settling`, delay the report so that only the final reason is written."""
        now = self._clock.now
        for key in keys:
            if self.reasons.get(key) != why:
                self.reasons[key] = why
                self._due[key] = self._due.get(key, now + SETTLING) if settling else now

    def forget(self, key: str) -> None:
        """Drop the reason of a pod that can be scheduled or is gone."""
        self.reasons.pop(key, None)
        self._due.pop(key, None)

    def pop_due(self) -> dict[str, str]:
        """Return the reasons that are due, and request a pass for the others."""
        reported = {key: self.reasons[key] for key, due in sorted(self._due.items()) if due <= self._clock.now}
        for key in reported:
            del self._due[key]
        if self._due:
            self._clock.request_pass(min(self._due.values()) - self._clock.now)
        return reported


@dataclass(eq=False)
class PodJob:
    """A waiting or running job."""

    name: str  # namespace/name of its pod or group
    pods: tuple[str, ...]  # keys of its pods, one per task
    uids: tuple[str, ...]  # uid of each pod
    demand: PodDemand  # maximum demand of its pods
    claims: tuple[tuple[str, ...], ...]  # keys of each pod's claims
    submitted: int  # ns since 1970
    class_name: str  # of the pod with the highest priority, or of its PodGroup
    priority: int = 0
    kind: str = ""  # kind of work, "" if not annotated
    profile: str = ""  # schedulerName of its pods
    # key -> uid of its shareable claims without devices, for which the job needs devices
    unallocated: Mapping[str, str] = field(default_factory=dict)
    row: int = -1  # in the job table
    draw: int = 0  # counter of random draws
    run: int | None = None  # number of its run, None while it waits
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # pod -> amounts of its node when the run began
    failures: int = 0  # number of consecutive failed starts
    request_keys: dict[int, bytes] = field(default_factory=dict, init=False)  # task -> cached `placement.request_key`
    not_before: int = 0  # earliest time of the next attempt, ns of the monotonic clock
    release_after: int = 0  # time at which reservations of another process are released, 0 without any


@dataclass
class JobChanges:
    """Changes of jobs."""

    arrived: list[PodJob] = field(default_factory=list)  # jobs that begin to wait
    withdrawn: list[PodJob] = field(default_factory=list)  # jobs that no longer wait
    altered: list[tuple[PodJob, PodJob]] = field(default_factory=list)  # (old, new) pairs of jobs whose request changed


class PodJobs:
    """Jobs of a cluster, updated as its pods change."""

    def __init__(self, cache: ClusterCache, clock: LiveClock) -> None:
        self.cache, self.messages = cache, PodMessages(clock)
        self.by_pod: dict[str, PodJob] = {}  # key of a pod -> its job
        self.partial_gangs: dict[str, list[str]] = {}  # group -> its pods with a node, for groups in which more pods must start
        self._missing_claims: list[ExtendedClaim] = []
        self._uids: dict[str, str] = {}  # key of a pod -> its uid at its last change
        self._claims_requested: dict[str, str] = {}  # pod -> uid, once the claim for its extended resources is requested
        self._completed_gangs: set[str] = set()  # groups that were complete at some time
        self._members: dict[str, set[str]] = {}  # group -> pods
        self._group: dict[str, tuple[str, int]] = {}  # pod -> group, its size by labels
        self._awaiting_claim: dict[str, set[str]] = {}  # missing claim -> pods that wait for it
        self._claim_users: dict[str, set[str]] = {}  # shareable claim -> pods with jobs that use it

    def jobs(self) -> set[PodJob]:
        """Return all jobs."""
        return set(self.by_pod.values())

    def waiting(self) -> set[PodJob]:
        """Return the jobs without a run."""
        return {job for job in self.by_pod.values() if job.run is None}

    def update_pods(self, pods: Iterable[str]) -> JobChanges:
        """Update jobs after changes of pods."""
        changes, groups = JobChanges(), set[str]()
        for key in sorted(pods):
            pod = self.cache.pods.get(key)
            if pod is None:
                self._claims_requested.pop(key, None)
            uid = pod.metadata.uid if pod is not None else ""
            if self._uids.pop(key, uid) != uid:
                self.messages.forget(key)  # its successor has no message yet
            if uid:
                self._uids[key] = uid
            named = group_of(pod) if pod is not None else None
            before = self._group.get(key)
            if before is not None and (named is None or named[0] != before[0]):
                groups.add(before[0])
                self._members[before[0]].discard(key)
                del self._group[key]
            if named is not None:
                self._group[key] = named
                self._members.setdefault(named[0], set()).add(key)
                groups.add(named[0])
            elif before is None or pod is None:
                self._update_pod(key, changes)
        for group in sorted(groups):
            self._update_group(group, changes)
        return changes

    def update_claims(self, claims: Iterable[str]) -> JobChanges:
        """Update jobs after changes of claims: pods may wait for a claim, and shareable claims gain or lose their devices."""
        claims = list(claims)
        changes = self.update_pods({pod for claim in claims for pod in self._awaiting_claim.pop(claim, ())})
        for key in sorted({pod for claim in claims for pod in self._claim_users.get(claim, ())}):
            job = self.by_pod.get(key)  # None if the claim is of an earlier pod of that key
            if job is not None and job.run is None and (unallocated := self._unallocated(job.claims)) != job.unallocated:
                now = replace(job, unallocated=unallocated, row=-1)
                self.by_pod.update(dict.fromkeys(now.pods, now))
                changes.altered.append((job, now))
        return changes

    def pop_missing_claims(self) -> list[ExtendedClaim]:
        """Return the claims that must be created before their pods can be scheduled, and clear the list."""
        missing, self._missing_claims = self._missing_claims, []
        return missing

    def retry_unscheduled(self) -> JobChanges:
        """Update jobs of all pods that are not scheduled."""
        return self.update_pods(list(self.messages.reasons))

    def adopt(self, pod: Pod) -> PodJob:
        """Return a job for a pod that already has a node; unsupported fields no longer matter."""
        keys = claim_keys(pod)
        claims = () if isinstance(keys, str) else tuple(key for key in keys if key in self.cache.claims)
        job = _job_of(pod.metadata.key, [pod], self.cache.demand(pod), (claims,), self._declared_group(pod))
        self.by_pod[pod.metadata.key] = job
        self.messages.forget(pod.metadata.key)
        return job

    def end(self, job: PodJob) -> None:
        """Remove a job; a pod that has taken the key of one of its pods keeps its own job."""
        for key, claims in zip(job.pods, job.claims, strict=True):
            current, kept = self.by_pod.get(key), tuple[str, ...]()
            if current is job:
                del self.by_pod[key]
            elif current is not None:
                kept = current.claims[current.pods.index(key)]
            for claim in {*claims} - {*kept}:
                if claim in self._claim_users:
                    self._claim_users[claim].discard(key)
                    if not self._claim_users[claim]:
                        del self._claim_users[claim]

    def _job_of(self, key: str) -> PodJob | None:
        """Return the job of the pod under a key.

        The job of an earlier pod of that key does not count once it runs, but it does while other pods of that job are being
        bound.
        """
        job, pod = self.by_pod.get(key), self.cache.pods.get(key)
        if job is None or job.run is None or pod is None or pod.metadata.uid in job.uids:
            return job
        others = ((self.cache.pending_pod(other), uid) for other, uid in zip(job.pods, job.uids, strict=True))
        return job if any(other is not None and other.metadata.uid == uid for other, uid in others) else None

    def _update_pod(self, key: str, changes: JobChanges) -> None:
        pod, job = self.cache.pending_pod(key), self._job_of(key)
        if job is not None and job.run is None and (pod is None or pod.metadata.uid not in job.uids):
            self.end(job)
            changes.withdrawn.append(job)
            job = None
        elif job is not None and job.run is None and not self._refresh(job, changes):
            job = None
        if pod is None:
            self.messages.forget(key)
        elif job is None and (made := self._form_job(pod.metadata.key, [pod])) is not None:
            changes.arrived.append(made)

    def _update_group(self, group: str, changes: JobChanges) -> None:
        """Form the jobs of a group: first the gang, then one job per further pod."""
        members = sorted(self._members.get(group, ()))
        if not members:
            self._members.pop(group, None)
        self._track_gang(group, members)
        waiting = {key: pod for key in members if (pod := self.cache.pending_pod(key)) is not None}
        for job in {self.by_pod[key] for key in members if key in self.by_pod}:
            alive = [
                key for key, uid in zip(job.pods, job.uids, strict=True) if key in waiting and waiting[key].metadata.uid == uid
            ]
            if job.run is None and len(alive) < len(job.pods):
                self.end(job)
                changes.withdrawn.append(job)
            elif job.run is None:
                self._refresh(job, changes)
        for key in members:
            if key not in waiting:
                self.messages.forget(key)
        free = [pod for key, pod in waiting.items() if self._job_of(key) is None]
        if group not in self.cache.groups and any(self._group[key][1] == 0 for key in members):
            self.messages.record((pod.metadata.key for pod in free), f"PodGroup {group} does not exist", settling=True)
            return
        started = sum(self._has_started(key) for key in members)
        missing = self.gang_size(group) - started
        if any(self.by_pod[key].run is None for key in waiting if key in self.by_pod):
            self.messages.record(
                (pod.metadata.key for pod in free), f"waiting for the gang of its group {group} to start", settling=True
            )
        elif missing <= 0:
            for pod in free:
                if (made := self._form_job(pod.metadata.key, [pod])) is not None:
                    changes.arrived.append(made)
        elif len(free) < missing:
            reason = f"its group {group} needs {format_count(missing, 'pod')} to start, but only {len(free)} exist"
            self.messages.record((pod.metadata.key for pod in free), reason, settling=True)
        elif (made := self._form_job(group if not started else f"{group}+{started}", free)) is not None:
            changes.arrived.append(made)

    def gang_size(self, group: str) -> int:
        """Return the number of pods of a group that must start together."""
        declared = self.cache.groups.get(group)
        gang = declared.spec.scheduling_policy.gang if declared is not None else None
        by_label = max((self._group[key][1] for key in self._members.get(group, ())), default=1)
        return gang.min_count if gang is not None else by_label

    def _declared_group(self, pod: Pod) -> PodGroup | None:
        """Return the PodGroup of a pod, None without one."""
        named = self._group.get(pod.metadata.key)
        return self.cache.groups.get(named[0]) if named is not None else None

    def _track_gang(self, group: str, members: list[str]) -> None:
        """Record whether only some pods of a group have nodes. A group that was complete once is not tracked again."""
        bound, gang_size = [key for key in members if self._has_node(key)], self.gang_size(group)
        self.partial_gangs.pop(group, None)
        if not members:
            self._completed_gangs.discard(group)
        elif bound and len(bound) >= gang_size:
            self._completed_gangs.add(group)
        elif bound and group not in self._completed_gangs and any(self.cache.pending_pod(key) is not None for key in members):
            self.partial_gangs[group] = bound

    def _has_node(self, key: str) -> bool:
        pod = self.cache.pods.get(key)
        return pod is not None and bool(pod.spec.node_name)

    def _has_started(self, key: str) -> bool:
        """Return whether a pod has a node or is being bound."""
        job = self._job_of(key)
        return (job is not None and job.run is not None) or self._has_node(key)

    def _form_job(self, name: str, pods: list[Pod]) -> PodJob | None:
        """Form a job from pods, or record why they are not scheduled."""
        pods = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
        try:
            _check_profile(pods, name)
            claims = tuple(self._claims(pod) for pod in pods)
            if any([self._awaits_extended_claim(pod) for pod in pods]):  # a list, so that every claim is requested
                return None
            demand = _max_demand([self.cache.demand(pod) for pod in pods], name)
        except _NotReady as why:
            self.messages.record((pod.metadata.key for pod in pods), str(why), settling=True)
            return None
        except InputError as problem:
            self.messages.record((pod.metadata.key for pod in pods), problem.message)
            return None
        job = _job_of(name, pods, demand, claims, self._declared_group(pods[0]))
        job.unallocated = self._unallocated(claims)
        for key, keys in zip(job.pods, job.claims, strict=True):
            self.by_pod[key] = job
            self.messages.forget(key)
            for claim in keys:
                if shareable(self.cache.claims[claim]):
                    self._claim_users.setdefault(claim, set()).add(key)
        return job

    def _refresh(self, job: PodJob, changes: JobChanges) -> bool:
        """Replace a waiting job if the requests or constraints of its pods changed; withdraw it if they became invalid."""
        pods = [self.cache.pods[key] for key in job.pods]
        try:
            demand = _max_demand([self.cache.demand(pod) for pod in pods], job.name)
            lacks_claim = any(self.cache.extended_resources(p) and not p.status.extended_resource_claim_status for p in pods)
        except InputError:
            lacks_claim = True
        if lacks_claim:
            self.end(job)
            changes.withdrawn.append(job)
            return False
        fresh = _job_of(job.name, pods, demand, job.claims, self._declared_group(pods[0]))
        if (fresh.demand, fresh.kind, fresh.priority) != (job.demand, job.kind, job.priority):
            now = replace(job, demand=demand, kind=fresh.kind, priority=fresh.priority, row=-1)
            self.by_pod.update(dict.fromkeys(now.pods, now))
            changes.altered.append((job, now))
        return True

    def _unallocated(self, each: Sequence[Sequence[str]]) -> dict[str, str]:
        """Return key -> uid of shareable claims without devices that only one of a job's pods uses."""
        named = Counter(key for keys in each for key in keys)
        claims = ((key, self.cache.claims.get(key)) for key, pods in named.items() if pods == 1)
        return {key: claim.metadata.uid for key, claim in claims if claim and shareable(claim) and not claim.status.allocation}

    def _claims(self, pod: Pod) -> tuple[str, ...]:
        """Return the keys of a pod's claims; raise InputError or _NotReady if it cannot be scheduled."""
        for path, remedy in unsupported_fields(pod, self._declared_group(pod)):
            raise InputError(f"{path} is not supported by scheduler {pod.spec.scheduler_name}: {remedy}", field=path)
        if (problem := volume_problem(pod, self.cache)) is not None:
            if not problem.field:
                raise _NotReady(problem.why)
            path = problem.field
            raise InputError(f"{path} is not supported by scheduler {pod.spec.scheduler_name}: {problem.why}", field=path)
        keys = claim_keys(pod)
        if isinstance(keys, str):
            raise _NotReady(keys)
        for key in keys:
            claim = self.cache.claims.get(key)
            if claim is None:
                self._awaiting_claim.setdefault(key, set()).add(pod.metadata.key)
                raise _NotReady(f"claim {key} does not exist")
            self._check_claim(claim)
        return keys

    def _awaits_extended_claim(self, pod: Pod) -> bool:
        """Return whether a pod's claim for extended resources does not exist yet, and request its creation once."""
        extended_resources = self.cache.extended_resources(pod) if pod.status.extended_resource_claim_status is None else {}
        if extended_resources and self._claims_requested.get(pod.metadata.key) != pod.metadata.uid:
            self._claims_requested[pod.metadata.key] = pod.metadata.uid
            self._missing_claims.append(extended_claim(pod, extended_resources))
        return bool(extended_resources)

    def _check_claim(self, claim: ResourceClaim) -> None:
        check_supported(claim)
        for request in claim.spec.devices.requests:
            missing = [w.device_class_name for w in request.alternatives if w.device_class_name not in self.cache.classes]
            if len(missing) == len(request.alternatives):
                raise _NotReady(f"device class {missing[0]} does not exist")


class _NotReady(Exception):
    """A pod that cannot be scheduled until something else happens."""


def _job_of(
    name: str, pods: Sequence[Pod], demand: PodDemand, claims: tuple[tuple[str, ...], ...], group: PodGroup | None
) -> PodJob:
    """Return a job with the highest priority of its pods, or with the priority of its PodGroup if it has one."""
    first = max(pods, key=lambda pod: pod.spec.priority)
    priority, class_name = first.spec.priority, first.spec.priority_class_name
    if group is not None and group.spec.priority is not None:
        priority, class_name = group.spec.priority, group.spec.priority_class_name
    return PodJob(
        name,
        tuple(pod.metadata.key for pod in pods),
        tuple(pod.metadata.uid for pod in pods),
        demand,
        claims,
        max(timestamp_ns(pod.metadata.creation_timestamp) for pod in pods),
        class_name or "none",
        priority,
        first.metadata.annotations.get(KIND, ""),
        first.spec.scheduler_name,
    )


def _check_profile(pods: Sequence[Pod], name: str) -> None:
    """Raise InputError if the pods of a job have different schedulers."""
    if len(names := sorted({pod.spec.scheduler_name for pod in pods})) > 1:
        problem = f"the pods of group {name} have different values of spec.schedulerName: {', '.join(names)}"
        raise InputError(problem, field="spec.schedulerName", remedy="use the same schedulerName for all pods of a group")


def _max_demand(demands: list[PodDemand], name: str) -> PodDemand:
    """Return the maximum demand of a job's pods; raise InputError if their node constraints differ."""
    if len({demand.constraints for demand in demands}) > 1:
        problem = f"the pods of group {name} have different node selectors, affinities or tolerations"
        remedy = "use the same node constraints for all pods of a group"
        raise InputError(problem, field="spec.nodeSelector", remedy=remedy)
    names = {name for demand in demands for name in demand.amounts}
    return PodDemand(
        {name: max(demand.amounts.get(name, 0) for demand in demands) for name in sorted(names)},
        demands[0].constraints,
        max(demand.requested for demand in demands),
    )


def timestamp_ns(text: str) -> int:
    """Return a Kubernetes timestamp as ns since 1970, 0 for an empty one."""
    return int(datetime.fromisoformat(text).timestamp() * SECOND) if text else 0
