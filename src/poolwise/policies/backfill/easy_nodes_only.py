"""EASY as some published runs had it: the head's reservation counts nodes and forgets the memory pools.

Only here so that their numbers can be explained (specs of the memory pools, "Parity"). The head may be delayed without bound:
at its shadow time there are nodes, but perhaps no pool memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.model import Kind, Snapshot
from poolwise.policies.backfill.easy import Easy
from poolwise.registry import register


@register("backfills", "easy_nodes_only")
@dataclass(frozen=True)
class EasyNodesOnly(Easy):
    """EASY whose reservation takes every pool for inexhaustible; what starts now must still fit with its pool memory."""

    def reserving(self, state: Snapshot) -> Snapshot:
        """State with pools that nothing can empty."""
        pools = state.machine.of_kind(Kind.POOL)
        free = state.free.copy()
        free[pools] = np.iinfo(np.int64).max // (4 * max(1, len(pools)))
        return state.imagined(state.now, free)
