"""Composed devices as placement policies see them: what is in use by whom, what is free, and which compositions are alike.

Compositions that offer a workload the same (kinds, size, sharers, room, free cores of their node) form one group, so that
finding the best candidate looks at groups, of which there are as many on a thousand devices as on ten.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from poolwise.model import Placement, Snapshot
from poolwise.policies.placement.nvme.free_devices import FreeDevices
from poolwise.policies.placement.nvme.layout import device_layout
from poolwise.policies.placement.nvme.need import Need, Sharing
from poolwise.units import with_slowdown


@dataclass(slots=True)
class Resident:
    """A run on a composition: `number` is -1 for one that was started in this pass; end and deadline in ns."""

    need: Need
    number: int
    end: int


class GroupKey(NamedTuple):
    """What compositions of one group have in common.

    `bandwidth` is the room left under the residents' base demands (below 0 where modelled sharers ask for more than there
    is), `storage` the room left, `cores` what is free on the node.
    """

    kinds: frozenset[str]
    size: int
    sharers: int
    bandwidth: int
    storage: int
    cores: int


@dataclass(slots=True)
class Group:
    """Compositions that are alike, in the two orders in which policies want them; `unsafe` ones rest elsewhere."""

    by_end: list[tuple[int, int]] = field(default_factory=list)  # (-end, lowest device)
    by_device: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Composition:
    """Devices (ascending) composed for a node, and who shares them; named by its lowest device."""

    devices: tuple[int, ...]
    node: int
    residents: list[Resident]
    key: GroupKey
    end: int  # latest expected end of a resident, ns
    resting: bool = False  # no sharer may join now, or a resident would miss its deadline


class Candidate(NamedTuple):
    """A group in which a workload would take `time` ns."""

    time: int
    key: GroupKey


class Compositions:
    """The devices and nodes of a machine at one instant, kept up to date by `refresh` and `take`.

    Attributes
    ----------
    now : ns
    cores : (n_node,) free cores, in the order of `layout.nodes`
    free : devices in no composition
    demand : [bandwidth, storage] base demand of all runs on devices
    waiting : [bandwidth, storage] base demand of the queue, None where the caller does not know it
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
        self._node = {int(owner): k for k, owner in enumerate(layout.nodes.tolist())}
        self._groups: dict[frozenset[str], dict[GroupKey, Group]] = {}
        self._of: dict[int, Composition] = {}  # any device -> its composition
        self._on_node: dict[int, dict[int, None]] = {}  # node -> lowest devices of its compositions
        self._resting: list[tuple[int, int, Composition]] = []  # (until, counter, composition)
        self._rests = 0
        self._needs: dict[int, Need] = {}  # what jobs need never changes, except that they become late
        self._room: dict[int, list[int]] = {}  # device -> [bandwidth, storage] not reserved
        self._read(layout.devices.tolist())

    # Keeping up to date

    def refresh(self, snapshot: Snapshot, owners: Iterable[int]) -> bool:
        """Take in a later state, in which nothing but `owners` has changed.

        Returns whether more may fit than before as far as devices go: some were read again, or a composition that rested
        may be joined now.
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
            self._forget(device)
        self._read(sorted(devices))
        more = bool(devices)
        while self._resting and self._resting[0][0] <= self.now:
            _, _, composition = heapq.heappop(self._resting)
            if composition.resting and self._of.get(composition.devices[0]) is composition:
                composition.resting, more = False, True
                self._insert(composition)
        return more

    def allocate(self, need: Need, placement: Placement) -> None:
        """Let a workload start where a policy has placed it."""
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
            self._forget(device)
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
                continue  # it has left the machine, and its run is still to end: nobody may join, and nothing is free
            residents = [Resident(self.need(snapshot.run(n).job), n, 0) for n in numbers]
            composed = tuple(o for o in owners if o in self.layout.place)
            for resident in residents:
                # an imagined start changes the speed of its neighbours, which the snapshot's own ends do not show
                resident.end = (
                    self._end_with(resident, len(composed), len(residents))
                    if min(numbers) < 0
                    else snapshot.run(resident.number).expected_end
                )
            self._compose(composed, node, residents)
        self.free.add(free, snapshot)

    def _end_with(self, resident: Resident, size: int, sharers: int) -> int:
        """Expected end of a resident from now on with a constant number of sharers."""
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
        self._insert(composition)

    def _forget(self, device: int) -> None:
        """Dissolve the composition of a device, or take a free device off the list; `_read` or `_compose` follows."""
        self.free.remove(device)
        composition = self._of.get(device)
        if composition is None:
            return
        self._withdraw(composition)
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
            self._withdraw(composition)
            composition.key = composition.key._replace(cores=free)
            if not composition.resting:
                self._insert(composition)

    def _insert(self, composition: Composition) -> None:
        groups = self._groups.setdefault(composition.key.kinds, {})
        group = groups.setdefault(composition.key, Group())
        insort(group.by_end, (-composition.end, composition.devices[0]))
        insort(group.by_device, composition.devices[0])

    def _withdraw(self, composition: Composition) -> None:
        if composition.resting:
            return
        groups = self._groups[composition.key.kinds]
        group = groups[composition.key]
        del group.by_end[bisect_left(group.by_end, (-composition.end, composition.devices[0]))]
        del group.by_device[bisect_left(group.by_device, composition.devices[0])]
        if not group.by_device:
            del groups[composition.key]

    # Questions of policies

    def need(self, job: int) -> Need:
        """What a job needs as of now: late ones carry no deadline (`Need.at`)."""
        known = self._needs.get(job)
        need = (Need.of(job, self.snapshot, self.sharing) if known is None else known).at(self.now)
        if need is not known:
            self._needs[job] = need
        return need

    def composition(self, device: int) -> Composition | None:
        """Composition of a device, None where it is free."""
        return self._of.get(device)

    def candidates(self, need: Need) -> Iterator[Candidate]:
        """Groups in which a workload has room beside residents of kinds that it may share with, whatever its deadline."""
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
        """Lowest device of a candidate group, whether or not its residents are safe."""
        return self._groups[candidate.key.kinds][candidate.key].by_device[0]

    def first_by_end(self, candidates: Iterable[Candidate], rank: Callable[[Candidate, int], tuple[float, ...]]) -> Pick | None:
        """Find the safe composition of least (rank, device); in a group the rank may depend on the end, later ends first.

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
                return Pick(composition, candidate)
            group = self._groups[candidate.key.kinds][candidate.key]
            self._rest(composition)
            if group.by_end:
                end, device = group.by_end[0]
                heapq.heapreplace(heads, (rank(candidate, -end), device, candidate))
            else:
                heapq.heappop(heads)
        return None

    def first_by_device(self, candidates: Iterable[Candidate], rank: Callable[[Candidate], float]) -> Pick | None:
        """Find the safe composition of least (rank, device), where the rank is the same throughout a group."""
        heads = [(rank(c), self._groups[c.key.kinds][c.key].by_device[0], c) for c in candidates]
        heapq.heapify(heads)
        while heads:
            value, device, candidate = heads[0]
            composition = self._of[device]
            if self._safe(composition):
                return Pick(composition, candidate)
            group = self._groups[candidate.key.kinds][candidate.key]
            self._rest(composition)
            if group.by_device:
                heapq.heapreplace(heads, (value, group.by_device[0], candidate))
            else:
                heapq.heappop(heads)
        return None

    def _safe(self, composition: Composition) -> bool:
        """Whether every resident that will meet its deadline still would with one more sharer from now on."""
        if not self.sharing.changes:
            return True
        size, sharers = composition.key.size, composition.key.sharers
        return not any(
            r.need.table is not None and r.end <= r.need.deadline < self._end_with(r, size, sharers + 1)
            for r in composition.residents
        )

    def _rest(self, composition: Composition) -> None:
        """Set an unsafe composition aside until its residents have progressed far enough.

        With rates 1/a now and 1/b with one more sharer (b > a), a resident that would end `late` ns too late ends in time
        once late / (b/a - 1) ns have passed. The margin is for rounding: `_safe` decides.
        """
        size, sharers, wait = composition.key.size, composition.key.sharers, 0.0
        for r in composition.residents:
            if r.need.table is None or r.end > r.need.deadline:
                continue
            late = self._end_with(r, size, sharers + 1) - r.need.deadline
            ratio = (1 + r.need.slowdown(size, sharers + 1)) / (1 + r.need.slowdown(size, sharers))
            if late > 0 and ratio > 1:
                wait = max(wait, late / (ratio - 1))
        self._withdraw(composition)
        composition.resting = True
        until = self.now + max(1, int(wait * (1 - 1e-9)) - 1000)
        self._rests += 1
        heapq.heappush(self._resting, (until, self._rests, composition))

    # Placing

    def place(self, need: Need, node: int, devices: tuple[int, ...] = ()) -> Placement:
        """Rows of a workload on a node and devices that have room for it.

        Storage is taken from the lowest devices first. A modelled workload reserves no bandwidth: its table covers what
        sharing costs.
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
        """Lowest node with at least `cores` free cores, -1 if there is none."""
        k = int((self.cores >= cores).argmax())
        return int(self.layout.nodes[k]) if self.cores[k] >= cores else -1

    def emptiest_node(self, cores: int) -> int:
        """Node of least beta = 1 - free / installed cores (eq. 3) among those with room, the lowest of several, or -1."""
        k = int(np.where(self.cores >= cores, self._share, -1.0).argmax())
        return int(self.layout.nodes[k]) if self.cores[k] >= cores else -1

    def beta(self, node: int) -> float:
        """1 - free / installed cores of a node (eq. 3)."""
        k = self._node[node]
        return 1 - int(self.cores[k]) / max(int(self.installed_cores[k]), 1)

    def free_cores(self, node: int) -> int:
        """Free cores of a node."""
        return int(self.cores[self._node[node]])


class Pick(NamedTuple):
    """A composition in use that a policy chose, and what the workload would find there."""

    composition: Composition
    candidate: Candidate
