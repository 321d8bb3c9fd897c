"""Runs of the Fair Memory reproduction: the full set, a quick subset, and the subset for one figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.reproductions.fair_memory.extensions import SEARCHED
from poolwise.reproductions.fair_memory.readings import BACKFILLS, BackfillName
from poolwise.reproductions.fair_memory.runs import MACHINES, RunGroup
from poolwise.reproductions.fair_memory.traces import TRACES

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

    def groups(self, figure: str = "") -> list[RunGroup]:
        """Return every group of runs, or those that one figure of the paper needs, seed by seed."""
        return [
            group for seed in range(self.seeds) for group in self._of_seed(seed) if not figure or figure in self._figures(group)
        ]

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

    def _figures(self, group: RunGroup) -> set[str]:
        """Return the figures that need a group."""
        paper = MACHINES[group.machine]
        if group.trace:
            return {"Sensitivity"}
        if group.scope == "system":
            return {"Figure 9"}
        if not group.size_tb:
            return {"Figure 9", "Figure 10", "Figure 11"}
        found = {"Figure 7", "Figure 10", "Ablation", "Backfilling"}
        if group.size_tb in (paper.limited, paper.sufficient):
            found |= {"Figure 8", "Figure 9", "Parity"}
        return found | ({"Figure 11", "Figure 12"} if group.size_tb == paper.optimum else set())


FULL = FairMemoryPlan(10, True, tuple(BACKFILLS), True)
QUICK = FairMemoryPlan(1, False, READ, False)
