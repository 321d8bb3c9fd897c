"""View of composed devices for placement policies: compositions in use, free devices, and groups of equal compositions.

Compositions that offer a workload the same (kinds, size, sharers, room, free cores of their node) form one group. The search
for the best candidate visits groups, whose number does not grow with the number of devices.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from poolwise.model import Placement, Snapshot
from poolwise.policies.placement.nvme.composition_request import CompositionRequest, Sharing
from poolwise.policies.placement.nvme.free_devices import FreeDevices
from poolwise.policies.placement.nvme.layout import device_layout
from poolwise.quantities import with_slowdown


@dataclass(slots=True)
class Resident:
    """A run on a composition. `number` is -1 for a run that was started in this pass; end and deadline are in ns."""

    need: CompositionRequest
    number: int
    end: int


class GroupKey(NamedTuple):
    """Properties that all compositions of one group share.

    `bandwidth` is the room left under the residents' base demands (negative if modeled sharers request more than there is),
    `storage` is the room left, and `cores` are the free cores of the node.
    """

    kinds: frozenset[str]
    size: int
    sharers: int
    bandwidth: int
    storage: int
    cores: int


@dataclass(slots=True)
class Group:
    """Equal compositions in the two orders that policies use; closed compositions are not listed."""

    by_end: list[tuple[int, int]] = field(default_factory=list)  # (-end, lowest device)
    by_device: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Composition:
    """Devices (ascending) composed for a node, with their sharers; identified by the lowest device."""

    devices: tuple[int, ...]
    node: int
    residents: list[Resident]
    key: GroupKey
    end: int  # latest expected end of a resident, ns
    closed: bool = False  # no sharer may join for now: a resident would miss its deadline


class Candidate(NamedTuple):
    """A group in which a workload would run for `time` ns."""

    time: int
    key: GroupKey


class Compositions:
    """Devices and nodes of a machine at one instant, updated by `refresh` and `allocate`.

    Attributes
    ----------
    now : ns
    cores : (n_node,) free cores, in the order of `layout.nodes`
    free : devices in no composition
    demand : [bandwidth, storage] base demand of all runs on devices
    waiting : [bandwidth, storage] base demand of the queue, None if the caller does not provide it
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.now = snapshot, snapshot.now
        self.layout = layout = device_layout(snapshot.machine)
        self.sharing = Sharing.of(snapshot.estimate)
        self.cores = snapshot.free[layout.nodes, layout.cores].copy()
        self.installed_cores = snapshot.capacity[layout.nodes, layout.cores].copy()
        self._share = self.cores / np.maximum(self.installed_cores, 1)  # free / installed cores = 1 - beta
        self.free = FreeDevices(layout)
        self.demand = [0, 0]
        self.waiting: tuple[int, int] | None = None
        self._node = layout.node_index
        self._groups: dict[frozenset[str], dict[GroupKey, Group]] = {}
        self._of: dict[int, Composition] = {}  # any device -> its composition
        self._on_node: dict[int, dict[int, None]] = {}  # node -> lowest devices of its compositions
        self._closed: list[tuple[int, int, Composition]] = []  # heap of (until, counter, composition)
        self._closures = 0
        self._needs: dict[int, CompositionRequest] = {}  # needs of jobs change only when a deadline passes
        self._room: dict[int, list[int]] = {}  # device -> [bandwidth, storage] not reserved
        self._read(layout.devices.tolist())

    # Updates

    def refresh(self, snapshot: Snapshot, owners: Iterable[int]) -> bool:
        """Advance to a later state that differs only in `owners`.

        Return whether the devices may admit more workloads than before, because some were read again or a closed composition
        reopened.
        """
        self.snapshot, self.now = snapshot, snapshot.now
        devices: set[int] = set()
        for owner in owners:
            if owner in self._node:
                self.installed_cores[self._node[owner]] = snapshot.capacity[owner, self.layout.cores]
                self._set_cores(owner, int(snapshot.free[owner, self.layout.cores]))
            elif owner in self.layout.place:
                composition = self._of.get(owner)
                devices.update(composition.devices if composition is not None else (owner,))
        for device in sorted(devices):
            self._dissolve(device)
        self._read(sorted(devices))
        more = bool(devices)
        while self._closed and self._closed[0][0] <= self.now:
            _, _, composition = heapq.heappop(self._closed)
            if composition.closed and self._of.get(composition.devices[0]) is composition:
                composition.closed, more = False, True
                self._add_to_group(composition)
        return more

    def allocate(self, need: CompositionRequest, placement: Placement) -> None:
        """Start a workload at the placement that a policy has chosen."""
        node, devices = -1, []
        for owner in placement.owners():
            if owner in self._node:
                node = owner
            else:
                devices.append(owner)
        for _, owner, resource, amount in placement.rows():
            if resource != self.layout.cores:
                self._room[owner][resource == self.layout.storage] -= amount
        self._set_cores(node, int(self.cores[self._node[node]]) - need.cores)
        if not devices:
            return
        composition = self._of.get(devices[0])
        residents = composition.residents if composition is not None else []
        for device in devices:
            self._dissolve(device)
        residents = [*residents, Resident(need, -1, 0)]
        if self.sharing.changes:
            for resident in residents:
                resident.end = self._end_with(resident, len(devices), len(residents))
        else:
            residents[-1].end = self._end_with(residents[-1], len(devices), len(residents))
        self._compose(tuple(devices), node, residents)

    def _read(self, devices: list[int]) -> None:
        snapshot, columns = self.snapshot, [self.layout.bandwidth, self.layout.storage]
        self._room.update(zip(devices, snapshot.free[np.ix_(devices, columns)].tolist(), strict=True))
        free: list[int] = []
        for device in devices:
            if device in self._of:
                continue
            numbers = [n for n in snapshot.occupants(device) if device in snapshot.run(n).placement.owners()]
            if not numbers:
                free.append(device)
                continue
            owners = snapshot.run(numbers[0]).placement.owners()
            node = next((o for o in owners if o in self._node), None)
            if node is None:
                continue  # the node has left and its run is about to end: the devices are neither free nor joinable
            residents = [Resident(self.need(snapshot.run(n).job), n, 0) for n in numbers]
            composed = tuple(o for o in owners if o in self.layout.place)
            for resident in residents:
                # an imagined start changes the speed of its neighbors, which the snapshot's own ends do not reflect
                resident.end = (
                    self._end_with(resident, len(composed), len(residents))
                    if min(numbers) < 0
                    else snapshot.run(resident.number).expected_end
                )
            self._compose(composed, node, residents)
        self.free.add(free, snapshot)

    def _end_with(self, resident: Resident, size: int, sharers: int) -> int:
        """Return the expected end (ns) of a resident if the number of sharers stays constant from now on."""
        if resident.number >= 0 and not self.sharing.changes:
            return self.snapshot.run(resident.number).expected_end
        left = self.snapshot.work_left(resident.number) if resident.number >= 0 else float(resident.need.requested)
        return self.now + with_slowdown(left, resident.need.slowdown(size, sharers))

    def _compose(self, devices: tuple[int, ...], node: int, residents: list[Resident]) -> None:
        capacity, layout = self.snapshot.capacity, self.layout
        bandwidth = sum(r.need.bandwidth for r in residents)
        storage = sum(r.need.storage for r in residents)
        self.demand[0] += bandwidth
        self.demand[1] += storage
        key = GroupKey(
            frozenset(r.need.kind for r in residents),
            len(devices),
            len(residents),
            sum(int(capacity[d, layout.bandwidth]) for d in devices) - bandwidth,
            sum(int(capacity[d, layout.storage]) for d in devices) - storage,
            int(self.cores[self._node[node]]),
        )
        composition = Composition(devices, node, residents, key, max(r.end for r in residents))
        for device in devices:
            self._of[device] = composition
            self.free.remove(device)
        self._on_node.setdefault(node, {})[devices[0]] = None
        self.free.attached[layout.place[devices[0]]] += sum(int(capacity[d, layout.bandwidth]) for d in devices)
        self._add_to_group(composition)

    def _dissolve(self, device: int) -> None:
        """Dissolve the composition of a device, or remove a free device from the list; `_read` or `_compose` follows."""
        self.free.remove(device)
        composition = self._of.get(device)
        if composition is None:
            return
        self._remove_from_group(composition)
        for other in composition.devices:
            del self._of[other]
        del self._on_node[composition.node][composition.devices[0]]
        self.demand[0] -= sum(r.need.bandwidth for r in composition.residents)
        self.demand[1] -= sum(r.need.storage for r in composition.residents)
        bandwidth = composition.key.bandwidth + sum(r.need.bandwidth for r in composition.residents)
        self.free.attached[self.layout.place[device]] -= bandwidth

    def _set_cores(self, node: int, free: int) -> None:
        k = self._node[node]
        self._share[k] = free / max(int(self.installed_cores[k]), 1)
        if int(self.cores[k]) == free:
            return
        self.cores[k] = free
        for device in self._on_node.get(node, ()):
            composition = self._of[device]
            self._remove_from_group(composition)
            composition.key = composition.key._replace(cores=free)
            if not composition.closed:
                self._add_to_group(composition)

    def _add_to_group(self, composition: Composition) -> None:
        groups = self._groups.setdefault(composition.key.kinds, {})
        group = groups.setdefault(composition.key, Group())
        insort(group.by_end, (-composition.end, composition.devices[0]))
        insort(group.by_device, composition.devices[0])

    def _remove_from_group(self, composition: Composition) -> None:
        if composition.closed:
            return
        groups = self._groups[composition.key.kinds]
        group = groups[composition.key]
        del group.by_end[bisect_left(group.by_end, (-composition.end, composition.devices[0]))]
        del group.by_device[bisect_left(group.by_device, composition.devices[0])]
        if not group.by_device:
            del groups[composition.key]

    # Queries by policies

    def need(self, job: int) -> CompositionRequest:
        """Return the request of a job at the current time; late jobs have no deadline (`CompositionRequest.at`)."""
        cached = self._needs.get(job)
        need = (CompositionRequest.of(job, self.snapshot, self.sharing) if cached is None else cached).at(self.now)
        if need is not cached:
            self._needs[job] = need
        return need

    def composition(self, device: int) -> Composition | None:
        """Return the composition of a device, None if the device is free."""
        return self._of.get(device)

    def candidates(self, need: CompositionRequest) -> Iterator[Candidate]:
        """Yield the groups where a workload has room and may share with the residents' kinds, regardless of its deadline."""
        for kinds, groups in self._groups.items():
            if not need.shares_with(kinds, self.sharing):
                continue
            for key in groups:
                if key.cores < need.cores or key.storage < need.storage:
                    continue
                if need.table is None:
                    if key.bandwidth >= need.bandwidth:
                        yield Candidate(need.requested, key)
                elif key.sharers < self.sharing.most_sharers(kinds, need):
                    yield Candidate(need.time(key.size, key.sharers + 1), key)

    def lowest(self, candidate: Candidate) -> int:
        """Return the lowest device of a candidate group, whether or not its residents are safe."""
        return self._groups[candidate.key.kinds][candidate.key].by_device[0]

    def first_by_end(
        self, candidates: Iterable[Candidate], rank: Callable[[Candidate, int], tuple[float, ...]]
    ) -> ChosenComposition | None:
        """Find the safe composition with the least (rank, device). Within a group, rank must not improve with earlier ends.

        `rank` gets a candidate and the composition's end (ns).
        """
        heads = []
        for candidate in candidates:
            end, device = self._groups[candidate.key.kinds][candidate.key].by_end[0]
            heads.append((rank(candidate, -end), device, candidate))
        heapq.heapify(heads)
        while heads:
            _, device, candidate = heads[0]
            composition = self._of[device]
            if self._safe(composition):
                return ChosenComposition(composition, candidate)
            group = self._groups[candidate.key.kinds][candidate.key]
            self._close(composition)
            if group.by_end:
                end, device = group.by_end[0]
                heapq.heapreplace(heads, (rank(candidate, -end), device, candidate))
            else:
                heapq.heappop(heads)
        return None

    def first_by_device(self, candidates: Iterable[Candidate], rank: Callable[[Candidate], float]) -> ChosenComposition | None:
        """Find the safe composition with the least (rank, device), where the rank is constant within a group."""
        heads = [(rank(c), self._groups[c.key.kinds][c.key].by_device[0], c) for c in candidates]
        heapq.heapify(heads)
        while heads:
            value, device, candidate = heads[0]
            composition = self._of[device]
            if self._safe(composition):
                return ChosenComposition(composition, candidate)
            group = self._groups[candidate.key.kinds][candidate.key]
            self._close(composition)
            if group.by_device:
                heapq.heapreplace(heads, (value, group.by_device[0], candidate))
            else:
                heapq.heappop(heads)
        return None

    def _safe(self, composition: Composition) -> bool:
        """Return whether all residents on track to meet their deadline would still meet it with one more sharer from now on."""
        if not self.sharing.changes:
            return True
        size, sharers = composition.key.size, composition.key.sharers
        return not any(
            r.need.table is not None and r.end <= r.need.deadline < self._end_with(r, size, sharers + 1)
            for r in composition.residents
        )

    def _close(self, composition: Composition) -> None:
        """Close an unsafe composition to new sharers until its residents have progressed far enough.

        With rates 1/a now and 1/b with one more sharer (b > a), a resident that would end `late` ns after its deadline ends
        in time once late / (b/a - 1) ns have passed. The margin covers rounding; `_safe` decides.
        """
        size, sharers, wait = composition.key.size, composition.key.sharers, 0.0
        for r in composition.residents:
            if r.need.table is None or r.end > r.need.deadline:
                continue
            late = self._end_with(r, size, sharers + 1) - r.need.deadline
            ratio = (1 + r.need.slowdown(size, sharers + 1)) / (1 + r.need.slowdown(size, sharers))
            if late > 0 and ratio > 1:
                wait = max(wait, late / (ratio - 1))
        self._remove_from_group(composition)
        composition.closed = True
        until = self.now + max(1, int(wait * (1 - 1e-9)) - 1000)
        self._closures += 1
        heapq.heappush(self._closed, (until, self._closures, composition))

    # Placement

    def place(self, need: CompositionRequest, node: int, devices: tuple[int, ...] = ()) -> Placement:
        """Return the placement of a workload on a node and devices that have room for it.

        Storage is taken from the lowest devices first. A modeled workload reserves no bandwidth: its table covers the cost
        of sharing.
        """
        rows = [(0, node, self.layout.cores, need.cores)]
        bandwidth, storage = 0 if need.table is not None else need.bandwidth, need.storage
        for device in devices:
            room = self._room[device]
            for resource, left, there in ((self.layout.bandwidth, bandwidth, room[0]), (self.layout.storage, storage, room[1])):
                rows.append((0, device, resource, min(left, there)))
            bandwidth, storage = bandwidth - rows[-2][3], storage - rows[-1][3]
        return Placement.of(rows)

    # Nodes

    def first_node(self, cores: int) -> int:
        """Return the lowest node with at least `cores` free cores, -1 if there is none."""
        k = int((self.cores >= cores).argmax())
        return int(self.layout.nodes[k]) if self.cores[k] >= cores else -1

    def emptiest_node(self, cores: int) -> int:
        """Return the node that has room and the least `beta` (eq. 3), the lowest node on ties; -1 if none has room."""
        k = int(np.where(self.cores >= cores, self._share, -1.0).argmax())
        return int(self.layout.nodes[k]) if self.cores[k] >= cores else -1

    def beta(self, node: int) -> float:
        """Return beta = 1 - free / installed cores of a node (eq. 3)."""
        k = self._node[node]
        return 1 - int(self.cores[k]) / max(int(self.installed_cores[k]), 1)

    def free_cores(self, node: int) -> int:
        """Return the free cores of a node."""
        return int(self.cores[self._node[node]])


class ChosenComposition(NamedTuple):
    """A composition in use that a policy chose, with the candidate group that describes it."""

    composition: Composition
    candidate: Candidate
