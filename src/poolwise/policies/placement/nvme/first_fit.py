"""First fit: the first free device with room, on the first node with enough cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poolwise.policies.placement.nvme.composition import Composer
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.need import Need
from poolwise.registry import register


@register("placements", "nvme_first_fit")
@dataclass(frozen=True)
class NvmeFirstFit(Composer):
    """Take the first free device with room on the first node with enough cores; never several devices or one in use.

    The policy uses no performance model and expects base times. Source: Call et al., section IV-C.

    Parameters
    ----------
    share
        Also accept a device in use, within the base bandwidth and capacity that its users leave.
    """

    share: bool = False
    single_device: ClassVar[bool] = True

    def first(self, need: Need, view: Compositions) -> int:
        """Return the first node with enough cores."""
        return view.first_node(need.cores)

    def compose(self, need: Need, view: Compositions, first: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the first device and its node."""
        found = [*self._shared(need, view), *self._free(need, view, first)]
        if not found:
            return None
        device, node = min(found)
        return node, (device,)

    def _free(self, need: Need, view: Compositions, first: int) -> list[tuple[int, int]]:
        """Return the first free (device, node) of each location."""
        found = []
        for place, home in enumerate(view.layout.inside):
            node = first if home < 0 else home
            device = view.free.first(place, need) if view.free_cores(node) >= need.cores else -1
            if device >= 0:
                found.append((device, node))
        return found

    def _shared(self, need: Need, view: Compositions) -> list[tuple[int, int]]:
        """Return (device, node) of the first devices in use that have room under the base demands."""
        if not self.share:
            return []
        room = [c for c in view.candidates(need) if c.key.size == 1 and c.key.bandwidth >= need.bandwidth]
        devices = [view.lowest(c) for c in room]
        return [(device, found.node) for device in devices if (found := view.composition(device)) is not None]
