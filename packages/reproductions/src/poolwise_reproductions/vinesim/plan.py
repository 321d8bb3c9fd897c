"""Set-ups of the VineSim reproduction, with their times between arrivals (us) and their seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from poolwise_reproductions.vinesim.setups import (
    AFFINITIES,
    CPU,
    GPU,
    GPU_SHARES,
    KINDS,
    PLACES,
    POLICIES,
    SIZES,
    STRENGTHS,
    UNITS,
    Setup,
    loaded,
)

VARIED = 0.05
"""Share by which the operations of tasks vary if tasks are not all equal."""


@dataclass(frozen=True)
class VineSimPlan:
    """Numbers of seeds, and times between arrivals, us.

    Attributes
    ----------
    seeds : seeds of FLAT, random ties, task types and kernels; data placement uses the first five
    size_seeds : seeds of the workload of 25,000 tasks
    gaps : times for the workload of 25,000 tasks (Figures 5 and 7)
    light_gaps : times for Figure 6
    fine_gaps : times for the workload of 500 x 5 tasks (Figures 11 to 14)
    data_gaps : times for Figures 16 and 18
    contended_gaps : times that also run with shared links
    kernel_gaps : times for Figure 8
    """

    seeds: int = 10
    size_seeds: int = 10
    gaps: tuple[float, ...] = (
        0, 5, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 1_000, 2_000, 3_000, 10_000, 30_000,
    )  # fmt: skip
    light_gaps: tuple[float, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
    fine_gaps: tuple[float, ...] = (
        0, 1, 2, 3, 4, 5, 6, 6.25, 7, 8, 10, 15, 25, 30, 50, 75, 100, 125, 150, 200, 300, 500, 1_000,
    )  # fmt: skip
    data_gaps: tuple[float, ...] = (0, 10, 25, 50, 100, 150, 200, 500, 1_000, 2_000, 5_000)
    contended_gaps: tuple[float, ...] = (50, 200, 1_000)
    kernel_gaps: tuple[float, ...] = (
        0, 2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 25, 30, 50, 100, 300, 1_000,
    )  # fmt: skip

    def seeded(self, setup: Setup) -> list[Setup]:
        """Return a set-up with each of the seeds that its random draws require."""
        if setup.jobs == "sizes":
            seeds = self.size_seeds
        elif setup.data_size and setup.jobs != "single":
            seeds = min(self.seeds, 2 if setup.contended else 5)
        else:
            drawn = setup.policy == "flat" or setup.tie == "random" or setup.jobs == "kernels"
            seeds = self.seeds if drawn or setup.good not in (None, 0.0, 1.0) else 1
        return [replace(setup, seed=seed) for seed in range(seeds)]

    def notes(self) -> list[str]:
        """Return the assumptions and restrictions that a reader must know before the numbers."""
        return [
            "The report's traces are not public; the workloads are generated from its description: for Section 7.2, 450 jobs "
            "uniform in 1 to 20 tasks, 45 in 21 to 300, and 5 large jobs that complete the 25,000 tasks.",
            f"Intervals are 95 % over {self.seeds} seeds (5 for data placement, {self.size_seeds} for the workload "
            "of 25,000 tasks); set-ups without random draws have none. Average latency means the mean; the report also uses it "
            "for the median.",
            "GPUs and CPUs alternate along each rack in Figure 15 (assumed). Power is assumed: CPUs draw 60 W idle and 150 W "
            "busy, GPUs 40 W and 300 W.",
            "The report does not state the time between arrivals at the low load of Figure 4; it is 1,000 us here, where no "
            "two jobs overlap. All rows of Section 7.2 at low load share one load, at which most of its five factors hold.",
            "The report does not state which tasks of a job wait for others. In the row on interdependent tasks, all wait for "
            "the first task of their job.",
            "Tolerances of ratios are ours (30 % where the report says tenfold or 1000-fold). Rows with a threshold that the "
            "report does not print are our additions, and so are rows with random ties.",
            "The switches (large jobs of even size, tasks that wait for a GPU or are not all equal) were chosen after the "
            "first runs had been inspected: a switch shows that a cause is sufficient, not that it applied in the report.",
            *(["A quick run: fewer loads and seeds; some rows are not measured."] if self == QUICK else ()),
        ]

    def single(self) -> Iterator[Setup]:
        """Yield the single tasks of Tables 2 and 4."""
        for kind, gpus in itertools.product(("FP_GOOD", "FP_BAD"), (0, UNITS)):
            yield Setup(0, "single", gpus, kind=KINDS[kind])
        for size in SIZES.values():
            yield Setup(0, "single", layout="near", data_size=size)
            yield Setup(0, "single", layout="far", data_size=size)

    def transfers(self) -> Iterator[Setup]:
        """Yield the jobs of five tasks of Figure 16 without and with data, alone on GPUs of every named strength."""
        for strength, size in itertools.product(AFFINITIES, (0, *SIZES.values())):
            yield loaded(strength, size)

    def mixes(self) -> Iterator[Setup]:
        """Yield the mixes of task types of Figure 4."""
        for gap, gpus, good in itertools.product((0, 1_000), GPU_SHARES.values(), (0.0, 0.3, 0.5, 0.7, 1.0)):
            yield Setup(gap, "thirty", gpus, good=good)
        yield Setup(1_000, "thirty", 32, good=1.0, graph="fork")

    def sizes(self) -> Iterator[Setup]:
        """Yield the workload of 25,000 tasks of Figures 5 to 7, unchanged and with the change of each switch."""
        for kind in KINDS.values():
            for gpus, gap in itertools.product((0, 8, 13, 26, 32, 40), self.gaps):
                yield Setup(gap, "sizes", gpus, kind=kind)
            for gap in self.light_gaps:
                yield Setup(gap, "sizes", UNITS, kind=kind)
        for strength, gpus, gap in itertools.product(STRENGTHS.values(), (8, 13, 20, 26, 32, 40), self.gaps):
            yield Setup(gap, "sizes", gpus, gpu_int=strength)
        for gap in self.gaps:
            for gpus, kind in itertools.product((0, 8, UNITS), KINDS.values()):
                yield Setup(gap, "sizes", gpus, kind=kind, large="even")
            for name in ("1to1", "15to1"):
                yield Setup(gap, "sizes", UNITS, gpu_int=STRENGTHS[name], large="even")
            for gpus, name in ((8, "15to1"), (13, "15to1"), (26, "5to1"), (40, "5to1")):
                yield Setup(gap, "sizes", gpus, gpu_int=STRENGTHS[name], policy="pref", preferred=GPU)

    def kernels(self) -> Iterator[Setup]:
        """Yield the Neurasmus kernels of Figure 8."""
        for gap, units in itertools.product(self.kernel_gaps, ("mixed", "dfe", "phi", "gpu")):
            yield Setup(gap, "kernels", neurasmus=units)

    def policies(self) -> Iterator[Setup]:
        """Yield the jobs of five tasks of Figures 11 to 18, without and with data, and with the change of each switch."""
        for gap in self.fine_gaps:
            for policy in ("high", "flat", "earliest_finish", "delay"):
                yield Setup(gap, policy=policy)
            for preferred in (CPU, GPU):
                yield Setup(gap, policy="pref", preferred=preferred)
        for gap in (0, 6, 7):
            yield Setup(gap, sample=10)
        for (layout, data), size, gap in itertools.product(PLACES, SIZES.values(), self.data_gaps):
            for policy, tie in (*((policy, "order") for policy in POLICIES), ("high", "random"), ("closer_to_data", "random")):
                yield Setup(gap, layout=layout, data=data, data_size=size, policy=policy, tie=tie)
        for gap, policy in itertools.product(self.contended_gaps, POLICIES):
            yield Setup(gap, layout="alternate", data_size=SIZES["64 KB"], policy=policy, contended=True)
        for policy, tie in (*itertools.product(("high", "closer_to_data"), ("order", "random")), ("flat", "order")):
            yield Setup(0, layout="alternate", data_size=SIZES["1 MB"], policy=policy, tie=tie, varied=VARIED)


QUICK = VineSimPlan(
    seeds=2,
    size_seeds=1,
    gaps=(0, 100, 30_000),
    light_gaps=(30_000, 300_000),
    fine_gaps=(0, 5, 6, 6.25, 7, 25, 30, 100, 125, 1_000),
    data_gaps=(0, 50, 1_000),
    contended_gaps=(),
    kernel_gaps=(0, 8, 12, 16, 20, 50, 1_000),
)
