"""EASY as in some published runs: the head's reservation counts nodes and forgets the memory pools.

Only here so that their numbers can be explained (specs of the memory pools, "Parity"). The head may be delayed without bound:
at its shadow time there are nodes, but perhaps no pool memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.model import Kind, Machine, Snapshot
from poolwise.model.rules import BackfillRule
from poolwise.policies.backfill.easy import Easy
from poolwise.registry import register


@register("backfills", "easy_nodes_only")
@dataclass(frozen=True)
class EasyNodesOnly(Easy):
    """EASY whose reservation treats every pool as inexhaustible; what starts now must still fit with its pool memory."""

    def reserving(self, state: Snapshot) -> Snapshot:
        """State with pools that nothing can empty."""
        free = state.free.copy()
        free[state.machine.of_kind(Kind.POOL)] = inexhaustible(state.machine)
        return state.imagined(state.now, free)

    def rule(self) -> BackfillRule:
        """EASY that counts no pools for the head."""
        return BackfillRule("head", self.extra, counts_pools=False)


def inexhaustible(machine: Machine) -> int:
    """Amount that no pool runs out of, and the sum of all pools still fits 64 bits."""
    return int(np.iinfo(np.int64).max) // (4 * max(1, len(machine.of_kind(Kind.POOL))))
