"""Rack placement on nodes with different amounts of local memory; `RackPlacement` uses it if nodes differ.

A job needs max(0, memory - local memory) MiB of remote memory on each node. It prefers nodes on which it needs the least, then
those with the fewest further resources, such as GPUs, then those with the least local memory. Nodes with more resources are
thus left to the jobs that need them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Refusal
from poolwise.model.machine import RackLayout
from poolwise.model.rules import PoolScope

Choice = list[tuple[int, int]]
"""(group, number of its nodes)."""


@dataclass(frozen=True)
class MixedRacks:
    """State of racks with different nodes, for a job with `memory` MiB per node.

    Attributes
    ----------
    layout : groups of nodes
    memory : MiB that the job requests per node
    free : free nodes of each group that the job may use
    pool : free MiB of the pool of each group's rack
    scope : pools that a node may use
    """

    layout: RackLayout
    memory: int
    free: list[int]
    pool: list[int]
    scope: PoolScope

    def choose(self, n: int) -> Choice | Refusal:
        """Choose n nodes: in one rack if possible, otherwise in as few racks as possible.

        Among racks that can hold the job, choose the one on which it needs least remote memory, then the one whose
        nodes have the fewest further resources and the least local memory, then the most free nodes, then the lowest
        index. In scope "system", if the pools cannot serve this choice, take the nodes with the least remote memory of
        the whole machine.
        """
        if sum(self.free) < n:
            return Refusal("not enough free nodes", "nodes", n, sum(self.free))
        members: dict[int, list[int]] = {}
        for g in self._by_preference(range(len(self.free))):
            members.setdefault(int(self.layout.rack[g]), []).append(g)
        offers = {rack: self._take(n, groups) for rack, groups in members.items()}
        ranked = sorted(offers, key=lambda rack: (-_count(offers[rack]), *self._cost(offers[rack], members[rack]), rack))
        chosen: Choice = []
        for rack in ranked:
            chosen += self._take(n - _count(chosen), members[rack])
        if _count(chosen) < n:
            return Refusal("not enough free nodes with the requested memory in reach", "nodes", n, _count(chosen))
        available = self.pool_memory()
        if self.scope == "system" and self._remote(chosen) > available:
            chosen = self._take(n, self._by_preference(range(len(self.free))))
            if self._remote(chosen) > available:
                return Refusal("not enough pool memory", "memory", self._remote(chosen), available)
        return chosen

    def remote(self, group: int) -> int:
        """Return the MiB of remote memory that the job needs on a node of a group."""
        return max(0, self.memory - int(self.layout.local[group]))

    def pool_memory(self) -> int:
        """Return the free MiB of all pools."""
        return sum(dict(zip(self.layout.rack.tolist(), self.pool, strict=True)).values())

    def _by_preference(self, groups: Iterable[int]) -> list[int]:
        return sorted(groups, key=lambda g: (self.remote(g), self._others(g), int(self.layout.local[g]), g))

    def _others(self, group: int) -> int:
        """Return the amount of further resources of a node, such as GPUs."""
        return sum(int(brought[group]) for brought in self.layout.others.values())

    def _take(self, n: int, groups: list[int]) -> Choice:
        """Take up to n nodes from groups, in their given order; in scope "rack", at most as many as their pool can serve."""
        taken, left = [], self.pool[groups[0]]
        for g in groups:
            count, each = min(n, self.free[g]), self.remote(g)
            if each and self.scope == "rack":
                count = min(count, left // each)
                left -= count * each
            if count:
                taken.append((g, count))
                n -= count
        return taken

    def _remote(self, choice: Choice) -> int:
        return sum(count * self.remote(g) for g, count in choice)

    def _cost(self, choice: Choice, groups: list[int]) -> tuple[int, int, int, int]:
        """Return the remote MiB, further resources and local MiB of a choice, and minus the free nodes of its rack."""
        others, local = (sum(count * each(g) for g, count in choice) for each in (self._others, self.layout.local.item))
        return self._remote(choice), others, local, -sum(self.free[g] for g in groups)


def fits_mixed(
    n: IntArray, memory: IntArray, layout: RackLayout, free: IntArray, pool: IntArray, scope: PoolScope
) -> BoolArray:
    """Return a mask of exactly the jobs (or states) that `MixedRacks.choose` accepts, (k,).

    Parameters
    ----------
    n, memory
        (k,) or (1,) nodes of each job, and MiB per node.
    free, pool
        (k, n_group) or (1, n_group) free nodes, and free MiB of the pool of each group's rack.
    """
    racks, of = np.unique(layout.rack, return_inverse=True)
    first = np.unique(of, return_index=True)[1]
    count = np.broadcast_shapes(n.shape, (len(pool),))[0]
    left = np.array(np.broadcast_to(pool[:, first], (count, len(racks))))
    missing = np.array(np.broadcast_to(n, count))
    needed = np.zeros(len(left), dtype=np.int64)
    for g in np.argsort(-layout.local, kind="stable").tolist():  # the order in which remote memory per node rises
        remote = np.maximum(memory - layout.local[g], 0)
        take = np.minimum(missing, free[:, g])
        if scope == "rack":
            take = np.where(remote > 0, np.minimum(take, left[:, of[g]] // np.maximum(remote, 1)), take)
            left[:, of[g]] -= take * remote
        missing = missing - take
        needed += take * remote
    fits: BoolArray = missing == 0
    return fits if scope == "rack" else fits & (needed <= left.sum(axis=1))


def _count(choice: Choice) -> int:
    return sum(count for _, count in choice)
