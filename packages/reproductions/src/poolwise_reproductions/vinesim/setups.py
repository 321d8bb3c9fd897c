"""Set-ups of the VineSim report: deployments, workloads and affinities, and their simulation.

Printed values are used as they are; `VineSimPlan.notes` lists the assumptions. Times in microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.dispatch import replay as dispatch
from poolwise.files.component import Component
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json
from poolwise.metrics import MeasuredRun
from poolwise.metrics.measures import Energy, LatencyMeasure, TaskLatency, Throughput, UnitMeasure
from poolwise.metrics.summary import measure_run
from poolwise.metrics.unit_use import unit_series
from poolwise.model import Schedule
from poolwise.quantities import US
from poolwise.random import uniform
from poolwise.studies.cells import Cell, FunctionSource, cell_sources
from poolwise.traces import vinesim
from poolwise_reproductions.cases import CellCase

CPU, PHI, GPU, DFE = 0, 4, 2, 3  # unit types; the Xeon Phi is modeled as a multi-core CPU, Maxeler's DFE as an FPGA
INT, FP_BAD, FP_GOOD = 0, 1, 2  # task types
KINDS = {"INT": INT, "FP_GOOD": FP_GOOD, "FP_BAD": FP_BAD}
ANY = 5  # no preference
UNITS = 40
GPU_SHARES = {0: 0, 20: 8, 33: 13, 50: 20, 66: 26, 80: 32, 100: 40}
"""Printed percentage of GPUs -> number of GPUs among 40 units."""
KB8, KB64, MB1 = 7812, 62_500, 1_000_000
"""Bytes of the report's task data: the times of Table 4 are those of binary fractions of 10^6 (10^6 / 128 is 7812.5)."""
SIZES = {"8 KB": KB8, "64 KB": KB64, "1 MB": MB1}
KERNELS_MS = {PHI: (0.5, 0.75, 0.1), DFE: (0.3, 0.5, 0.01), GPU: (0.1, 2.4, 0.06)}
"""Table 3: unit type -> ms of the kernels SGJ, RGJ and NGJ."""
WATTS = {CPU: (60.0, 150.0), GPU: (40.0, 300.0)}
"""Unit type -> W when idle and busy; assumed, of the order of contemporary data sheets."""

MEASURES = (LatencyMeasure(), TaskLatency(), Throughput(), UnitMeasure(), Energy())
"""Measures of each set-up."""

JobGraph = Literal["", "fork"]
LargeJobs = Literal["five", "even"]
UnitPlaces = Literal["line", "alternate", "split", "near", "far"]
JobSet = Literal["single", "thirty", "five", "sizes", "kernels"]

TRANSFERS = PerformanceSection(model=Component.of("combined", {"models": ["affinity", "transfer"]}))
"""Execution times from affinities and transfers."""
SHARED_LINKS = PerformanceSection(
    model=Component.of("combined", {"models": ["affinity", "network_sharing", "fetching"]}), estimate_model=TRANSFERS.model
)
"""Execution times if transfers share links, which the scheduler does not expect."""


@dataclass(frozen=True)
class Setup(CellCase):
    """One simulation.

    Attributes
    ----------
    gpus : GPUs among the 40 units; the others are CPUs
    layout : "line": all units in one place; "alternate": two racks, every second unit a GPU (Figure 15); "split": the CPUs in
        the first rack, the GPUs in the second (Figure 17); "near" and "far": one GPU, data in its rack or in another (Table 4)
    neurasmus : replaces the deployment by ten CPUs and 30 units of "gpu", "phi" or "dfe", or ten of each ("mixed")
    jobs : "single": one task; "thirty": 500 x 30 tasks of 3M operations; "five": 500 x 5 of 30M; "sizes": 500 jobs of 25,000
        tasks of 30M; "kernels": 2,500 single kernels
    good : share of the jobs that are of type FP_GOOD, the others being FP_BAD; None if all jobs are of `kind`
    gpu_int : operations per microsecond of a GPU for INT
    gap : microseconds between arrivals
    data : location of task data: on all 40 nodes or on those of the first rack
    large : distribution of the 50 jobs of more than 20 tasks in "sizes": five very large ones and 45 of 21 to 300 tasks, or
        all 50 of similar size (half to one and a half times their mean)
    graph : "": the tasks of a job are independent; "fork": all other tasks of a job wait for its first
    varied : fraction by which a task's operations may differ from the printed number, either way; 0 makes all tasks equal
    policy, tie : placement, and how it breaks ties ("order" or "random")
    preferred : unit type that tasks prefer
    data_size : bytes of data per task
    contended : whether tasks share links instead of using the report's reduced uplink
    sample : microseconds between samples of the utilization series; 0 for none
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
    large: LargeJobs = "five"
    graph: JobGraph = ""
    varied: float = 0.0
    contended: bool = False
    sample: int = 0
    seed: int = 0

    def inputs(self) -> Json:
        """Return no inputs: the fields determine the cell, and building its machine and tasks takes longer than most runs."""
        return {}

    def cell(self) -> Cell:
        """Return the cell: tasks on units, as in deployment and dispatch plans."""
        case = self.case()
        options = {"tie": self.tie} if self.policy in ("high", "closer_to_data") else {}
        jobs = FunctionSource("tasks of a set-up", asdict(self), lambda machine: case.workload)
        how = SchedulerSection(kind="dispatch", placement=Component.of(self.policy, options))
        performance = SHARED_LINKS if self.contended else TRANSFERS
        return Cell({}, self.seed, jobs, case.machine, {}, {}, how, performance, 0, cell_sources())

    def measured(self, schedule: Schedule) -> Json:
        """Return the metrics, and with sampling the "series" of the utilization of each unit type."""
        run = MeasuredRun.of(schedule)
        content: Json = {name: value for name, value in measure_run(run, MEASURES).items() if value == value}  # no NaN in JSON
        if self.sample:
            series = unit_series(schedule, run.window, self.sample * US)
            by_type = {name: column.tolist() for name, column in series.by_type.items()}
            content["series"] = {"begin_us": (series.begin / US).tolist(), "by_type": by_type}
        return content

    @staticmethod
    def prepare(cases: Sequence[Any]) -> None:
        """Load the kernels of task dispatch."""
        dispatch.load()

    def case(self) -> vinesim.VineSimCase:
        """Return the set-up as a case of the VineSim formats."""
        idle, busy = np.full(6, np.nan), np.full((6, 7), np.nan)
        for unit, (idle_w, busy_w) in WATTS.items():
            idle[unit], busy[unit] = idle_w, busy_w
        power = None if self.neurasmus else vinesim.Power(busy, idle)
        units, tasks, rates = self.deployment(), self.tasks(), self.affinity()
        return vinesim.VineSimCase.of(units, tasks, rates, self.gap, power=power, contended=self.contended)

    def deployment(self) -> vinesim.UnitList:
        """Return the units and their positions."""
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
        """Return (unit type, task type) operations per microsecond: Table 2, or Table 3 with one operation per kernel."""
        rates = np.zeros((6, 7))
        if self.neurasmus:
            for unit, times in KERNELS_MS.items():
                rates[unit, :3] = [1 / (1000 * ms) for ms in times]
            return rates
        rates[CPU, :3] = 1e5 * np.array([1, 0.6, 0.6])
        rates[GPU, :3] = self.gpu_int * np.array([1, 0.01, 1])
        return rates

    def tasks(self) -> vinesim.TaskList:
        """Generate the tasks."""
        sizes, operations = self._sizes()
        kinds = np.full(len(sizes), self.kind)
        if self.jobs == "kernels":
            kinds = np.floor(3 * uniform(self.seed, "kernel", np.arange(len(sizes)))).astype(np.int64)
        elif self.good is not None:
            rank = np.argsort(np.argsort(uniform(self.seed, "kind", np.arange(len(sizes)))))
            kinds = np.where(rank < round(self.good * len(sizes)), FP_GOOD, FP_BAD)
        tasks = vinesim.TaskList.of_jobs(sizes.tolist(), kinds.tolist(), operations, self.preferred, self.data_size)
        table = tasks.table.copy()
        if self.varied:
            draw = 2 * uniform(self.seed, "operations", np.arange(len(table))) - 1
            table[:, 4] = np.rint(operations * (1 + self.varied * draw)).astype(np.int64)
        if self.graph == "fork":
            head = np.flatnonzero(tasks.first_of_job)
            job = np.cumsum(tasks.first_of_job) - 1
            waits = [[] if tasks.first_of_job[k] else [int(head[job[k]])] for k in range(len(table))]
            return vinesim.TaskList.of(table, waits)
        if not self.data_size:
            return vinesim.TaskList.of(table)
        if self.layout in ("near", "far"):
            table[:, 2], table[:, 3] = (0, 1) if self.layout == "near" else (1, 0)
            return vinesim.TaskList.of(table)
        places = 20 if self.data == "first rack" else UNITS
        node = np.floor(places * uniform(self.seed, "data", table[:, 6], np.arange(len(table)))).astype(np.int64)
        table[:, 2], table[:, 3] = node // 20, node % 20
        return vinesim.TaskList.of(table)

    def _sizes(self) -> tuple[IntArray, int]:
        """Return (n_job,) numbers of tasks per job, and the operations of one task."""
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
                return mixed_sizes(self.seed, self.large), 30_000_000


def mixed_sizes(seed: int, large: LargeJobs = "five") -> IntArray:
    """Return (500,) shuffled numbers of tasks, 25,000 in all: 450 jobs uniform in 1..20, and 50 larger ones.

    Of the larger jobs, 45 are uniform in 21..300 and 5 share the rest, or all 50 are of similar size.
    """
    draws = uniform(seed, "size", np.arange(495 if large == "five" else 500))
    small = 1 + np.floor(20 * draws[:450]).astype(np.int64)
    if large == "five":
        medium = 21 + np.floor(280 * draws[450:]).astype(np.int64)
        weights = np.ones(5)
    else:
        medium = np.empty(0, dtype=np.int64)
        weights = 0.5 + draws[450:]
    rest = 25_000 - int(small.sum()) - int(medium.sum())
    sizes = np.floor(rest * weights / weights.sum()).astype(np.int64)
    sizes[: rest - int(sizes.sum())] += 1
    whole = np.concatenate([small, medium, sizes])
    return whole[np.argsort(uniform(seed, "shuffle", np.arange(500)))]


POLICIES = ("high", "flat", "closer_to_data", "earliest_finish", "delay")
STRENGTHS = {"1to1": 1e5, "2to1": 2e5, "5to1": 5e5, "10to1": 1e6, "15to1": 1.5e6, "15to1 as printed": 1.5e7}
"""Section 7.4: name -> INT affinity of a GPU; the last is printed as 15,000,000 and called 15 to 1."""
AFFINITIES = tuple(name for name in STRENGTHS if "printed" not in name)
"""Strengths of GPUs that the report names, from weak to strong."""
APART_US = 30_000
"""Time between arrivals (us) at which no two jobs of five tasks overlap, whatever their data."""
PLACES: tuple[tuple[UnitPlaces, Literal["all", "first rack"]], ...] = (
    ("alternate", "all"),
    ("split", "all"),
    ("split", "first rack"),
)
"""(layout, location of data) of Figures 16, 18 (a to c) and 18 (d to f)."""


def loaded(strength: str, size: int) -> Setup:
    """Return the set-up of Figure 16 at a load so light that jobs run alone, with GPUs of a strength and data of a size."""
    return Setup(APART_US, layout="alternate", data_size=size, gpu_int=STRENGTHS[strength])
