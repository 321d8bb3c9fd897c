"""Minimize fragmentation: fill devices and the cores of their nodes evenly.

Source: Call et al., Algorithm 2, equations 2 and 3; NVMe-composition spec, "Policies".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.policies.placement.nvme.composition import Composer, joinable_groups
from poolwise.policies.placement.nvme.compositions import Candidate, Compositions
from poolwise.policies.placement.nvme.need import Need
from poolwise.registry import register


@register("placements", "nvme_minimize_fragmentation")
@dataclass(frozen=True)
class NvmeMinimizeFragmentation(Composer):
    """Join the composition of least alpha; otherwise compose the fewest devices that cover the need, on the emptiest node.

    With ratio = need / max(free, need), or 0 for resources that the workload does not need:
    alpha = (1 - (ratio_bandwidth + ratio_storage) / 2) / (cores / free cores of the composition's node).

    Parameters
    ----------
    alpha_as_printed
        Use equation 2 as printed: the ratios are not halved, and alpha is infinite where it would divide by 0 or less.
    late_shares
        Let a workload whose deadline has passed join a composition in use (`joinable_groups`).
    """

    alpha_as_printed: bool = False
    late_shares: bool = True

    def first(self, need: Need, view: Compositions) -> int:
        """Return the emptiest node."""
        return view.emptiest_node(need.cores)

    def compose(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Choose a composition in use, or free devices."""
        candidates = joinable_groups(need, view, self.late_shares)
        pick = view.first_by_device(candidates, lambda c: self._alpha(c, need))
        return self._new(need, view, first) if pick is None else (pick.composition.node, pick.composition.devices)

    def _alpha(self, candidate: Candidate, need: Need) -> float:
        key = candidate.key
        if self.alpha_as_printed:
            if key.bandwidth <= 0 or key.storage <= 0 or need.cores <= 0:
                return math.inf
            return (1 - (need.bandwidth / key.bandwidth + need.storage / key.storage)) / (need.cores / key.cores)
        used = (_ratio(need.bandwidth, key.bandwidth) + _ratio(need.storage, key.storage)) / 2
        return (1 - used) / (need.cores / key.cores) if need.cores else math.inf

    def _new(self, need: Need, view: Compositions, emptiest: int) -> tuple[int, tuple[int, ...]] | None:
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
