"""Maximize composition: join a composition in use, else compose as many free devices as speed up the workload.

Source: Call et al., Algorithm 1 and equation 1; NVMe-composition spec, "Policies".
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.policies.placement.nvme.composition import Composer, joinable_groups
from poolwise.policies.placement.nvme.compositions import Candidate, Compositions, Pick
from poolwise.policies.placement.nvme.need import Need
from poolwise.registry import register


@register("placements", "nvme_maximize_composition")
@dataclass(frozen=True)
class NvmeMaximizeComposition(Composer):
    """Join the composition that outlives the workload longest; otherwise compose devices while each one shortens its time.

    Candidates are the compositions in use where the workload meets its deadline and makes no resident miss its own. They are
    ranked by TTL(job) - TTL(composition), then by fitness, ascending. A new composition takes the last number of free devices
    at which the modeled time alone still decreased, within the workload's peak bandwidth. A workload that is late, or that
    no number of devices can save, gets the fewest devices that cover its need.

    Parameters
    ----------
    max_extension
        Prefer a new composition, if possible, to a candidate whose life the workload would extend by more than this fraction
        of its time; None never does (Algorithm 1 as printed).
    smallest_k_meeting_deadline
        Compose the fewest devices that meet the deadline instead of the fastest composition.
    late_shares
        Let a workload whose deadline has passed join a composition in use (`joinable_groups`).
    """

    max_extension: float | None = None
    smallest_k_meeting_deadline: bool = False
    late_shares: bool = True

    def first(self, need: Need, view: Compositions) -> int:
        """Return the first node with enough cores."""
        return view.first_node(need.cores)

    def compose(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Choose a composition in use, or free devices."""
        candidates = joinable_groups(need, view, self.late_shares)
        pick = view.first_by_end(candidates, lambda c, end: (c.time - (end - view.now), _fitness(c, need, view)))
        joined = None if pick is None else (pick.composition.node, pick.composition.devices)
        if pick is not None and not self._extends_too_far(pick, view):
            return joined
        return self._new(need, view, first) or joined

    def _extends_too_far(self, pick: Pick, view: Compositions) -> bool:
        time = pick.candidate.time
        return self.max_extension is not None and time - (pick.composition.end - view.now) > self.max_extension * time

    def _new(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Return (node, devices) of the best location: deadline met, then least time, fewest devices, lowest location."""
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

    def _devices(self, need: Need, view: Compositions, place: int) -> tuple[int, ...] | None:
        """Return free devices of one location: the last number at which the time fell, or the fewest if still too late."""
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


def _fitness(candidate: Candidate, need: Need, view: Compositions) -> float:
    """Return the room left after the workload, in devices: equation 1 with terms clipped at 0 and normalized."""
    key, layout = candidate.key, view.layout
    return (
        max(0, key.bandwidth - need.bandwidth) / layout.bandwidth_unit
        + max(0, key.storage - need.storage) / layout.storage_unit
    )
