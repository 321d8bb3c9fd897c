"""Disaggregation-aware placement: maximize composition or minimize fragmentation, depending on the load of the devices.

Source: Call et al., section III-C and equation 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from poolwise.errors import InputError
from poolwise.model import Placement, Refusal
from poolwise.policies.placement.nvme.composition import CompositionPolicy
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.maximize_composition import NvmeMaximizeComposition
from poolwise.policies.placement.nvme.minimize_fragmentation import NvmeMinimizeFragmentation
from poolwise.policies.placement.nvme.need import Need
from poolwise.registry import register
from poolwise.short_repr import short_repr

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

    def choose(self, need: Need, view: Compositions) -> Placement | Refusal:
        """Choose by the policy that the present load selects."""
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
