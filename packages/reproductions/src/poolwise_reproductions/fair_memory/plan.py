"""Runs of the Fair Memory reproduction: the full set, a quick subset, and the subset for one figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

from poolwise_reproductions.fair_memory.readings import COMPARED, BackfillName
from poolwise_reproductions.fair_memory.runs import INVERTED_F1, LATENCIES, MACHINES, ORDERS, PRINTED_LATENCY, FairMemoryCase
from poolwise_reproductions.fair_memory.traces import TRACES

SEARCHED = tuple(range(8, 49, 4))
"""Pool sizes at which the other traces run, TB per rack of the Perlmutter-like machine."""
READ: tuple[BackfillName, ...] = ("easy", "nodes only, no extra")
"""Backfilling policies of the two readings."""
LARGEST = (24, 44, 48)
"""Sizes at which `repeated` runs all orders."""


@dataclass(frozen=True)
class FairMemoryPlan:
    """Number of seeds, whether every pool size runs, the backfilling policies, and whether other traces run.

    `repeats` is the number of seeds of the cases in which the seeds differ most; see `repeated`.
    """

    seeds: int
    every: bool
    backfills: tuple[BackfillName, ...]
    searched: bool
    repeats: int = 0

    def sizes(self, machine: str) -> tuple[int, ...]:
        """Return the pool sizes, TB per rack; a quick run uses every third size and those that the paper singles out."""
        paper = MACHINES[machine]
        if self.every:
            return paper.sizes
        return tuple(sorted({*paper.sizes[::3], paper.sizes[-1], paper.limited, paper.sufficient, paper.optimum}))

    def cases(self) -> list[FairMemoryCase]:
        """Return every run, seed by seed."""
        return [group for seed in range(self.seeds) for group in self._of_seed(seed)]

    def repeated(self) -> list[FairMemoryCase]:
        """Return the cases with additional seeds: all orders at the largest pools and at 44 TB, and Figures 9 and 11."""
        cases = []
        for seed in range(self.seeds, self.repeats):
            for machine, size in (("perlmutter", 44), ("perlmutter", 48), ("juwels", 24)):
                cases += [FairMemoryCase(machine, seed, order, size) for order in ORDERS]
            for machine, paper in MACHINES.items():
                for size in (paper.limited, paper.sufficient):
                    cases.append(FairMemoryCase(machine, seed, "fm", size))
                    cases.append(FairMemoryCase(machine, seed, "fm", size, scope="system", latency=PRINTED_LATENCY))
                cases.append(FairMemoryCase(machine, seed, "fm", 0))
            cases.append(FairMemoryCase("perlmutter", seed, "fm", MACHINES["perlmutter"].optimum))
        return cases

    def figure_7(self) -> list[FairMemoryCase]:
        """Return the runs of Figure 7: every order at every size, with more seeds at the largest pools."""
        return [*self.pools(), *(c for c in self.repeated() if c.size_tb in LARGEST)]

    def pools(self) -> list[FairMemoryCase]:
        """Return the runs with pools of every size in the racks."""
        return [c for c in self.cases() if c.scope == "rack" and c.size_tb and not c.trace]

    def two_sizes(self) -> list[FairMemoryCase]:
        """Return the runs at the limited and the sufficient size."""
        return [c for c in self.pools() if c.size_tb in (MACHINES[c.machine].limited, MACHINES[c.machine].sufficient)]

    def scopes(self) -> list[FairMemoryCase]:
        """Return the runs of Figure 9: no pools, and pools of two sizes that serve a rack or the whole system."""
        more = (c for c in self.repeated() if c.size_tb not in (*LARGEST, MACHINES["perlmutter"].optimum))
        wanted = (c for c in self.cases() if c.scope == "system" or not c.size_tb)
        return [*self.two_sizes(), *wanted, *more]

    def latencies(self) -> list[FairMemoryCase]:
        """Return the runs of FM with pools of two sizes that serve a rack or, with each of its latencies, the whole system."""
        return [*(c for c in self.two_sizes() if c.order == "fm"), *(c for c in self.cases() if c.scope == "system")]

    def costs(self) -> list[FairMemoryCase]:
        """Return the runs of Figure 10: no pools, and pools of every size."""
        return [*self.pools(), *(c for c in self.cases() if not c.size_tb)]

    def optimum(self) -> list[FairMemoryCase]:
        """Return the runs of Figures 11 and 12: no pools, and pools of the size that Figure 10 finds."""
        more = (c for c in self.repeated() if c.scope == "rack")
        return [c for c in (*self.costs(), *more) if c.size_tb in (0, MACHINES[c.machine].optimum)]

    def other_traces(self) -> list[FairMemoryCase]:
        """Return the runs on other traces, and those on the generated trace to which the figures compare them."""
        generated = [
            c
            for c in self.pools()
            if self.searched and c.machine == "perlmutter" and c.size_tb in SEARCHED and c.backfill == READ[1]
        ]
        return [*generated, *(c for c in self.cases() if c.trace)]

    def _of_seed(self, seed: int) -> Iterator[FairMemoryCase]:
        for machine, paper in MACHINES.items():
            at = partial(FairMemoryCase, machine, seed)
            two_sizes = paper.limited, paper.sufficient
            yield from (at(order, 0, backfill) for backfill in READ for order in ("fm", "fcfs"))
            for size in self.sizes(machine):
                yield from (at(order, size, backfill) for backfill in self.backfills for order in (*ORDERS, INVERTED_F1))
                yield from (at(order, size, curve="quadratic") for order in ("sjf", "fm") if size in two_sizes)
            system = partial(at, "fm", scope="system")
            yield from (system(size, backfill=fill, latency=PRINTED_LATENCY) for size in two_sizes for fill in READ)
            others = [latency for latency in LATENCIES if latency != PRINTED_LATENCY]
            yield from (system(size, latency=latency) for size in two_sizes for latency in others)
        if self.searched:
            for trace, size, order in product(TRACES, SEARCHED, ORDERS):
                yield FairMemoryCase("perlmutter", seed, order, size, READ[1], trace=trace)


FULL = FairMemoryPlan(10, True, COMPARED, True, repeats=100)
QUICK = FairMemoryPlan(1, False, READ, False)
