"""The set-ups of the report: deployments, workloads and affinities, and which of them are run at which load.

What the report prints is taken as it stands; what it leaves open is in `VineSimPlan.notes`. Times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.draws import uniform
from poolwise.engines import simulate
from poolwise.metrics import MeasuredRun
from poolwise.metrics.measures.latency import LatencyMeasure, TaskLatency
from poolwise.metrics.measures.power import Energy
from poolwise.metrics.measures.throughput import Throughput
from poolwise.metrics.measures.units import UnitMeasure
from poolwise.metrics.summary import measure_run
from poolwise.metrics.unit_use import unit_series
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from poolwise.units import US

CPU, PHI, GPU, DFE = 0, 4, 2, 3  # unit types; the Xeon Phi is taken as a multi-core CPU, Maxeler's DFE as an FPGA
INT, FP_BAD, FP_GOOD = 0, 1, 2  # task types
ANY = 5  # no preference
UNITS = 40
GPU_SHARES = {0: 0, 20: 8, 33: 13, 50: 20, 66: 26, 80: 32, 100: 40}
"""Printed percentage of GPUs -> GPUs among 40 units."""
KB8, KB64, MB1 = 7812, 62_500, 1_000_000
"""Bytes of the report's task data: Table 4's times are those of binary fractions of 10^6 (10^6 / 128 is 7812.5)."""
KERNELS_MS = {PHI: (0.5, 0.75, 0.1), DFE: (0.3, 0.5, 0.01), GPU: (0.1, 2.4, 0.06)}
"""Table 3: unit type -> ms of the kernels SGJ, RGJ and NGJ."""
WATTS = {CPU: (60.0, 150.0), GPU: (40.0, 300.0)}
"""Assumed: unit type -> W idle and busy, of the order of data sheets of the time."""

MEASURES = (LatencyMeasure(), TaskLatency(), Throughput(), UnitMeasure(), Energy())
"""What is measured of a set-up."""

UnitPlaces = Literal["line", "alternate", "split", "near", "far"]
JobSet = Literal["single", "thirty", "five", "sizes", "kernels"]
JOBS_OF: dict[str, JobSet] = {
    "Table 2": "single", "Table 4": "single", "Figure 4": "thirty", "Figure 5": "sizes", "Figure 6": "sizes",
    "Figure 7": "sizes", "Load axis": "sizes", "Figure 8": "kernels",
}  # fmt: skip
"""Figure or table of the report -> the jobs that its runs have; "five" for all others."""


def jobs_of(figure: str) -> JobSet:
    """Jobs of a figure or of one of its panels."""
    return JOBS_OF.get(figure, JOBS_OF.get(figure.rstrip("abcdefgh"), "five"))


@dataclass(frozen=True)
class Setup:
    """One simulation.

    Attributes
    ----------
    gpus : GPUs among the 40 units; the others are CPUs
    layout : "line": all at one place; "alternate": two racks, every second unit a GPU (Figure 15); "split": the CPUs in the
        first rack, the GPUs in the second (Figure 17); "near" and "far": one GPU, data in its rack or in another (Table 4)
    neurasmus : instead, ten CPUs and 30 units of "gpu", "phi" or "dfe", or ten of each ("mixed")
    jobs : "single": one task; "thirty": 500 x 30 tasks of 3M operations; "five": 500 x 5 of 30M; "sizes": 500 jobs of 25,000
        tasks of 30M; "kernels": 2,500 single kernels
    good : share of the jobs of type FP_GOOD, the others FP_BAD; None for jobs of `kind`
    gpu_int : operations per microsecond of a GPU for INT
    gap : microseconds between arrivals
    data : where task data lie: on all 40 nodes or on those of the first rack
    """

    gap: float
    jobs: JobSet = "five"
    gpus: int = 20
    layout: UnitPlaces = "line"
    neurasmus: str = ""
    kind: int = FP_GOOD
    good: float | None = None
    gpu_int: float = 1.2e6
    policy: str = "high"
    tie: str = "order"
    preferred: int = ANY
    data_size: int = 0
    data: Literal["all", "first rack"] = "all"
    contended: bool = False
    sample: int = 0
    seed: int = 0

    def case(self) -> vinesim.VineSimCase:
        """Build what the simulator takes."""
        idle, busy = np.full(6, np.nan), np.full((6, 7), np.nan)
        for unit, (standing, working) in WATTS.items():
            idle[unit], busy[unit] = standing, working
        known = not self.neurasmus
        return vinesim.VineSimCase.of(
            self.deployment(),
            self.tasks(),
            self.affinity(),
            self.gap,
            power=vinesim.Power(busy, idle) if known else None,
            contended=self.contended,
        )

    def deployment(self) -> vinesim.UnitList:
        """Units and where they stand."""
        if self.neurasmus:
            each = {"gpu": [GPU] * 30, "phi": [PHI] * 30, "dfe": [DFE] * 30, "mixed": [GPU, PHI, DFE] * 10}[self.neurasmus]
            return vinesim.UnitList.of([(kind, 0, y) for y, kind in enumerate([CPU] * 10 + each)])
        if self.layout in ("near", "far"):
            return vinesim.UnitList.of([(GPU, 0, 0)])
        if self.layout == "line":
            return vinesim.UnitList.of([(CPU if y < UNITS - self.gpus else GPU, 0, y) for y in range(UNITS)])
        half = UNITS // 2
        if self.layout == "split":
            return vinesim.UnitList.of([(CPU if x == 0 else GPU, x, y) for x in range(2) for y in range(half)])
        return vinesim.UnitList.of([(CPU if y % 2 == 0 else GPU, x, y) for x in range(2) for y in range(half)])

    def affinity(self) -> FloatArray:
        """(unit type, task type) operations per microsecond: Table 2, or Table 3 with one operation a kernel."""
        rates = np.zeros((6, 7))
        if self.neurasmus:
            for unit, times in KERNELS_MS.items():
                rates[unit, :3] = [1 / (1000 * ms) for ms in times]
            return rates
        rates[CPU, :3] = 1e5 * np.array([1, 0.6, 0.6])
        rates[GPU, :3] = self.gpu_int * np.array([1, 0.01, 1])
        return rates

    def tasks(self) -> vinesim.TaskList:
        """Draw the jobs."""
        sizes, operations = self._sizes()
        kinds = np.full(len(sizes), self.kind)
        if self.jobs == "kernels":
            kinds = np.floor(3 * uniform(self.seed, "kernel", np.arange(len(sizes)))).astype(np.int64)
        elif self.good is not None:
            rank = np.argsort(np.argsort(uniform(self.seed, "kind", np.arange(len(sizes)))))
            kinds = np.where(rank < round(self.good * len(sizes)), FP_GOOD, FP_BAD)
        tasks = vinesim.TaskList.of_jobs(sizes.tolist(), kinds.tolist(), operations, self.preferred, self.data_size)
        if not self.data_size:
            return tasks
        table = tasks.table.copy()
        if self.layout in ("near", "far"):
            table[:, 2], table[:, 3] = (0, 1) if self.layout == "near" else (1, 0)
            return vinesim.TaskList.of(table)
        places = 20 if self.data == "first rack" else UNITS
        node = np.floor(places * uniform(self.seed, "data", table[:, 6], np.arange(len(table)))).astype(np.int64)
        table[:, 2], table[:, 3] = node // 20, node % 20
        return vinesim.TaskList.of(table)

    def _sizes(self) -> tuple[IntArray, int]:
        """(n_job,) tasks of each job, and the operations of one."""
        match self.jobs:
            case "single":
                return np.ones(1, dtype=np.int64), 3_000_000
            case "thirty":
                return np.full(500, 30), 3_000_000
            case "five":
                return np.full(500, 5), 30_000_000
            case "kernels":
                return np.ones(2500, dtype=np.int64), 1
            case "sizes":
                return mixed_sizes(self.seed), 30_000_000


def mixed_sizes(seed: int) -> IntArray:
    """(500,) tasks: 450 jobs uniform in 1..20, 45 in 21..300, 5 large ones that make 25,000 in all; shuffled."""
    draws = uniform(seed, "size", np.arange(495))
    sizes = np.where(np.arange(495) < 450, 1 + np.floor(20 * draws), 21 + np.floor(280 * draws)).astype(np.int64)
    rest = 25_000 - int(sizes.sum())
    large = np.full(5, rest // 5)
    large[: rest % 5] += 1
    whole = np.concatenate([sizes, large])
    return whole[np.argsort(uniform(seed, "shuffle", np.arange(500)))]


def run_setup(setup: Setup) -> dict[str, Any]:
    """Simulate one set-up: its metrics, and if sampled "series" of the utilisation of each unit type."""
    case = setup.case()
    options = {"tie": setup.tie} if setup.policy in ("high", "closer_to_data") else {}
    scheduler = Dispatch(make("placements", setup.policy, **options))
    done = simulate(case.machine, case.workload, scheduler, truth=case.model, estimate=case.estimate, seed=setup.seed)
    run = MeasuredRun.of(done.schedule)
    found = measure_run(run, MEASURES)
    content: dict[str, Any] = {name: value for name, value in found.items() if value == value}  # no NaN in JSON
    if setup.sample:
        series = unit_series(done.schedule, run.window, setup.sample * US)
        by_type = {name: column.tolist() for name, column in series.by_type.items()}
        content["series"] = {"begin_us": (series.begin / US).tolist(), "by_type": by_type}
    return content


def prepare() -> None:
    """Compile the kernels, in one process before others start."""
    run_setup(Setup(0.0, jobs="single"))


@dataclass(frozen=True)
class VineSimPlan:
    """What is run: everything, or with `quick` fewer loads and seeds."""

    quick: bool = False

    @property
    def seeds(self) -> range:
        """Seeds of what is drawn: FLAT, kernels; the first five of where data lie."""
        return range(2 if self.quick else 10)

    @property
    def size_seeds(self) -> range:
        """Seeds of the workload of 25,000 tasks."""
        return range(1 if self.quick else 10)

    @property
    def gaps(self) -> tuple[float, ...]:
        """Times between arrivals of the workload of 25,000 tasks (Figures 5 and 7)."""
        return (0, 100, 30_000) if self.quick else (0, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)

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
        """All set-ups, each with its seeds."""
        return [*self._single(), *self._mixes(), *self._types(), *self._kernels(), *self._policies(), *self._data()]

    def seeded(self, setup: Setup) -> list[Setup]:
        """Repeat a set-up with the seeds that its random draws call for."""
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
        """What a reader must know before the numbers."""
        said = [
            "The report's traces are not public; its workloads are drawn from what it says about them: job sizes of Section "
            "7.2 as 450 jobs uniform in 1 to 20 tasks, 45 in 21 to 300, and 5 large ones that make 25,000 tasks.",
            f"Intervals are 95 % over {len(self.seeds)} seeds (5 of where data lie, {len(self.size_seeds)} of "
            "the 25,000 tasks); what draws nothing has none. Average latency is the mean; the report also calls the median so.",
            "GPUs and CPUs alternate along each rack in Figure 15 (assumed). Watts are assumed: CPUs 60 idle and 150 busy, "
            "GPUs 40 and 300.",
            "No time between arrivals is printed for the low load of Figure 4; it is 1,000 us here, where no two jobs meet.",
        ]
        return [*said, "A quick run: fewer loads and seeds; some rows are not measured."] if self.quick else said

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


POLICIES = ("high", "flat", "closer_to_data", "earliest_finish", "delay")
STRENGTHS = {"1to1": 1e5, "2to1": 2e5, "5to1": 5e5, "10to1": 1e6, "15to1": 1.5e6, "15to1 as printed": 1.5e7}
"""Section 7.4: name -> INT affinity of a GPU; the last is printed as 15,000,000 and called 15 to 1."""
NEAR_FAR: tuple[UnitPlaces, ...] = ("near", "far")
PLACES: tuple[tuple[UnitPlaces, Literal["all", "first rack"]], ...] = (
    ("alternate", "all"),
    ("split", "all"),
    ("split", "first rack"),
)
"""(layout, where data lie) of Figures 16, 18 (a to c) and 18 (d to f)."""
