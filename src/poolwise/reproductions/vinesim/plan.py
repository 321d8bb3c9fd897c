"""Set-ups of the VineSim reproduction, with their times between arrivals (us) and seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from poolwise.reproductions.vinesim.setups import (
    CPU,
    FP_BAD,
    FP_GOOD,
    GPU,
    GPU_SHARES,
    INT,
    KB8,
    KB64,
    MB1,
    NEAR_FAR,
    PLACES,
    POLICIES,
    STRENGTHS,
    UNITS,
    Setup,
)

VARIED = 0.05
"""Share by which the operations of tasks vary where tasks are not all equal."""


@dataclass(frozen=True)
class VineSimPlan:
    """Plan of the reproduction; `quick` uses fewer loads and seeds."""

    quick: bool = False

    @property
    def seeds(self) -> range:
        """Seeds for FLAT, random ties, task types and kernels; the first five for data placement."""
        return range(2 if self.quick else 10)

    @property
    def size_seeds(self) -> range:
        """Seeds for the workload of 25,000 tasks."""
        return range(1 if self.quick else 10)

    @property
    def gaps(self) -> tuple[float, ...]:
        """Times between arrivals of the workload of 25,000 tasks (Figures 5 and 7)."""
        if self.quick:
            return (0, 100, 30_000)
        return (0, 5, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 1_000, 2_000, 3_000, 10_000, 30_000)

    @property
    def light_gaps(self) -> tuple[float, ...]:
        """Times between arrivals of Figure 6."""
        return (30_000, 300_000) if self.quick else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)

    @property
    def fine_gaps(self) -> tuple[float, ...]:
        """Times between arrivals of the workload of 500 x 5 tasks (Figures 11 to 14)."""
        if self.quick:
            return (0, 5, 6, 6.25, 7, 25, 100, 125, 1_000)
        return (0, 1, 2, 3, 4, 5, 6, 6.25, 7, 8, 10, 15, 25, 30, 50, 75, 100, 125, 150, 200, 300, 500, 1_000)

    @property
    def data_gaps(self) -> tuple[float, ...]:
        """Times between arrivals of Figures 16 and 18."""
        return (0, 50, 1_000) if self.quick else (0, 10, 25, 50, 100, 150, 200, 500, 1_000, 2_000, 5_000)

    @property
    def contended_gaps(self) -> tuple[float, ...]:
        """Times between arrivals that are also run with shared links."""
        return () if self.quick else (50, 200, 1_000)

    @property
    def kernel_gaps(self) -> tuple[float, ...]:
        """Times between arrivals of Figure 8."""
        if self.quick:
            return (0, 8, 12, 16, 20, 50, 1_000)
        return (0, 2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 25, 30, 50, 100, 300, 1_000)

    def setups(self) -> list[Setup]:
        """Return all set-ups, each with its seeds."""
        return [
            *self._single(),
            *self._mixes(),
            *self._types(),
            *self._kernels(),
            *self._policies(),
            *self._data(),
            *self._changed(),
        ]

    def seeded(self, setup: Setup) -> list[Setup]:
        """Return a set-up with each seed that its random draws require."""
        if setup.jobs == "sizes":
            return [replace(setup, seed=seed) for seed in self.size_seeds]
        if setup.jobs == "single":
            return [setup]
        if setup.data_size:
            return [replace(setup, seed=seed) for seed in self.seeds[: 2 if setup.contended else 5]]
        drawn = setup.policy == "flat" or setup.tie == "random" or setup.jobs == "kernels"
        drawn = drawn or setup.good not in (None, 0.0, 1.0)
        return [replace(setup, seed=seed) for seed in self.seeds] if drawn else [setup]

    def notes(self) -> list[str]:
        """Return the assumptions and restrictions that a reader must know before the numbers."""
        sentences = [
            "The report's traces are not public; the workloads are generated from its description: for Section 7.2, 450 jobs "
            "uniform in 1 to 20 tasks, 45 in 21 to 300, and 5 large jobs that complete the 25,000 tasks.",
            f"Intervals are 95 % over {len(self.seeds)} seeds (5 for data placement, {len(self.size_seeds)} for the workload "
            "of 25,000 tasks); set-ups without random draws have none. Average latency means the mean; the report also uses it "
            "for the median.",
            "GPUs and CPUs alternate along each rack in Figure 15 (assumed). Power is assumed: CPUs draw 60 W idle and 150 W "
            "busy, GPUs 40 W and 300 W.",
            "The report does not state the time between arrivals at the low load of Figure 4; it is 1,000 us here, where no "
            "two jobs overlap.",
            "The switches (another low load, large jobs of even size, tasks that wait for a GPU or are not all equal) were "
            "chosen after the first runs had been inspected: a switch shows that a cause is sufficient, not that it applied in "
            "the report.",
        ]
        return [*sentences, "A quick run: fewer loads and seeds; some rows are not measured."] if self.quick else sentences

    def _single(self) -> Iterator[Setup]:
        for kind in (FP_GOOD, FP_BAD):
            for gpus in (0, UNITS):
                yield Setup(0, "single", gpus, kind=kind)
        for size in (KB8, KB64, MB1):
            for layout in NEAR_FAR:
                yield Setup(0, "single", layout=layout, data_size=size)

    def _mixes(self) -> Iterator[Setup]:
        for gap in (0, 1_000):
            for gpus in GPU_SHARES.values():
                for good in (0.0, 0.3, 0.5, 0.7, 1.0):
                    yield from self.seeded(Setup(gap, "thirty", gpus, good=good))

    def _types(self) -> Iterator[Setup]:
        for kind in (INT, FP_GOOD, FP_BAD):
            for gpus in (0, 8, 13, 26, 32, 40):
                for gap in self.gaps:
                    yield from self.seeded(Setup(gap, "sizes", gpus, kind=kind))
            for gap in self.light_gaps:
                yield from self.seeded(Setup(gap, "sizes", UNITS, kind=kind))
        for strength in STRENGTHS.values():
            for gpus in (8, 13, 20, 26, 32, 40):
                for gap in self.gaps:
                    yield from self.seeded(Setup(gap, "sizes", gpus, gpu_int=strength))

    def _kernels(self) -> Iterator[Setup]:
        for gap in self.kernel_gaps:
            for units in ("mixed", "dfe", "phi", "gpu"):
                yield from self.seeded(Setup(gap, "kernels", neurasmus=units))

    def _policies(self) -> Iterator[Setup]:
        for gap in self.fine_gaps:
            for policy in ("high", "flat", "earliest_finish", "delay"):
                yield from self.seeded(Setup(gap, policy=policy))
            for preferred in (CPU, GPU):
                yield Setup(gap, policy="pref", preferred=preferred)
        for gap in (0, 6, 7):
            yield Setup(gap, sample=10)

    def _data(self) -> Iterator[Setup]:
        for layout, data in PLACES:
            for size in (KB8, KB64, MB1):
                for gap in self.data_gaps:
                    base = Setup(gap, layout=layout, data=data, data_size=size)
                    for policy in POLICIES:
                        yield from self.seeded(replace(base, policy=policy))
                    for policy in ("high", "closer_to_data"):
                        yield from self.seeded(replace(base, policy=policy, tie="random"))
        for gap in self.contended_gaps:
            for policy in POLICIES:
                contended = Setup(gap, layout="alternate", data_size=KB64, policy=policy, contended=True)
                yield from self.seeded(contended)

    def _changed(self) -> Iterator[Setup]:
        """Yield the set-ups that the switches of `causes` need in addition to the report's own."""
        for gap in self.gaps:
            for gpus, kind in itertools.product((0, 8, UNITS), (INT, FP_GOOD, FP_BAD)):
                yield from self.seeded(Setup(gap, "sizes", gpus, kind=kind, large="even"))
            for name in ("1to1", "15to1"):
                yield from self.seeded(Setup(gap, "sizes", UNITS, gpu_int=STRENGTHS[name], large="even"))
            for gpus, name in ((8, "15to1"), (13, "15to1"), (26, "5to1"), (40, "5to1")):
                yield from self.seeded(Setup(gap, "sizes", gpus, gpu_int=STRENGTHS[name], policy="pref", preferred=GPU))
        for policy, tie in (*itertools.product(("high", "closer_to_data"), ("order", "random")), ("flat", "order")):
            yield from self.seeded(Setup(0, layout="alternate", data_size=MB1, policy=policy, tie=tie, varied=VARIED))
