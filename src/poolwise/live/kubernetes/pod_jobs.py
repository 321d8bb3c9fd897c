"""Jobs made of pods: a pod alone, or a group whose pods start together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from poolwise.errors import InputError
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.demand import KIND, PodDemand, claim_keys, group_of, shareable, unsupported_fields
from poolwise.live.kubernetes.device_allocation import unsupported
from poolwise.live.kubernetes.extended import ExtendedClaim, extended_claim
from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.pod_messages import PodMessages
from poolwise.units import SECOND


@dataclass(eq=False)
class PodJob:
    """A job that waits or is at work.

    Attributes
    ----------
    name : namespace and name of its pod, or of its group
    pods : keys of its pods, one a task
    uids : uid of each
    demand : what each of them takes at most
    claims : keys of the claims of each
    unmet : key -> uid of those that several pods may share and that have no devices yet: the job needs devices for them
    submitted : ns since 1970
    class_name, priority : its priority class, and the number that this stands for: the highest of its pods
    kind : what kind of work it does, "" where nobody said
    row, draw : its place in the job table, and its counter of random draws
    run : number of its run, None while it waits
    failures : times in a row that it could not be started
    not_before : ns of the monotonic clock before which it is not tried again
    """

    name: str
    pods: tuple[str, ...]
    uids: tuple[str, ...]
    demand: PodDemand
    claims: tuple[tuple[str, ...], ...]
    submitted: int
    class_name: str
    priority: int = 0
    kind: str = ""
    unmet: Mapping[str, str] = field(default_factory=dict)
    row: int = -1
    draw: int = 0
    run: int | None = None
    failures: int = 0
    not_before: int = 0


@dataclass
class Settled:
    """What has become of pods.

    Attributes
    ----------
    arrived : jobs that wait from now on
    withdrawn : jobs that were waiting, and wait no longer
    altered : jobs that wait for something else than before, each in place of the one that comes first
    """

    arrived: list[PodJob] = field(default_factory=list)
    withdrawn: list[PodJob] = field(default_factory=list)
    altered: list[tuple[PodJob, PodJob]] = field(default_factory=list)


class PodJobs:
    """Keeps jobs up with pods.

    Attributes
    ----------
    of_pod : key of a pod -> its job
    notes : why pods are left alone
    in_part : group of which some pods have a node while more are needed to start -> those pods
    """

    def __init__(self, mirror: ClusterCache, clock: LiveClock) -> None:
        self.mirror, self.notes = mirror, PodMessages(clock)
        self.of_pod: dict[str, PodJob] = {}
        self.in_part: dict[str, list[str]] = {}
        self._lacking: list[ExtendedClaim] = []
        self._asked: dict[str, str] = {}  # pod whose claim for extended resources is being made -> its uid
        self._whole: set[str] = set()  # groups that were whole once
        self._members: dict[str, set[str]] = {}  # group -> pods
        self._group: dict[str, tuple[str, int]] = {}  # pod -> group, its size by labels
        self._wants: dict[str, set[str]] = {}  # claim -> pods that wait for it to be there
        self._sharers: dict[str, set[str]] = {}  # claim that pods may share -> pods that have jobs

    def jobs(self) -> set[PodJob]:
        """All jobs."""
        return set(self.of_pod.values())

    def waiting(self) -> set[PodJob]:
        """Jobs that have no run."""
        return {job for job in self.of_pod.values() if job.run is None}

    def settle(self, pods: Iterable[str]) -> Settled:
        """Bring jobs up to date with some pods."""
        done, groups = Settled(), set[str]()
        for key in sorted(pods):
            pod = self.mirror.pods.get(key)
            if pod is None:
                self._asked.pop(key, None)
            named = group_of(pod) if pod is not None else None
            before = self._group.get(key)
            if before is not None and named is None:
                groups.add(before[0])
                self._members[before[0]].discard(key)
                del self._group[key]
            if named is not None:
                self._group[key] = named
                self._members.setdefault(named[0], set()).add(key)
                groups.add(named[0])
            elif before is None or pod is None:
                self._one(key, done)
        for group in sorted(groups):
            self._together(group, done)
        return done

    def settle_claims(self, claims: Iterable[str]) -> Settled:
        """Bring jobs up to date with some claims: those that pods waited for, and those that have got devices or lost them."""
        claims = list(claims)
        done = self.settle({pod for claim in claims for pod in self._wants.pop(claim, ())})
        for key in sorted({pod for claim in claims for pod in self._sharers.get(claim, ())}):
            job = self.of_pod[key]
            if job.run is None and (unmet := self._unmet(job.claims)) != job.unmet:
                now = replace(job, unmet=unmet, row=-1)
                self.of_pod.update(dict.fromkeys(now.pods, now))
                done.altered.append((job, now))
        return done

    def take_lacking(self) -> list[ExtendedClaim]:
        """Claims that are to be made before their pods can be scheduled."""
        lacking, self._lacking = self._lacking, []
        return lacking

    def settle_noted(self) -> Settled:
        """Look again at the pods that were left alone."""
        return self.settle(list(self.notes.why))

    def adopt(self, pod: Pod) -> PodJob:
        """Make the job of a pod that has a node already; what it asks for that is not supported, somebody else has kept."""
        job = PodJob(
            pod.metadata.key,
            (pod.metadata.key,),
            (pod.metadata.uid,),
            self.mirror.demand(pod),
            (tuple(key for key in keys if key in self.mirror.claims) if not isinstance(keys := claim_keys(pod), str) else (),),
            instant(pod.metadata.creation_timestamp),
            pod.spec.priority_class_name or "none",
            pod.spec.priority,
            pod.metadata.annotations.get(KIND, ""),
        )
        self.of_pod[pod.metadata.key] = job
        self.notes.forget(pod.metadata.key)
        return job

    def end(self, job: PodJob) -> None:
        """Forget a job."""
        for key, claims in zip(job.pods, job.claims, strict=True):
            if self.of_pod.get(key) is job:
                del self.of_pod[key]
                for claim in claims:
                    if claim in self._sharers:
                        self._sharers[claim].discard(key)
                        if not self._sharers[claim]:
                            del self._sharers[claim]

    def _one(self, key: str, done: Settled) -> None:
        pod, job = self.mirror.pending_pod(key), self.of_pod.get(key)
        if job is not None and job.run is None and (pod is None or pod.metadata.uid not in job.uids):
            self.end(job)
            done.withdrawn.append(job)
            job = None
        if pod is None:
            self.notes.forget(key)
        elif job is None and (made := self._form(pod.metadata.key, [pod])) is not None:
            done.arrived.append(made)

    def _together(self, group: str, done: Settled) -> None:
        """Form the jobs of a group: those that start together, then each further pod."""
        members = sorted(self._members.get(group, ()))
        if not members:
            self._members.pop(group, None)
        self._watch(group, members)
        waiting = {key: pod for key in members if (pod := self.mirror.pending_pod(key)) is not None}
        for job in {self.of_pod[key] for key in members if key in self.of_pod}:
            alive = [
                key for key, uid in zip(job.pods, job.uids, strict=True) if key in waiting and waiting[key].metadata.uid == uid
            ]
            if job.run is None and len(alive) < len(job.pods):
                self.end(job)
                done.withdrawn.append(job)
        for key in members:
            if key not in waiting:
                self.notes.forget(key)
        free = [pod for key, pod in waiting.items() if key not in self.of_pod]
        started = sum(self._at_work(key) for key in members)
        lacking = self.size(group) - started
        if any(self.of_pod[key].run is None for key in waiting if key in self.of_pod):
            self.notes.leave((pod.metadata.key for pod in free), f"its group {group} starts first", settling=True)
        elif lacking <= 0:
            for pod in free:
                if (made := self._form(pod.metadata.key, [pod])) is not None:
                    done.arrived.append(made)
        elif len(free) < lacking:
            said = f"its group {group} starts when {lacking} pods are there, {len(free)} are"
            self.notes.leave((pod.metadata.key for pod in free), said, settling=True)
        elif (made := self._form(group if not started else f"{group}+{started}", free)) is not None:
            done.arrived.append(made)

    def size(self, group: str) -> int:
        """How many pods of a group must start together."""
        declared = self.mirror.groups.get(group)
        gang = declared.spec.scheduling_policy.gang if declared is not None else None
        by_label = max((self._group[key][1] for key in self._members.get(group, ())), default=1)
        return gang.min_count if gang is not None else by_label

    def _watch(self, group: str, members: list[str]) -> None:
        """Note whether a part of a group has nodes; one that was whole once is left alone, whatever becomes of it later."""
        bound, size = [key for key in members if self._has_node(key)], self.size(group)
        self.in_part.pop(group, None)
        if not members:
            self._whole.discard(group)
        elif bound and len(bound) >= size:
            self._whole.add(group)
        elif bound and group not in self._whole and any(self.mirror.pending_pod(key) is not None for key in members):
            self.in_part[group] = bound

    def _has_node(self, key: str) -> bool:
        pod = self.mirror.pods.get(key)
        return pod is not None and bool(pod.spec.node_name)

    def _at_work(self, key: str) -> bool:
        """Whether a pod is at work or was, or is on its way."""
        job = self.of_pod.get(key)
        return (job is not None and job.run is not None) or self._has_node(key)

    def _form(self, name: str, pods: list[Pod]) -> PodJob | None:
        """Make a job of pods, or note why they are left alone."""
        pods = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
        try:
            claims = tuple(self._claims(pod) for pod in pods)
            if any([self._lacks(pod) for pod in pods]):  # each is asked for
                return None
            demands = [self.mirror.demand(pod) for pod in pods]
            demand = _most(demands, name)
        except _NotYet as why:
            self.notes.leave((pod.metadata.key for pod in pods), str(why), settling=True)
            return None
        except InputError as problem:
            self.notes.leave((pod.metadata.key for pod in pods), problem.message)
            return None
        first = max(pods, key=lambda pod: pod.spec.priority)
        job = PodJob(
            name,
            tuple(pod.metadata.key for pod in pods),
            tuple(pod.metadata.uid for pod in pods),
            demand,
            claims,
            max(instant(pod.metadata.creation_timestamp) for pod in pods),
            first.spec.priority_class_name or "none",
            first.spec.priority,
            first.metadata.annotations.get(KIND, ""),
            self._unmet(claims),
        )
        for key, keys in zip(job.pods, job.claims, strict=True):
            self.of_pod[key] = job
            self.notes.forget(key)
            for claim in keys:
                if shareable(self.mirror.claims[claim]):
                    self._sharers.setdefault(claim, set()).add(key)
        return job

    def _unmet(self, each: Sequence[Sequence[str]]) -> dict[str, str]:
        """Of the claims of a job's pods, those that may be shared and have no devices yet; but not what its own pods share."""
        named = Counter(key for keys in each for key in keys)
        found = ((key, self.mirror.claims.get(key)) for key, pods in named.items() if pods == 1)
        return {key: claim.metadata.uid for key, claim in found if claim and shareable(claim) and not claim.status.allocation}

    def _claims(self, pod: Pod) -> tuple[str, ...]:
        """Keys of a pod's claims; raises where it cannot be scheduled, or not yet."""
        for path, remedy in unsupported_fields(pod):
            raise InputError(f"{path} is not supported by scheduler {self.mirror.name}: {remedy}", field=path)
        keys = claim_keys(pod)
        if isinstance(keys, str):
            raise _NotYet(keys)
        for key in keys:
            claim = self.mirror.claims.get(key)
            if claim is None:
                self._wants.setdefault(key, set()).add(pod.metadata.key)
                raise _NotYet(f"claim {key} does not exist")
            self._check(claim)
        return keys

    def _lacks(self, pod: Pod) -> bool:
        """Whether a pod's claim for extended resources is still to be made; it is asked for once."""
        backed = self.mirror.backed(pod) if pod.status.extended_resource_claim_status is None else {}
        if backed and self._asked.get(pod.metadata.key) != pod.metadata.uid:
            self._asked[pod.metadata.key] = pod.metadata.uid
            self._lacking.append(extended_claim(pod, backed))
        return bool(backed)

    def _check(self, claim: ResourceClaim) -> None:
        problem = unsupported(claim)
        if problem is not None:
            raise problem
        for request in claim.spec.devices.requests:
            missing = [w.device_class_name for w in request.alternatives if w.device_class_name not in self.mirror.classes]
            if len(missing) == len(request.alternatives):
                raise _NotYet(f"device class {missing[0]} does not exist")


class _NotYet(Exception):
    """A pod cannot be scheduled before something else happens."""


def _most(demands: list[PodDemand], name: str) -> PodDemand:
    """What each pod of a job takes at most; raises InputError where they may run on different nodes."""
    if len({demand.where for demand in demands}) > 1:
        raise InputError(
            f"the pods of group {name} have different node selectors, affinities or tolerations",
            field="spec.nodeSelector",
            remedy="let all pods of a group say the same",
        )
    names = {name for demand in demands for name in demand.amounts}
    return PodDemand(
        {name: max(demand.amounts.get(name, 0) for demand in demands) for name in sorted(names)},
        demands[0].where,
        max(demand.requested for demand in demands),
    )


def instant(text: str) -> int:
    """Ns since 1970 of a time as Kubernetes writes it; 0 for none."""
    return int(datetime.fromisoformat(text).timestamp() * SECOND) if text else 0
