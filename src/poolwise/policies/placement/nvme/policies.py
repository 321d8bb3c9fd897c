"""Placement policies for composed NVMe.

Source: Call et al., section III-C: Algorithm 1 and equation 1 (maximize composition), Algorithm 2 and equations 2 and 3
(minimize fragmentation), equation 4 (disaggregation-aware); NVMe-composition spec, "Policies".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from poolwise.errors import InputError
from poolwise.model import Placement, Refusal
from poolwise.policies.placement.nvme.composition import Composer, CompositionPolicy, joinable_groups
from poolwise.policies.placement.nvme.composition_request import CompositionRequest
from poolwise.policies.placement.nvme.compositions import Candidate, ChosenComposition, Compositions
from poolwise.registry import register
from poolwise.short_repr import short_repr

GIGABYTE = 1e9 / 2**20
"""MiB in a GB; bandwidth is in MB/s."""


@register("placements", "nvme_first_fit")
@dataclass(frozen=True)
class NvmeFirstFit(Composer):
    """Take the first free device with room on the first node with enough cores; never take several devices, or one in use.

    The policy uses no performance model and expects base times. Source: Call et al., section IV-C.

    Parameters
    ----------
    share
        Also accept a device in use, within the base bandwidth and capacity that its users leave.
    """

    share: bool = False
    single_device: ClassVar[bool] = True

    def first(self, need: CompositionRequest, view: Compositions) -> int:
        """Return the first node with enough cores."""
        return view.first_node(need.cores)

    def compose(self, need: CompositionRequest, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the first device and its node."""
        candidates = [*self._shared(need, view), *self._free(need, view, first)]
        if not candidates:
            return None
        device, node = min(candidates)
        return node, (device,)

    def _free(self, need: CompositionRequest, view: Compositions, first: int) -> list[tuple[int, int]]:
        """Return the first free (device, node) of each location."""
        candidates = []
        for place, home in enumerate(view.layout.inside):
            node = first if home < 0 else home
            device = view.free.first(place, need) if view.free_cores(node) >= need.cores else -1
            if device >= 0:
                candidates.append((device, node))
        return candidates

    def _shared(self, need: CompositionRequest, view: Compositions) -> list[tuple[int, int]]:
        """Return (device, node) of the first devices in use that have room under the base demands."""
        if not self.share:
            return []
        room = [c for c in view.candidates(need) if c.key.size == 1 and c.key.bandwidth >= need.bandwidth]
        devices = [view.lowest(c) for c in room]
        return [(device, composition.node) for device in devices if (composition := view.composition(device)) is not None]


@register("placements", "nvme_minimize_fragmentation")
@dataclass(frozen=True)
class NvmeMinimizeFragmentation(Composer):
    """Join the composition of least alpha; otherwise compose the fewest devices that cover the need, on the emptiest node.

    With ratio = need / max(free, need), or 0 for resources that the workload does not need:
    alpha = (1 - (ratio_bandwidth + ratio_storage) / 2) / (cores / free cores of the composition's node).

    Parameters
    ----------
    alpha_as_printed
        Use equation 2 as printed: the ratios are not halved, and alpha is infinite if its divisor would be 0 or less.
    late_shares
        Let a workload whose deadline has passed join a composition in use (`joinable_groups`).
    """

    alpha_as_printed: bool = False
    late_shares: bool = True

    def first(self, need: CompositionRequest, view: Compositions) -> int:
        """Return the emptiest node."""
        return view.emptiest_node(need.cores)

    def compose(self, need: CompositionRequest, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Choose a composition in use, or free devices."""
        candidates = joinable_groups(need, view, self.late_shares)
        pick = view.first_by_device(candidates, lambda c: self._alpha(c, need))
        return self._new(need, view, first) if pick is None else (pick.composition.node, pick.composition.devices)

    def _alpha(self, candidate: Candidate, need: CompositionRequest) -> float:
        key = candidate.key
        if self.alpha_as_printed:
            if key.bandwidth <= 0 or key.storage <= 0 or need.cores <= 0:
                return math.inf
            return (1 - (need.bandwidth / key.bandwidth + need.storage / key.storage)) / (need.cores / key.cores)
        used = (_ratio(need.bandwidth, key.bandwidth) + _ratio(need.storage, key.storage)) / 2
        return (1 - used) / (need.cores / key.cores) if need.cores else math.inf

    def _new(self, need: CompositionRequest, view: Compositions, emptiest: int) -> tuple[int, tuple[int, ...]] | None:
        """Return (node, devices) of the location that needs the fewest devices, then has the emptiest node, then is lowest."""
        best: tuple[tuple[int, float, int], int, tuple[int, ...]] | None = None
        for place, home in enumerate(view.layout.inside):
            node = emptiest if home < 0 else home
            devices = next(view.free.covers(place, need), None) if view.free_cores(node) >= need.cores else None
            if devices is not None:
                rank = (len(devices), view.beta(node), place)
                if best is None or rank < best[0]:
                    best = rank, node, devices
        return None if best is None else best[1:]


def _ratio(need: int, free: int) -> float:
    return need / max(free, need) if need else 0.0


@register("placements", "nvme_maximize_composition")
@dataclass(frozen=True)
class NvmeMaximizeComposition(Composer):
    """Join the composition that outlives the workload longest.

    Otherwise, compose devices as long as each one shortens its run time.

    Candidates are the compositions in use where the workload meets its deadline and makes no resident miss its own. They are
    ranked by TTL(job) - TTL(composition), then by fitness, ascending. A new composition takes free devices for as long as each
    one reduces the modeled time alone, within the workload's peak bandwidth. A workload that is late, or that no number of
    devices can save, gets the fewest devices that cover its need.

    Parameters
    ----------
    max_extension
        Prefer a new composition, if possible, to a candidate whose life the workload would extend by more than this fraction of
        its time; None never prefers one (Algorithm 1 as printed).
    smallest_k_meeting_deadline
        Compose the fewest devices that meet the deadline instead of the fastest composition.
    late_shares
        Let a workload whose deadline has passed join a composition in use (`joinable_groups`).
    fitness_as_printed
        Use equation 1 as printed: MB/s and GB are added without normalization, and missing bandwidth counts as negative.
    each_parameter
        Search bandwidth and then capacity as in lines 20 to 33 of Algorithm 1: start from the base time, and continue after
        an amount that does not help. No model depends on cores, so their loop never changes a request.
    """

    __repr__ = short_repr

    max_extension: float | None = None
    smallest_k_meeting_deadline: bool = False
    late_shares: bool = True
    fitness_as_printed: bool = False
    each_parameter: bool = False

    def first(self, need: CompositionRequest, view: Compositions) -> int:
        """Return the first node with enough cores."""
        return view.first_node(need.cores)

    def compose(self, need: CompositionRequest, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Choose a composition in use, or free devices."""
        candidates = joinable_groups(need, view, self.late_shares)
        pick = view.first_by_end(candidates, lambda c, end: (c.time - (end - view.now), self._fitness(c, need, view)))
        joined = None if pick is None else (pick.composition.node, pick.composition.devices)
        if pick is not None and not self._extends_too_far(pick, view):
            return joined
        return self._new(need, view, first) or joined

    def _extends_too_far(self, pick: ChosenComposition, view: Compositions) -> bool:
        time = pick.candidate.time
        return self.max_extension is not None and time - (pick.composition.end - view.now) > self.max_extension * time

    def _new(self, need: CompositionRequest, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Return (node, devices) of the best location: deadline met first, then least time, fewest devices and lowest index."""
        best: tuple[tuple[bool, int, int, int], int, tuple[int, ...]] | None = None
        for place, home in enumerate(view.layout.inside):
            node = first if home < 0 else home
            if view.free_cores(node) < need.cores:
                continue
            devices = self._devices(need, view, place)
            if devices is None:
                continue
            time = need.time(len(devices), 1)
            late = need.late or view.now + time > need.deadline
            rank = (late, 0 if late else time, len(devices), place)
            if best is None or rank < best[0]:
                best = rank, node, devices
        return None if best is None else best[1:]

    def _devices(self, need: CompositionRequest, view: Compositions, place: int) -> tuple[int, ...] | None:
        """Return free devices of one location: added while each reduces the time, or the fewest if that is still too late."""
        if self.each_parameter and not need.late:
            return self._by_each_parameter(need, view, place)
        covers = view.free.covers(place, need)
        fewest = best = next(covers, None)
        if fewest is None or best is None or need.late:
            return fewest
        time = need.time(len(fewest), 1)
        for more in covers:
            if self.smallest_k_meeting_deadline and view.now + time <= need.deadline:
                break
            bandwidth = sum(view.free.size(device)[0] for device in more)
            if bandwidth > need.peak or need.time(len(more), 1) >= time:
                break
            best, time = more, need.time(len(more), 1)
        return best if view.now + time <= need.deadline else fewest

    def _by_each_parameter(self, need: CompositionRequest, view: Compositions, place: int) -> tuple[int, ...] | None:
        """Return free devices of one location as the printed loops of Algorithm 1 choose them, or the fewest if too late."""
        covers = list(view.free.covers(place, need))
        best, time = covers[0] if covers else None, need.requested
        for limit in (max(need.peak, need.bandwidth), math.inf):  # of bandwidth; the models limit no capacity
            for devices in covers:
                within = len(devices) == len(covers[0]) or sum(view.free.size(d)[0] for d in devices) <= limit
                if within and need.time(len(devices), 1) < time:
                    best, time = devices, need.time(len(devices), 1)
        return covers[0] if covers and view.now + time > need.deadline else best

    def _fitness(self, candidate: Candidate, need: CompositionRequest, view: Compositions) -> float:
        """Return the room that the workload leaves, in devices: equation 1 with terms clipped at 0 and normalized."""
        bandwidth, storage = candidate.key.bandwidth - need.bandwidth, candidate.key.storage - need.storage
        if self.fitness_as_printed:
            return bandwidth + storage / GIGABYTE
        return max(0, bandwidth) / view.layout.bandwidth_unit + max(0, storage) / view.layout.storage_unit


CompositionChoice = Literal["maximize_composition", "minimize_fragmentation"]


@register("placements", "nvme_disaggregation_aware")
@dataclass(frozen=True)
class NvmeDisaggregationAware(CompositionPolicy):
    """Maximize composition if both loads are at most 1/2, or if bandwidth is at least 0.7 and capacity at most 0.7.

    Otherwise minimize fragmentation. A load is the base demand of the running workloads relative to the installed amount.

    Parameters
    ----------
    count_waiting
        Count waiting workloads as demand too. Only the scheduler "composition" supports this.
    capacity_alone
        Decide by capacity alone: maximize composition while its load is at most 0.7, regardless of the bandwidth load. The
        paper does not state this; it is inferred from the published composition sizes.
    """

    __repr__ = short_repr

    maximize: NvmeMaximizeComposition = field(default_factory=NvmeMaximizeComposition)
    minimize: NvmeMinimizeFragmentation = field(default_factory=NvmeMinimizeFragmentation)
    count_waiting: bool = False
    capacity_alone: bool = False

    @property
    def counts_waiting(self) -> bool:
        """True if waiting workloads count as demand."""
        return self.count_waiting

    def choose(self, need: CompositionRequest, view: Compositions) -> Placement | Refusal:
        """Choose by the policy that the current load selects."""
        bandwidth, storage = view.demand
        if self.count_waiting:
            if view.waiting is None:
                raise InputError(
                    "count_waiting requires a scheduler that provides the queue",
                    field="count_waiting",
                    remedy="use 'composition'",
                )
            bandwidth, storage = bandwidth + view.waiting[0], storage + view.waiting[1]
        installed = view.layout.installed
        busy, full = bandwidth / max(installed[0], 1), storage / max(installed[1], 1)
        maximize = rule(busy, full, self.capacity_alone) == "maximize_composition"
        return self.maximize.choose(need, view) if maximize else self.minimize.choose(need, view)


def rule(bandwidth_load: float, capacity_load: float, capacity_alone: bool = False) -> CompositionChoice:
    """Return the policy that equation 4 selects, or its variant by capacity alone."""
    low = bandwidth_load <= 0.5 and capacity_load <= 0.5
    steep = (bandwidth_load >= 0.7 or capacity_alone) and capacity_load <= 0.7
    return "maximize_composition" if low or steep else "minimize_fragmentation"
