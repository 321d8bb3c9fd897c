"""EASY as run in some publications: the head's reservation counts nodes and ignores the memory pools.

It exists to reproduce their numbers (memory-pool spec, "Parity"). The head may be delayed without bound: enough nodes are
free at its shadow time, but perhaps not enough pool memory.
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
    """EASY whose reservation assumes inexhaustible pools; jobs that start now must still fit, pool memory included."""

    def reservation_state(self, state: Snapshot) -> Snapshot:
        """Return the state with inexhaustible pools."""
        free = state.free.copy()
        free[state.machine.of_kind(Kind.POOL)] = inexhaustible(state.machine)
        return state.imagined(state.now, free)

    def rule(self) -> BackfillRule:
        """Return the rule: EASY that ignores pools in the head's reservation."""
        return BackfillRule("head", self.extra, counts_pools=False)


def inexhaustible(machine: Machine) -> int:
    """Return an amount that no pool runs out of, while the sum over all pools still fits 64 bits."""
    return int(np.iinfo(np.int64).max) // (4 * max(1, len(machine.of_kind(Kind.POOL))))
