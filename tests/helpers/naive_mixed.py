"""Naive yardstick for nodes that differ: placement and slowdown for `benchmarks.naive_pools`, without optimizations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.naive_pools import INTER, INTRA, Job, State, quantile


class Group(NamedTuple):
    """Nodes of one type in one rack."""

    rack: int
    nodes: int
    local: int
    gpus: int = 0


Placement = tuple[list[int], list[int]]
"""Nodes per group, and MiB per rack (with zeros at the end, as many entries as groups)."""


@dataclass
class NaiveMixed:
    """A machine of groups, and which of them each job may use: job id -> numbers of groups."""

    groups: list[Group]
    pools: list[int]
    allowed: dict[int, set[int]]

    def empty(self) -> State:
        return State([group.nodes for group in self.groups], self.pools + [0] * (len(self.groups) - len(self.pools)))

    def remote(self, job: Job, g: int) -> int:
        return max(0, job.mem - self.groups[g].local)

    def dislike(self, job: Job, g: int) -> tuple[int, int, int]:
        """Remote memory first, then GPUs that the job may not need, then local memory that others may need."""
        return self.remote(job, g), self.groups[g].gpus, self.groups[g].local

    def best_nodes(self, job: Job, state: State, groups: list[int], n: int, pool: float) -> list[int]:
        """Up to n nodes, as one group number each, the least disliked first, up to what the pool holds."""
        chosen = []
        for g in sorted(groups, key=lambda g: (self.dislike(job, g), g)):
            for _ in range(state.free[g]):
                if len(chosen) < n and self.remote(job, g) <= pool:
                    chosen.append(g)
                    pool -= self.remote(job, g)
        return chosen

    def place(self, job: Job, state: State, scope: str) -> Placement | None:
        usable = [g for g in range(len(self.groups)) if g in self.allowed[job.id]]
        racks = [[g for g in usable if self.groups[g].rack == r] for r in range(len(self.pools))]
        pools = [state.pool[r] if scope == "rack" else math.inf for r in range(len(racks))]
        offers = [self.best_nodes(job, state, racks[r], job.n, pools[r]) for r in range(len(racks))]

        def rank(r: int) -> tuple[int, ...]:
            costs = [sum(self.dislike(job, g)[k] for g in offers[r]) for k in range(3)]
            return -len(offers[r]), *costs, -sum(state.free[g] for g in racks[r]), r

        chosen: list[int] = []
        for r in sorted(range(len(racks)), key=rank):
            chosen += self.best_nodes(job, state, racks[r], job.n - len(chosen), pools[r])
        if len(chosen) < job.n:
            return None
        if scope == "system" and sum(self.remote(job, g) for g in chosen) > sum(state.pool):
            chosen = self.best_nodes(job, state, usable, job.n, math.inf)
            if sum(self.remote(job, g) for g in chosen) > sum(state.pool):
                return None
        wanted = self.wanted(job, chosen)
        taken = [min(wanted[r], state.pool[r]) for r in range(len(wanted))]
        for r in sorted(range(len(taken)), key=lambda r: (taken[r] - state.pool[r], r)):
            taken[r] += min(sum(wanted) - sum(taken), state.pool[r] - taken[r])
        return [chosen.count(g) for g in range(len(self.groups))], taken

    def wanted(self, job: Job, chosen: list[int]) -> list[int]:
        """MiB of remote memory that the chosen nodes of each rack need."""
        remote = [0] * len(self.groups)
        for g in chosen:
            remote[self.groups[g].rack] += self.remote(job, g)
        return remote

    def runtime(self, job: Job, placement: Placement, scope: str) -> int:
        """As slow as the slowest node, whose memory beyond that of its rack's pool is far."""
        nodes, taken = placement
        chosen = [g for g, count in enumerate(nodes) for _ in range(count)]
        wanted, worst = self.wanted(job, chosen), 0.0
        near, far = quantile(INTRA, job.u), quantile(INTER, job.u)
        for g in chosen:
            if self.remote(job, g):
                r = self.groups[g].rack
                inside = min(taken[r], wanted[r]) / wanted[r]
                factor = near if inside == 1 else inside * near + (1 - inside) * far
                worst = max(worst, factor * (self.remote(job, g) / job.mem))
        return int(job.d + math.ceil(job.d * worst))
