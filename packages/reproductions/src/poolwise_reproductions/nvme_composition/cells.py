"""Cases of the NVMe composition reproduction: one simulation, the physics it assumes, and its measurements."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from poolwise import catalog
from poolwise.calibration import calibrate
from poolwise.errors import PolicyError
from poolwise.files.component import Component
from poolwise.files.document import Document, Origin
from poolwise.files.machine import MachineDescription, read_machine
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json, canonical
from poolwise.metrics.compositions import composition_faults
from poolwise.metrics.deadlines import missed_high_priority_pct, missed_pct
from poolwise.metrics.devices import demand_before, device_use, nodes_of
from poolwise.metrics.window import Window
from poolwise.model import Schedule
from poolwise.policies.placement.nvme.policies import rule
from poolwise.studies.cells import Cell, GeneratorSource, cell_sources
from poolwise.traces.generators.nvme_mix import MixScenario, NvmeMix
from poolwise_reproductions.cases import CellCase, MeasuredCase, Measurer

Infrastructure = Literal["disaggregated", "physically_attached"]
NvmePolicy = Literal["first_fit", "disaggregation_aware", "maximize_composition", "minimize_fragmentation"]
ALONE: tuple[NvmePolicy, ...] = ("maximize_composition", "minimize_fragmentation")
"""The two algorithms, each used throughout a run (section III-C)."""
MACHINES: Mapping[Infrastructure, str] = {"disaggregated": "nvme-pooled", "physically_attached": "nvme-attached"}


@dataclass(frozen=True)
class Physics:
    """Assumptions that may differ from the text, each switched alone; all off by default.

    All but the last two are known differences of the authors' simulator (specs of the NVMe composition, "Parity").

    Attributes
    ----------
    constant_gaps : workloads arrive at equal gaps instead of as a Poisson process
    correlated : kind and priority come from one draw
    frozen : running workloads keep the speed at which they started
    base_times : modeled workloads take their base time under first_fit, and the table's time under the other policies
    all_resources : bandwidth and capacity also limit the ideal machine and open the window
    seventh : a seventh workload may share a composition
    late_alone : a workload past its deadline does not join a composition in use. No source states this; it was inferred from
        the published device usage and sharing ratios of overloaded machines, and is not part of parity
    capacity_alone : the capacity alone decides equation 4; also inferred, from the published composition sizes
    """

    constant_gaps: bool = False
    correlated: bool = False
    frozen: bool = False
    base_times: bool = False
    all_resources: bool = False
    seventh: bool = False
    late_alone: bool = False
    capacity_alone: bool = False

    def includes(self, other: Physics) -> bool:
        """Return whether every assumption that `other` switches on is also switched on here."""
        return all(mine or not theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))


DEFAULT = Physics()
PARITY = Physics(constant_gaps=True, correlated=True, frozen=True, base_times=True, all_resources=True, seventh=True)
INFERRED = replace(PARITY, late_alone=True, capacity_alone=True)


@dataclass(frozen=True)
class Algorithms:
    """Readings of Algorithms 1 and 2 that differ from the specification's, each switched alone; all off by default.

    Attributes
    ----------
    each_parameter, fitness_as_printed, max_extension : see `NvmeMaximizeComposition`
    alpha_as_printed : see `NvmeMinimizeFragmentation`
    """

    each_parameter: bool = False
    fitness_as_printed: bool = False
    max_extension: float | None = None
    alpha_as_printed: bool = False

    @property
    def maximize(self) -> Json:
        """Changed settings of maximize composition."""
        changes: dict[str, Any] = {name: True for name in ("each_parameter", "fitness_as_printed") if getattr(self, name)}
        return changes if self.max_extension is None else {**changes, "max_extension": self.max_extension}

    @property
    def minimize(self) -> Json:
        """Changed settings of minimize fragmentation."""
        return {"alpha_as_printed": True} if self.alpha_as_printed else {}


AS_SPECIFIED = Algorithms()


@dataclass(frozen=True)
class NvmeLoad:
    """Workload mix at a target load: the input of `calibrate`."""

    scenario: MixScenario
    target: float
    seed: int
    fio: float = 0.0
    physics: Physics = DEFAULT

    @property
    def settings(self) -> Json:
        """Settings of the mix before its gaps are scaled."""
        chosen = {"constant_gaps": self.physics.constant_gaps, "correlated": self.physics.correlated}
        return {"scenario": self.scenario, "fio": self.fio, "seed": self.seed, **chosen}

    @property
    def calibration(self) -> NvmeLoad:
        """Load with only the physics that the calibration depends on; speeds and priorities do not affect the ideal machine."""
        p = self.physics
        return replace(self, physics=Physics(constant_gaps=p.constant_gaps, all_resources=p.all_resources))


@dataclass(frozen=True)
class NvmeCase:
    """One simulation; `gap_s` sets the seconds between arrivals directly instead of calibrating them to the load."""

    load: NvmeLoad
    policy: NvmePolicy
    infrastructure: Infrastructure = "disaggregated"
    high_priority_factor: float = 1.2
    devices: int = 10
    gap_s: float = 0.0
    algorithms: Algorithms = AS_SPECIFIED


@dataclass(frozen=True)
class LoadCalibration(MeasuredCase):
    """Arrival gaps and measurement window at which the ideal machine reaches a load."""

    load: NvmeLoad

    def inputs(self) -> Json:
        """Return the content of the machine."""
        return described("disaggregated", 10).content

    def measure(self) -> Json:
        """Calibrate the gaps."""
        load = self.load
        calibration = calibrate(
            NvmeMix(**load.settings),
            described("disaggregated", 10).machine,
            load.target,
            all_resources=load.physics.all_resources,
        )
        ideal = calibration.ideal
        return {
            "gap_s": calibration.mix.mean_gap_s,
            "ideal": ideal.load,
            "reached": calibration.reached,
            "begin": ideal.window.begin,
            "end": ideal.window.end,
            "opened": ideal.opened,
        }


@dataclass(frozen=True)
class NvmeRun(CellCase):
    """Run of a case with calibrated arrivals.

    Attributes
    ----------
    gap_s : seconds between arrivals
    begin, end : measurement window, ns
    opened, reached : whether the ideal load opened the window, and whether the calibration reached its target
    """

    case: NvmeCase
    gap_s: float
    begin: int
    end: int
    opened: bool
    reached: bool

    @classmethod
    def of(cls, case: NvmeCase, calibration: Mapping[str, Any]) -> NvmeRun:
        """Return the run of a case; the window is scaled with the gaps, so that it covers the same arrivals."""
        gap_s = case.gap_s or calibration["gap_s"]
        scale = gap_s / calibration["gap_s"]
        begin, end = (round(calibration[name] * scale) for name in ("begin", "end"))
        return cls(case, gap_s, begin, end, calibration["opened"], calibration["reached"])

    def cell(self) -> Cell:
        """Return the cell: machine, mix, placement and sharing of devices."""
        case, load = self.case, self.case.load
        gaps = {"mean_gap_s": self.gap_s, "high_priority_factor": case.high_priority_factor}
        jobs = GeneratorSource("nvme_mix", canonical({**load.settings, **gaps}), 0, None)
        how = SchedulerSection(kind="composition", placement=placement(case.policy, load.physics, case.algorithms))
        model = PerformanceSection(model=performance(case.policy, load.physics))
        return Cell({}, load.seed, jobs, *described(case.infrastructure, case.devices), how, model, 0, cell_sources())

    def simulate(self) -> Schedule:
        """Simulate the cell without the warning that the authors' seventh sharer is faster than their sixth."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().simulate()

    def measured(self, schedule: Schedule) -> Json:
        """Return the metrics under the names of the published tables, and the counts that the figures need.

        Raises PolicyError if the schedule breaks a composition rule.
        """
        faults = composition_faults(schedule)
        if faults:
            raise PolicyError(f"{self.case}: {faults[0]}")
        window = Window(self.begin, self.end)
        workload = schedule.workload
        population = (workload.submit >= window.begin) & (workload.submit <= window.end)
        use = device_use(schedule, window)
        ran = population & schedule.done
        wait = (schedule.job_start[ran] - workload.submit[ran]) / 1e9
        return {
            "cpu_load": use.cpu_load,
            "bandwidth_load": use.bandwidth_load,
            "capacity_load": use.capacity_load,
            "missed_deadlines_pct": missed_pct(schedule, population),
            "missed_high_priority_pct": missed_high_priority_pct(schedule, population),
            "nvme_usage_pct": use.usage_pct,
            "mean_wait_s": float(wait.mean()) if len(wait) else 0.0,
            "composition_size": use.composition_size_floor,
            "sharing_ratio": use.sharing_ratio_floor,
            "true_composition_size": use.composition_size if np.isfinite(use.composition_size) else 1.0,
            "true_sharing_ratio": use.sharing_ratio if np.isfinite(use.sharing_ratio) else 0.0,
            "rejected": len(schedule.rejected),
            "measured": int(population.sum()),
            "opened": self.opened,
            "reached": self.reached,
            **_placement_counts(schedule, self.case.load.physics.capacity_alone),
        }


def measure_cases(cases: Iterable[NvmeCase], measure: Measurer) -> dict[NvmeCase, Json]:
    """Measure each case after its calibration."""
    return {run.case: record for run, record in measure(calibrated(cases, measure)).items()}


def calibrated(cases: Iterable[NvmeCase], measure: Measurer) -> list[NvmeRun]:
    """Return the run of each case after calibrating its load."""
    wanted = list(cases)
    calibrations = measure(LoadCalibration(case.load.calibration) for case in wanted)
    return [NvmeRun.of(case, calibrations[LoadCalibration(case.load.calibration)]) for case in wanted]


@lru_cache(maxsize=16)
def described(infrastructure: Infrastructure, devices: int) -> MachineDescription:
    """Return the published machine, with the given number of pooled devices."""
    document = Document.read(catalog.find("machines", MACHINES[infrastructure]))
    if infrastructure == "disaggregated":
        document = document.with_value("device.nvme.count", devices, Origin("devices"))
    return read_machine(document, default=infrastructure)


def performance(policy: NvmePolicy, physics: Physics) -> Component:
    """Return the performance model under a policy."""
    if policy == "first_fit" and physics.base_times:
        return Component(name="ideal")
    tables = {"bandwidth_bound": f"catalog:nvme-smufin{'-seven' if physics.seventh else ''}.csv", "fio": "catalog:nvme-fio.csv"}
    return Component.of("nvme_sharing", {"tables": tables, "fixed_at_start": physics.frozen})


def placement(policy: NvmePolicy, physics: Physics, algorithms: Algorithms = AS_SPECIFIED) -> Component:
    """Return the placement of a policy; `algorithms` only affects the disaggregation-aware policy."""
    if policy == "first_fit":
        return Component(name="nvme_first_fit")
    part = {"late_shares": not physics.late_alone}
    if policy in ALONE:
        return Component.of(f"nvme_{policy}", part)
    maximize, minimize = {**part, **algorithms.maximize}, {**part, **algorithms.minimize}
    settings = {"maximize": maximize, "minimize": minimize, "capacity_alone": physics.capacity_alone}
    return Component.of("nvme_disaggregation_aware", settings)


def _placement_counts(schedule: Schedule, capacity_alone: bool) -> dict[str, Any]:
    """Count runs with and without NVMe per node, and NVMe workloads by the algorithm that placed them."""
    nvme = schedule.workload.request("bandwidth")[schedule.job] > 0
    nodes = nodes_of(schedule)
    loads = zip(demand_before(schedule, "bandwidth").tolist(), demand_before(schedule, "storage").tolist(), strict=True)
    maximized = np.array([rule(pair[0], pair[1], capacity_alone) == "maximize_composition" for pair in loads], dtype=np.bool_)
    count = int(nodes.max()) + 1 if len(nodes) else 0
    return {
        "node_nvme": np.bincount(nodes[nvme], minlength=count).tolist(),
        "node_compute": np.bincount(nodes[~nvme], minlength=count).tolist(),
        "maximized": int((maximized & nvme).sum()),
        "minimized": int((~maximized & nvme).sum()),
    }
