"""Placement of rigid jobs on racks with memory pools: one rack if one can hold the job, else the fewest that offer most.

Source: specs of the memory pools, "Placement"; Li et al., section IV-A (consolidate while keeping racks balanced).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.eligibility import eligible_nodes
from poolwise.model.rules import PoolScope as PoolScope
from poolwise.model.rules import RackRule
from poolwise.policies.placement.request_kinds import request_kinds
from poolwise.registry import register


@register("placements", "racks")
@dataclass(frozen=True)
class RackPlacement(PlacementPolicy):
    """Whole nodes of racks, remote memory from the rack's pool or from any; all tasks of a job together, as one job's nodes.

    The offer of a rack is min(free nodes, pool free / remote memory per node); in scope "system" the pools are one sum and
    the offer is the free nodes. Among racks whose offer holds the whole job: most free nodes, then lowest index. Otherwise
    racks by (offer, free nodes) descending, then index, filled in that order. In scope "system" a node's own rack's pool
    is used first, then the pools with most free memory (lowest index), split freely. Where runs hold more than there is by now,
    nothing is free.

    Parameters
    ----------
    scope
        "rack": a node may use only its rack's pool; "system": any pool.
    """

    knows_eligibility: ClassVar[bool] = True
    scope: PoolScope = "rack"

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place all nodes of a job, or say whether nodes or pool memory are short."""
        layout = snapshot.machine.racks
        free = np.maximum(snapshot.free[layout.nodes, layout.node_column], 0).tolist()
        if snapshot.machine.node_sets:
            may = eligible_nodes(snapshot.machine, job.table, np.array([job.index]), layout.nodes)[0].tolist()
            free = [f if here else 0 for f, here in zip(free, may, strict=True)]
        n, remote = job.nodes * job.tasks, max(0, job.memory - snapshot.machine.local_memory)
        if sum(free) < n:
            return Refusal("not enough free nodes", "nodes", n, sum(free))
        offer, pool = free, self._pool_free(snapshot) if remote else []
        if remote and self.scope == "rack":
            offer = [f if p >= f * remote else p // remote for f, p in zip(free, pool, strict=True)]
        elif sum(pool) < n * remote:
            return Refusal("not enough pool memory", "memory", n * remote, sum(pool))
        nodes = _spread(n, offer, free)
        if nodes is None:
            return Refusal("not enough pool memory beside the free nodes", "memory", n * remote, sum(offer) * remote)
        rows = [(0, layout.nodes.item(r), layout.node_column, k) for r, k in enumerate(nodes) if k]
        if remote:
            memory = [k * remote for k in nodes]
            memory = _borrow(memory, pool) if self.scope == "system" else memory
            rows += [(0, layout.pools.item(r), layout.memory_column, m) for r, m in enumerate(memory) if m]
        return Placement.of(rows)

    def resized(self, placement: Placement, remote: int, free: IntArray, machine: Machine) -> Placement | Refusal:
        """Give the nodes of a placement other remote memory, `remote` MiB each, or say that pool memory is short.

        `free`, (n_owner, n_resource), includes what the placement gives back.
        """
        layout, rows = machine.racks, [row for row in placement.rows() if row[2] != machine.racks.memory_column]
        nodes = {owner: amount for _, owner, resource, amount in rows if resource == layout.node_column}
        wanted = [nodes.get(int(owner), 0) * remote for owner in layout.nodes.tolist()]
        pool = [max(int(free[o, layout.memory_column]), 0) if o >= 0 else 0 for o in layout.pools.tolist()]
        usable = sum(pool) if self.scope == "system" else sum(min(pair) for pair in zip(wanted, pool, strict=True))
        if usable < sum(wanted):
            return Refusal("not enough pool memory", "memory", sum(wanted), usable)
        given = _borrow(wanted, pool) if self.scope == "system" else wanted
        rows += [(0, int(layout.pools[r]), layout.memory_column, amount) for r, amount in enumerate(given) if amount]
        return Placement.of(rows)

    def screen(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """(k,) exactly the jobs (or states) for which `place` finds room."""
        layout, workload = snapshot.machine.racks, snapshot.table
        nodes = np.maximum(free[:, layout.nodes, layout.node_column], 0)
        if snapshot.machine.node_sets:
            nodes = np.where(eligible_nodes(snapshot.machine, workload, jobs, layout.nodes), nodes, 0)
        n = workload.nodes[jobs] * workload.tasks[jobs]
        fits: BoolArray = nodes.sum(axis=1) >= n
        remote = np.maximum(workload.memory[jobs] - snapshot.machine.local_memory, 0)
        if not remote.any():
            return fits
        ask = np.flatnonzero(fits)  # the rest needs no division
        pool = np.where(layout.pools >= 0, np.maximum(free[:, layout.pools, layout.memory_column], 0), 0)
        nodes, pool = (column[ask] if len(column) > 1 else column for column in (nodes, pool))
        if len(jobs) > 1:
            n, remote = n[ask], remote[ask]
        if self.scope == "system":
            fits[ask] = pool.sum(axis=1) >= n * remote
        else:
            offer = np.where(remote[:, None] > 0, np.minimum(nodes, pool // np.maximum(remote, 1)[:, None]), nodes)
            fits[ask] = offer.sum(axis=1) >= n
        return fits

    def alike(self, machine: Machine, table: JobTable) -> IntArray | None:
        """(n_job,) numbers of jobs that ask for the same."""
        return request_kinds(machine, table)

    def rule(self) -> RackRule:
        """These racks, and which pools a node may use."""
        return RackRule(self.scope)

    def _pool_free(self, snapshot: Snapshot) -> list[int]:
        layout = snapshot.machine.racks
        pool: list[int] = np.maximum(snapshot.free[layout.pools, layout.memory_column], 0).tolist()
        return pool if layout.pooled else [p if o >= 0 else 0 for o, p in zip(layout.pools.tolist(), pool, strict=True)]


def _spread(n: int, offer: list[int], free: list[int]) -> list[int] | None:
    """Nodes to take from each rack, None if the offers do not add up to n."""
    nodes = [0] * len(offer)
    whole = [r for r, k in enumerate(offer) if k >= n]
    if whole:
        nodes[max(whole, key=free.__getitem__)] = n  # the first of equals
        return nodes
    ranked = sorted(range(len(offer)), key=free.__getitem__, reverse=True)
    for r in sorted(ranked, key=offer.__getitem__, reverse=True):  # both keep the order of equals
        nodes[r] = min(n, max(offer[r], 0))
        n -= nodes[r]
    return None if n else nodes


def _borrow(wanted: list[int], pool: list[int]) -> list[int]:
    """MiB from each pool when any pool may serve any node: the own rack's first, then those with most left."""
    own = [min(w, max(p, 0)) for w, p in zip(wanted, pool, strict=True)]
    rest = sum(wanted) - sum(own)
    for r in sorted(range(len(pool)), key=lambda r: (-(pool[r] - own[r]), r)):
        take = min(rest, pool[r] - own[r])
        own[r] += take
        rest -= take
    return own
