"""Maximize composition: share what is in use, else compose as many free devices as make the workload faster.

Source: Call et al., Algorithm 1 and equation 1; specs of the NVMe composition, "Policies".
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.policies.placement.nvme.composition import Composer, open_to
from poolwise.policies.placement.nvme.compositions import Candidate, Compositions, Pick
from poolwise.policies.placement.nvme.need import Need
from poolwise.registry import register


@register("placements", "nvme_maximize_composition")
@dataclass(frozen=True)
class NvmeMaximizeComposition(Composer):
    """Join the composition that outlives the workload longest; without one compose devices while that shortens its time.

    Candidates are the compositions in use where the workload meets its deadline and no resident is made to miss its own,
    by TTL(job) - TTL(composition), then fitness, ascending. New compositions take the last number of free devices at which
    the modelled time alone still fell, within the workload's peak bandwidth; a workload that is late, or that no number can
    save, gets the fewest that cover its need.

    Parameters
    ----------
    max_extension
        A candidate whose life the workload would extend by more than this fraction of its time loses to a new composition
        if one is possible; None for never (Algorithm 1 as printed).
    smallest_k_meeting_deadline
        Compose the fewest devices that meet the deadline instead of the fastest composition.
    late_shares
        Whether a workload whose deadline has passed may join a composition in use (`open_to`).
    """

    max_extension: float | None = None
    smallest_k_meeting_deadline: bool = False
    late_shares: bool = True

    def first(self, need: Need, view: Compositions) -> int:
        """Return the first node with cores."""
        return view.first_node(need.cores)

    def compose(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Find a composition in use, or free devices."""
        candidates = open_to(need, view, self.late_shares)
        pick = view.first_by_end(candidates, lambda c, end: (c.time - (end - view.now), _fitness(c, need, view)))
        joined = None if pick is None else (pick.composition.node, pick.composition.devices)
        if pick is not None and not self._extends_too_far(pick, view):
            return joined
        return self._new(need, view, first) or joined

    def _extends_too_far(self, pick: Pick, view: Compositions) -> bool:
        time = pick.candidate.time
        return self.max_extension is not None and time - (pick.composition.end - view.now) > self.max_extension * time

    def _new(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """(node, devices) of the place that serves best: deadline met, then least time, then fewest devices, lowest place."""
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
        """Free devices of one place: the last number at which the time fell, the fewest if that does not save the deadline."""
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
    """Room left after the workload, in devices: equation 1 with each term at least 0 and made comparable."""
    key, layout = candidate.key, view.layout
    return (
        max(0, key.bandwidth - need.bandwidth) / layout.bandwidth_unit
        + max(0, key.storage - need.storage) / layout.storage_unit
    )
