"""Placement of rigid jobs on racks with memory pools: one rack if one can hold the job, else as few racks as possible.

Source: memory-pool spec, "Placement"; Li et al., section IV-A (consolidate while keeping racks balanced).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.eligibility import eligible_nodes
from poolwise.model.rules import PoolScope, RackRule
from poolwise.policies.placement.memory.mixed_racks import MixedRacks, fits_mixed
from poolwise.policies.placement.requests import request_kinds
from poolwise.registry import register


@register("placements", "racks")
@dataclass(frozen=True)
class RackPlacement(PlacementPolicy):
    """Place all tasks of a job on whole nodes of one rack if possible; remote memory is in the rack's pool or in any pool.

    The offer of a rack is min(free nodes, free pool memory / remote memory per node). In scope "system" the pools are summed
    and the offer is the free nodes. Among racks whose offer holds the whole job, the one with the most free nodes is chosen,
    then the lowest index. Otherwise racks are filled by (offer, free nodes) in descending order, then by index. In scope
    "system" the pool of a node's own rack is used first, then the pools with the most free memory (lowest index), split freely.
    Overcommitted resources count as zero. If nodes differ in local memory, jobs prefer the nodes on which they need the least
    remote memory, then the smallest nodes (`MixedRacks`). A job that requests more of a further resource per node, such as
    GPUs, than any node has is refused.

    Parameters
    ----------
    scope
        "rack": a node may use only the pool of its rack; "system": any pool.
    """

    filters_nodes: ClassVar[bool] = True
    scope: PoolScope = "rack"

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place all nodes of a job, or return a refusal that states whether nodes or pool memory are short."""
        layout = snapshot.machine.racks
        for name, most in layout.further(snapshot.table.requests).items():
            if (amount := job.request(name)) > most:
                return Refusal(f"requests more {name} per node than any node has", name, amount, most)
        free = np.maximum(snapshot.free[layout.nodes, layout.node_column], 0).tolist()
        if snapshot.machine.node_sets:
            may = eligible_nodes(snapshot.machine, job.table, np.array([job.index]), layout.nodes)[0].tolist()
            free = [f if here else 0 for f, here in zip(free, may, strict=True)]
        n, remote = job.nodes * job.tasks, max(0, job.memory - snapshot.machine.local_memory)
        if layout.distinguishes(snapshot.table.requests):
            return self._place_mixed(n, job, free, snapshot)
        if sum(free) < n:
            return Refusal("not enough free nodes", "nodes", n, sum(free))
        offer, pool = free, self._pool_free(snapshot) if remote else []
        if remote and self.scope == "rack":
            offer = [f if p >= f * remote else p // remote for f, p in zip(free, pool, strict=True)]
        elif sum(pool) < n * remote:
            return Refusal("not enough pool memory", "memory", n * remote, sum(pool))
        nodes = _spread(n, offer, free)
        if nodes is None:
            return Refusal("not enough pool memory in reach of the free nodes", "memory", n * remote, sum(offer) * remote)
        rows = [(0, layout.nodes.item(r), layout.node_column, k) for r, k in enumerate(nodes) if k]
        if remote:
            memory = [k * remote for k in nodes]
            memory = _borrow(memory, pool) if self.scope == "system" else memory
            rows += [(0, layout.pools.item(r), layout.memory_column, m) for r, m in enumerate(memory) if m]
        return Placement.of(rows)

    def _place_mixed(self, n: int, job: Job, free: list[int], snapshot: Snapshot) -> Placement | Refusal:
        """Place n nodes on racks of different nodes."""
        layout = snapshot.machine.racks
        for name, brought in layout.others.items():
            free = [f if amount >= job.request(name) else 0 for f, amount in zip(free, brought.tolist(), strict=True)]
        racks = MixedRacks(layout, job.memory, free, self._pool_free(snapshot), self.scope)
        chosen = racks.choose(n)
        if isinstance(chosen, Refusal):
            return chosen
        pools = dict(zip(layout.pools.tolist(), racks.pool, strict=True))  # groups of a rack share its pool; -1 holds nothing
        wanted = dict.fromkeys(pools, 0)
        for g, count in chosen:
            wanted[int(layout.pools[g])] += count * racks.remote(g)
        lists = list(wanted.values()), list(pools.values())
        borrowed = _borrow(*lists) if self.scope == "system" else lists[0]
        rows = [(0, int(layout.nodes[g]), layout.node_column, count) for g, count in sorted(chosen)]
        rows += [(0, owner, layout.memory_column, amount) for owner, amount in zip(pools, borrowed, strict=True) if amount]
        return Placement.of(rows)

    def resized(self, placement: Placement, remote: int, free: IntArray, machine: Machine) -> Placement | Refusal:
        """Resize the remote memory of a placement to `remote` MiB per node, or return a refusal if pool memory is short.

        `free`, (n_owner, n_resource), includes the amounts that the placement releases.
        """
        layout, rows = machine.racks, [row for row in placement.rows() if row[2] != machine.racks.memory_column]
        nodes = {owner: amount for _, owner, resource, amount in rows if resource == layout.node_column}
        wanted = [nodes.get(int(owner), 0) * remote for owner in layout.nodes.tolist()]
        pool = [max(int(free[o, layout.memory_column]), 0) if o >= 0 else 0 for o in layout.pools.tolist()]
        usable = sum(pool) if self.scope == "system" else sum(min(pair) for pair in zip(wanted, pool, strict=True))
        if usable < sum(wanted):
            return Refusal("not enough pool memory", "memory", sum(wanted), usable)
        borrowed = _borrow(wanted, pool) if self.scope == "system" else wanted
        rows += [(0, int(layout.pools[r]), layout.memory_column, amount) for r, amount in enumerate(borrowed) if amount]
        return Placement.of(rows)

    def prefilter(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Return a mask of exactly the jobs (or states) that `place` accepts, (k,)."""
        layout, workload = snapshot.machine.racks, snapshot.table
        nodes = np.maximum(free[:, layout.nodes, layout.node_column], 0)
        if snapshot.machine.node_sets:
            nodes = np.where(eligible_nodes(snapshot.machine, workload, jobs, layout.nodes), nodes, 0)
        for name, most in layout.further(workload.requests).items():
            nodes = np.where(workload.request(name)[jobs][:, None] > most, 0, nodes)
        n = workload.nodes[jobs] * workload.tasks[jobs]
        if layout.distinguishes(workload.requests):
            for name, brought in layout.others.items():
                nodes = np.where(workload.request(name)[jobs][:, None] <= brought, nodes, 0)
            pool = np.where(layout.pools >= 0, np.maximum(free[:, layout.pools, layout.memory_column], 0), 0)
            return fits_mixed(n, workload.memory[jobs], layout, nodes, pool, self.scope)
        fits: BoolArray = nodes.sum(axis=1) >= n
        remote = np.maximum(workload.memory[jobs] - snapshot.machine.local_memory, 0)
        if not remote.any():
            return fits
        ask = np.flatnonzero(fits)  # the others need no division
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

    def signatures(self, machine: Machine, table: JobTable) -> IntArray | None:
        """Return kinds of jobs with equal requests, (n_job,)."""
        return request_kinds(machine, table)

    def rule(self) -> RackRule:
        """Return the rule: this placement, with the pools that a node may use."""
        return RackRule(self.scope)

    def _pool_free(self, snapshot: Snapshot) -> list[int]:
        layout = snapshot.machine.racks
        pool: list[int] = np.maximum(snapshot.free[layout.pools, layout.memory_column], 0).tolist()
        return pool if layout.pooled else [p if o >= 0 else 0 for o, p in zip(layout.pools.tolist(), pool, strict=True)]


def _spread(n: int, offer: list[int], free: list[int]) -> list[int] | None:
    """Return the number of nodes to take from each rack; None if the offers do not add up to n."""
    nodes = [0] * len(offer)
    whole = [r for r, k in enumerate(offer) if k >= n]
    if whole:
        nodes[max(whole, key=free.__getitem__)] = n  # the first on ties
        return nodes
    ranked = sorted(range(len(offer)), key=free.__getitem__, reverse=True)
    for r in sorted(ranked, key=offer.__getitem__, reverse=True):  # both sorts are stable
        nodes[r] = min(n, max(offer[r], 0))
        n -= nodes[r]
    return None if n else nodes


def _borrow(wanted: list[int], pool: list[int]) -> list[int]:
    """Return the MiB from each pool if any pool may serve any node: each rack's own first, then those with the most left."""
    own = [min(w, max(p, 0)) for w, p in zip(wanted, pool, strict=True)]
    rest = sum(wanted) - sum(own)
    for r in sorted(range(len(pool)), key=lambda r: (-(pool[r] - own[r]), r)):
        take = min(rest, pool[r] - own[r])
        own[r] += take
        rest -= take
    return own
