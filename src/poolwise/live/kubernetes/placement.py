"""Placement of a start on nodes and devices: checks that it fits, and assumes the devices that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import msgspec

from poolwise.errors import InputError
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.device_allocation import Devices, allocate, allocation_of
from poolwise.live.kubernetes.devices import DeviceShare
from poolwise.live.kubernetes.node_constraints import selector_matches
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.placement_results import (
    DoesNotFit,
    KeptAway,
    NotModeled,
    NotReady,
    Placed,
    PlacementFailures,
    Refused,
)
from poolwise.live.kubernetes.placement_rules import PlacedPods, PlacementRules
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.recovery import InterruptedStart
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart, VolumeWrite
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.kubernetes.volumes import VolumeFilter, volume_claims
from poolwise.model import Kind, Placement, Start

_PodPlaced = tuple[PodStart, list[DeviceShare]]  # a pod with its node and claims, and the shares of devices that it gets


def place(start: Start, job: PodJob, cache: ClusterCache, state: ClusterState, failures: PlacementFailures) -> Placed | Refused:
    """Place the pods of a job as decided and assume their devices in the cache, or return why they do not fit.

    Devices that the decision names are tried first. Failures are added to `failures`, so that only the first of a thousand pods
    with equal requests is tried on every node.
    """
    outcome = _attempt(_Placing(start, job, cache, state, failures), _Placing.place)
    if isinstance(outcome, Refused) and outcome.lasting and len(job.pods) > 1 and state.mapping.view == "shared":
        for domain in _other_domains(job, cache, state):
            again = _attempt(_Placing(start, job, cache, state, failures, domain), _Placing.place)
            if isinstance(again, Placed):
                return again
    return outcome


def _other_domains(job: PodJob, cache: ClusterCache, state: ClusterState) -> list[list[str]]:
    """Return the nodes of each domain to which the affinity of a gang may bind its pods, none without affinity.

    The first pod determines the domain of the others, and the domain that it would choose may be too small for all of them.
    """
    rules = (cache.pod_rules.get(key) for key in job.pods)
    keys = sorted({term.topology_key for rule in rules if rule is not None for term in rule.affinity})
    domains: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(state.mapping.node_owner) if keys else ():
        labels = cache.nodes[name].metadata.labels if name in cache.nodes else {}
        if all(key in labels for key in keys):
            domains.setdefault(tuple(labels[key] for key in keys), []).append(name)
    return [names for _, names in sorted(domains.items())]


def resume(interrupted: InterruptedStart, job: PodJob, cache: ClusterCache, state: ClusterState) -> Placed | Refused:
    """Resume a start of another process: its pods keep their intended nodes, the others go to any node that fits."""
    nowhere = Start(job.row, (), Placement.of(()))
    return _attempt(_Placing(nowhere, job, cache, state, PlacementFailures()), lambda placing: placing.resume(interrupted))


def _attempt(placing: _Placing, how: Callable[[_Placing], Placed]) -> Placed | Refused:
    """Run a placement; if it fails, drop the allocations that it assumed."""
    try:
        return how(placing)
    except (DoesNotFit, NotReady, InputError) as problem:
        placing.cache.undo_assumed(placing.held)
        why = problem.message if isinstance(problem, InputError) else str(problem)
        return Refused(why, lasting=not isinstance(problem, NotReady))


def matching_failures(jobs: Iterable[PodJob], cache: ClusterCache, failures: PlacementFailures) -> dict[int, str]:
    """Return row -> reason for single-pod jobs whose request is known to fit on no node."""
    reasons = ((job.row, failures.everywhere.get(request_key(job, 0, cache))) for job in jobs if len(job.pods) == 1)
    return {row: why for row, why in reasons if why is not None}


def request_key(job: PodJob, task: int, cache: ClusterCache) -> bytes:
    """Return a key of the requests of a pod and its claims; b"" if a claim is allocated, deleted or missing."""
    specs = []
    for key in job.claims[task]:
        claim = cache.claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp or claim.metadata.uid in cache.usage.claims:
            return b""
        specs.append(claim.spec)
    if task not in job.request_keys:
        job.request_keys[task] = msgspec.json.encode((job.demand.amounts, job.demand.constraints, specs))
    return job.request_keys[task]


class _Placing:
    def __init__(
        self,
        start: Start,
        job: PodJob,
        cache: ClusterCache,
        state: ClusterState,
        failures: PlacementFailures,
        domain: Iterable[str] | None = None,  # nodes for the first pod, None for any
    ) -> None:
        self.start, self.job, self.cache, self.state, self.failures = start, job, cache, state, failures
        self.devices = Devices(cache.inventory, cache.usage, cache.classes, state.avoided)
        self.held: list[str] = []
        self.taken: dict[str, dict[str, int]] = {}  # node -> amounts in use, including earlier pods of this start
        self.moved = self.kept_away = False
        self.domain = None if domain is None else set(domain)
        self.chosen: list[str] = []  # node of each pod placed so far
        self.moved_to: list[str] = []
        self.placed_pods = PlacedPods(cache, state, failures.known_pods) if cache.pod_rules or cache.soft_tainted else None
        self._volumes: dict[str, VolumeFilter] = {}  # key of a pod with volume claims -> filter
        self._rules: dict[str, PlacementRules | None] = {}  # key of a pod -> rules that concern it

    def place(self) -> Placed:
        """Place all pods. A pod that a rule keeps away from its node is placed after the others, which may then attract it."""
        starts: dict[int, _PodPlaced] = {}
        names, waiting = self._nodes(), [*range(len(self.job.pods))]
        while waiting:
            later, why = list[int](), DoesNotFit()
            for task in waiting:
                pod = self.cache.pending_pod(self.job.pods[task])
                if pod is None or pod.metadata.uid != self.job.uids[task]:
                    raise NotReady(f"pod {self.job.pods[task]} no longer exists")
                try:
                    starts[task] = self._start(task, pod, names[task])
                except KeptAway as problem:
                    later.append(task)
                    why = problem
            if len(later) == len(waiting):
                raise why
            waiting = later
        self.failures.moved_to.update(self.moved_to)
        return self._placed(starts)

    def resume(self, interrupted: InterruptedStart) -> Placed:
        if not any(interrupted.starts) and not all(consumer for _, consumer in interrupted.reserved):
            raise DoesNotFit("the intended nodes of its pods are unknown")
        whole = self.state.mapping.view == "whole"
        starts: dict[int, _PodPlaced] = {}
        for task, start in enumerate(interrupted.starts):
            if start is not None:
                if start.node not in self.state.mapping.node_owner or (whole and not self.is_free(start.node)):
                    raise DoesNotFit(f"node {start.node} is not free")
                self.fits(start.pod, self.cache.nodes[start.node])
                for write in start.claims:
                    self._check_published(write.claim)
                self._add(start.pod, self.cache.nodes[start.node])
                if (volumes := self._volume_filter(start.pod)) is not None:
                    node = self.cache.nodes[start.node]
                    start = replace(start, volumes=tuple(VolumeWrite(claim, node) for claim in volumes.unbound))
                claims = (self.cache.usage.claims.get(write.claim.metadata.uid, ()) for write in start.claims)
                starts[task] = start, [share for held in claims for share in held]
        for task, key in enumerate(self.job.pods):
            pod = self.cache.pending_pod(key)
            if task not in starts and pod is not None:
                taken = {start.node for start, _ in starts.values()} if whole else set()
                names = sorted(self.state.mapping.node_owner.keys() - taken)
                starts[task] = self._start_anywhere(task, pod, names, request_key(self.job, task, self.cache))
        return self._placed(starts)

    def _placed(self, starts: Mapping[int, _PodPlaced]) -> Placed:
        whole, rows = self.state.mapping.view == "whole", list[tuple[int, int, int, int]]()
        for task, (start, shares) in sorted(starts.items()):
            rows += self.state.rows_of(0 if whole else task, start.node, self.job.demand.amounts, shares)
        pods = tuple(start for _, (start, _) in sorted(starts.items()))
        return Placed(pods, Placement.of(rows), tuple(self.held), self.moved)

    def _start(self, task: int, pod: Pod, name: str) -> _PodPlaced:
        """Place a pod on its chosen node, or on the first node that fits if rules or devices exclude the chosen one."""
        key = request_key(self.job, task, self.cache)
        if why := self.failures.everywhere.get(key):
            raise DoesNotFit(why)
        first_pod, self.kept_away = not self.taken and not self.held, self.domain is not None
        whole = self.state.mapping.view == "whole"
        if (placed := self._start_preferred(task, pod, name, key)) is not None:
            return placed
        try:
            if self._is_excluded(name):
                raise KeptAway(f"node {name} is in use by a pod of the same start")
            return self._start_on(task, pod, name, key)
        except DoesNotFit as problem:
            movable = isinstance(problem, KeptAway | NotModeled) or (
                not whole and (bool(self.job.claims[task]) or name in self.failures.moved_to or name in self.moved_to)
            )
            if not movable:
                raise
            here = problem
        if self.cache.soft_tainted and (placed := self._start_preferred(task, pod, name, key, moved=True)) is not None:
            return placed
        self.moved = True
        try:
            placed = self._start_anywhere(task, pod, self._alternatives(name), key)
        except DoesNotFit:
            why = f"{here}, and no other node fits"
            if first_pod and key and not self.kept_away:  # no earlier pod of this start has taken the missing resources
                self.failures.everywhere[key] = why
            raise (KeptAway if self.kept_away else DoesNotFit)(why) from None
        self.moved_to.append(placed[0].node)
        return placed

    def _start_preferred(self, task: int, pod: Pod, name: str, key: bytes, *, moved: bool = False) -> _PodPlaced | None:
        """Place a pod on the node with the highest score that fits; None without preferences, or if no node fits.

        Among nodes with equal scores, the chosen one comes first; `moved` states that the pod does not fit there.
        """
        rules, node = self.rules_for(pod), self.cache.nodes.get(name)
        if rules is None or node is None or not (moved or rules.prefers_others(node)):
            return None
        whole = self.state.mapping.view == "whole"
        names = [*([] if self._is_excluded(name) else [name]), *self._alternatives(name)]
        nodes = (self.cache.nodes[other] for other in names if other in self.cache.nodes and (not whole or self.is_free(other)))
        candidates = [other for other in nodes if self._problem(pod, other) is None]
        scores = rules.scores(candidates)
        for best in sorted(scores, key=lambda other: -scores[other]):
            try:
                placed = self._start_on(task, pod, best, key)
            except DoesNotFit:
                continue
            if best != name:
                self.moved = True
                self.moved_to.append(best)
            return placed
        return None

    def _is_excluded(self, name: str) -> bool:
        """Return whether a pod of this start takes the whole node, or the first pod must go to another domain."""
        if self.state.mapping.view == "whole":
            return name in self.chosen
        return self.domain is not None and not self.chosen and name not in self.domain

    def _alternatives(self, name: str) -> list[str]:
        """Return the other nodes for a pod; whole nodes are taken from the rack that the policy chose."""
        mapping = self.state.mapping
        allowed = self.state.allowed_nodes(self.job.demand.constraints)
        others = mapping.nodes[mapping.node_owner[name]] if mapping.view == "whole" else allowed
        return [other for other in others if other != name and not self._is_excluded(other)]

    def _start_anywhere(self, task: int, pod: Pod, names: Iterable[str], key: bytes) -> _PodPlaced:
        why: DoesNotFit | None = None
        for name in names:
            if self.state.mapping.view == "shared" or self.is_free(name):
                try:
                    return self._start_on(task, pod, name, key)
                except DoesNotFit as problem:
                    why = problem
        raise why if why is not None else DoesNotFit("no other node is free")

    def _start_on(self, task: int, pod: Pod, name: str, key: bytes) -> _PodPlaced:
        node = self.cache.nodes.get(name)
        if node is None:
            raise NotReady(f"node {name} no longer exists")
        device_set = self.cache.inventory.device_set_key(node) if key and self.job.claims[task] else None
        if device_set is not None and (why := self.failures.by_device_set.get((key, device_set))):
            raise DoesNotFit(why)
        self.fits(pod, node)
        try:
            shares, writes, nominate = self._claims(task, pod, node)
        except DoesNotFit as problem:
            for resource, amount in self.job.demand.amounts.items():
                self.taken[name][resource] -= amount
            if device_set is not None and not self.held:
                self.failures.by_device_set[key, device_set] = str(problem)
            raise
        self._add(pod, node)
        volumes = self._volume_filter(pod)
        unbound = () if volumes is None else tuple(VolumeWrite(claim, node) for claim in volumes.unbound)
        return PodStart(pod, name, tuple(writes), nominate, unbound), shares

    def _nodes(self) -> tuple[str, ...]:
        mapping, rows = self.state.mapping, self.start.placement.rows()
        if mapping.view == "shared":
            chosen = {task: mapping.nodes[owner][0] for task, owner, _, _ in rows if owner in mapping.nodes}
            if len(chosen) < len(self.job.pods):
                raise DoesNotFit("the placement does not name a node for each pod")
            return tuple(chosen[task] for task in range(len(self.job.pods)))
        names: list[str] = []
        for _, owner, resource, count in rows:
            if owner in mapping.nodes and resource == mapping.column("nodes"):
                free = [name for name in mapping.nodes[owner] if self.is_free(name)]
                if len(free) < count:
                    raise DoesNotFit(
                        f"{count} free nodes of {mapping.machine.owners[owner]} are needed, but only {len(free)} are available"
                    )
                names += free[:count]
        if len(names) != len(self.job.pods):
            raise DoesNotFit("the placement does not name a node for each pod")
        return tuple(names)

    def is_free(self, name: str) -> bool:
        """Return whether only daemon pods use a node and the job may run on it."""
        used = any(map(self.state.has_run, self.cache.on_node.get(name, ()))) or name in self.state.run_pods_on
        free = not used and name not in self.state.mapping.unschedulable and not self.state.used_by_others(name)
        return free and self.job.demand.constraints.allows(self.cache.nodes[name])

    def _add(self, pod: Pod, node: Node) -> None:
        """Record a placed pod, which later pods of this start see."""
        self.chosen.append(node.metadata.name)
        if self.placed_pods is not None:
            self.placed_pods.add(pod, node)
            self._rules.clear()

    def rules_for(self, pod: Pod) -> PlacementRules | None:
        """Return the placement rules that concern a pod, None if there are none."""
        if self.placed_pods is None:
            return None
        key = pod.metadata.key
        if key not in self._rules:
            self._rules[key] = self.placed_pods.rules_for(pod, self.job.demand.constraints)
        return self._rules[key]

    def _volume_filter(self, pod: Pod) -> VolumeFilter | None:
        """Return the filter by the volume claims of a pod, None without any."""
        key = pod.metadata.key
        if key not in self._volumes:
            if not any(volume_claims(pod)):
                return None
            self._volumes[key] = VolumeFilter(pod, self.cache, self.state.avoided_volumes)
        return self._volumes[key]

    def fits(self, pod: Pod, node: Node) -> None:
        """Check that a node fits the pod in addition to those on it and those being bound; raise DoesNotFit otherwise."""
        if (problem := self._problem(pod, node)) is not None:
            raise problem
        used = self.taken[node.metadata.name]
        for resource, amount in self.job.demand.amounts.items():
            used[resource] = used.get(resource, 0) + amount

    def _problem(self, pod: Pod, node: Node) -> DoesNotFit | None:
        """Return why a node does not fit the pod, ignoring its claims."""
        name = node.metadata.name
        if not self.job.demand.constraints.allows(node):
            return NotModeled(f"node {name} does not match the pod's node selector, affinity or tolerations")
        rules = self.rules_for(pod)
        if rules is not None and (why := rules.problem(node)) is not None:
            self.kept_away = True
            return KeptAway(why)
        if (volumes := self._volume_filter(pod)) is not None and (why := volumes.problem(node)) is not None:
            self.kept_away = True
            return KeptAway(why)
        if name not in self.taken:
            self.taken[name] = self.state.used_on(name)
        used, has = self.taken[name], self.state.allocatable(node)
        for resource, amount in self.job.demand.amounts.items():
            left = has.get(resource, 0) - used.get(resource, 0)
            if amount > left:
                has_left, wanted = (self.state.mapping.machine.amount_text(resource, number) for number in (left, amount))
                kind = DoesNotFit if self.state.models(resource) else NotModeled
                return kind(f"node {name} has {has_left} {resource} left, but {wanted} are needed")
        return None

    def _claims(self, task: int, pod: Pod, node: Node) -> tuple[list[DeviceShare], list[ClaimWrite], bool]:
        """Assume devices for a pod's claims; return their shares, the claim writes, and whether to nominate the node."""
        claims = []
        for key in self.job.claims[task]:
            claim = self.cache.claims.get(key)
            if claim is None or claim.metadata.deletion_timestamp:
                raise NotReady(f"claim {key} no longer exists")
            claims.append(claim)
        missing = [c for c in claims if c.metadata.uid not in self.cache.usage.claims and c.spec.devices.requests]
        for claim in claims:
            allocation = claim.status.allocation
            if claim in missing:
                continue
            self._check_published(claim)
            if allocation is not None and not selector_matches(allocation.node_selector, node):
                raise DoesNotFit(f"the devices of claim {claim.metadata.key} cannot be used on node {node.metadata.name}")
            if allocation is None and claim.metadata.uid not in self.held and claim.spec.devices.requests:
                raise NotReady(f"claim {claim.metadata.key} is being allocated by another start")
        allocated = allocate(missing, node, self.devices, self._preferred(task))
        if isinstance(allocated, str):
            raise DoesNotFit(allocated)
        writes: dict[str, ClaimWrite] = {c.metadata.uid: ClaimWrite(c, None) for c in claims if c not in missing}
        shares: list[DeviceShare] = []
        for claim, chosen in zip(missing, allocated, strict=True):
            held = [choice.share for choice in chosen]
            self.cache.assume(claim, held)
            self.held.append(claim.metadata.uid)
            shares += held
            writes[claim.metadata.uid] = ClaimWrite(claim, allocation_of(claim, chosen, node, self.devices))
        pinned = any(w.allocation is not None and w.allocation.node_selector is not None for w in writes.values())
        return shares, [writes[c.metadata.uid] for c in claims], bool(claims) and not pinned

    def _check_published(self, claim: ResourceClaim) -> None:
        """Raise DoesNotFit if a driver no longer publishes a device of an allocated claim."""
        for share in self.cache.usage.claims.get(claim.metadata.uid, ()):
            if share.id not in self.cache.inventory.devices:
                raise DoesNotFit(f"device {share.id} of claim {claim.metadata.key} is no longer published")

    def _preferred(self, task: int) -> list[DeviceId]:
        machine, devices = self.state.mapping.machine, self.state.mapping.devices
        kinds = (Kind.DEVICE, Kind.POOL)
        whole = self.state.mapping.view == "whole"
        return [
            devices[owner]
            for row, owner, _, _ in self.start.placement.rows()
            if (whole or row == task) and owner in devices and machine.kind[owner] in kinds
        ]
