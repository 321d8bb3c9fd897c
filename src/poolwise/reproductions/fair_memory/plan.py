"""Runs of the Fair Memory reproduction: the full set, a quick subset, and the subset for one figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.reproductions.fair_memory.readings import BACKFILLS, BackfillName
from poolwise.reproductions.fair_memory.runs import MACHINES, RunGroup
from poolwise.reproductions.fair_memory.traces import TRACES

SEARCHED = tuple(range(8, 49, 4))
"""Pool sizes at which the other traces run, TB per rack of the Perlmutter-like machine."""
READ: tuple[BackfillName, ...] = ("easy", "nodes only, no extra")
"""Backfilling policies of the two readings."""


@dataclass(frozen=True)
class FairMemoryPlan:
    """Number of seeds, whether every pool size runs, the backfilling policies, and whether other traces run."""

    seeds: int
    every: bool
    backfills: tuple[BackfillName, ...]
    searched: bool

    def sizes(self, machine: str) -> tuple[int, ...]:
        """Return the pool sizes, TB per rack; a quick run takes every third and those that the paper singles out."""
        paper = MACHINES[machine]
        if self.every:
            return paper.sizes
        return tuple(sorted({*paper.sizes[::3], paper.sizes[-1], paper.limited, paper.sufficient, paper.optimum}))

    def groups(self) -> list[RunGroup]:
        """Return every group of runs, seed by seed."""
        return [group for seed in range(self.seeds) for group in self._of_seed(seed)]

    def pools(self) -> list[RunGroup]:
        """Return the groups with pools in the racks, at every size."""
        return [g for g in self.groups() if g.scope == "rack" and g.size_tb and not g.trace]

    def two_sizes(self) -> list[RunGroup]:
        """Return the groups at the limited and the sufficient size."""
        return [g for g in self.pools() if g.size_tb in (MACHINES[g.machine].limited, MACHINES[g.machine].sufficient)]

    def scopes(self) -> list[RunGroup]:
        """Return the groups of Figure 9: no pools, and pools of two sizes for a rack and for the whole system."""
        return [*self.two_sizes(), *(g for g in self.groups() if g.scope == "system" or not g.size_tb)]

    def costs(self) -> list[RunGroup]:
        """Return the groups of Figure 10: no pools, and pools of every size."""
        return [*self.pools(), *(g for g in self.groups() if not g.size_tb)]

    def optimum(self) -> list[RunGroup]:
        """Return the groups of Figures 11 and 12: no pools, and pools of the size that Figure 10 finds."""
        return [g for g in self.costs() if g.size_tb in (0, MACHINES[g.machine].optimum)]

    def other_traces(self) -> list[RunGroup]:
        """Return the groups on other traces."""
        return [g for g in self.groups() if g.trace]

    def _of_seed(self, seed: int) -> Iterator[RunGroup]:
        for machine, paper in MACHINES.items():
            yield RunGroup(machine, seed, "rack", 0, READ)
            for size in self.sizes(machine):
                yield RunGroup(machine, seed, "rack", size, self.backfills)
            for size in (paper.limited, paper.sufficient):
                yield RunGroup(machine, seed, "system", size, READ)
        if self.searched:
            for trace in TRACES:
                for size in SEARCHED:
                    yield RunGroup("perlmutter", seed, "rack", size, READ[1:], trace)


FULL = FairMemoryPlan(10, True, tuple(BACKFILLS), True)
QUICK = FairMemoryPlan(1, False, READ, False)
