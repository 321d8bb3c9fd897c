"""The runs behind the reproduction of the NVMe composition paper: what one is, how it is measured, where it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poolwise import catalog
from poolwise.calibration import calibrate
from poolwise.engines import simulate
from poolwise.errors import PolicyError
from poolwise.files.document import Document, Origin
from poolwise.files.machine import check_machine
from poolwise.files.machine_build import machine_of
from poolwise.interfaces import PerformanceModel, PlacementPolicy
from poolwise.metrics.compositions import composition_faults
from poolwise.metrics.deadlines import missed_high_priority_pct, missed_pct
from poolwise.metrics.devices import demand_before, device_use, nodes_of
from poolwise.metrics.window import Window
from poolwise.model import Machine, Schedule
from poolwise.performance.ideal import Ideal
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.policies.placement.nvme.disaggregation_aware import NvmeDisaggregationAware, rule
from poolwise.policies.placement.nvme.first_fit import NvmeFirstFit
from poolwise.policies.placement.nvme.maximize_composition import NvmeMaximizeComposition
from poolwise.policies.placement.nvme.minimize_fragmentation import NvmeMinimizeFragmentation
from poolwise.reproductions import cached_measurements
from poolwise.runner import Executor, Progress
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.traces.generators.nvme_mix import MixScenario, NvmeMix

Infrastructure = Literal["disaggregated", "physically_attached"]
NvmePolicy = Literal["first_fit", "disaggregation_aware"]
MACHINES: Mapping[Infrastructure, str] = {"disaggregated": "nvme-pooled", "physically_attached": "nvme-attached"}
MODELLED = {"bandwidth_bound": "catalog:nvme-smufin.csv", "fio": "catalog:nvme-fio.csv"}


@dataclass(frozen=True)
class Physics:
    """What may differ from the text, each on its own; all off by default.

    All but the last two are what the authors' simulator is known to do differently (specs of the NVMe composition, "Parity").

    Attributes
    ----------
    constant_gaps : arrivals at equal gaps instead of a Poisson process
    correlated : kind and priority from one draw
    frozen : residents keep the speed that they started with
    base_times : under first_fit modelled workloads take their base time, under the other policies the table
    all_resources : bandwidth and capacity limit the ideal machine too, and open the window
    seventh : a seventh workload may share a composition
    late_alone : a workload whose deadline has passed joins no composition in use. No source states it: it was inferred from the
        published device usage and sharing ratios of overloaded machines, so it is no part of parity
    capacity_alone : equation 4 is decided by the capacity alone; inferred likewise, from the published composition sizes
    """

    constant_gaps: bool = False
    correlated: bool = False
    frozen: bool = False
    base_times: bool = False
    all_resources: bool = False
    seventh: bool = False
    late_alone: bool = False
    capacity_alone: bool = False


DEFAULT = Physics()
PARITY = Physics(constant_gaps=True, correlated=True, frozen=True, base_times=True, all_resources=True, seventh=True)
INFERRED = replace(PARITY, late_alone=True, capacity_alone=True)
SEVENTH = (2358.0, 2132.0, 1905.0)
"""Seconds of a seventh SMUFIN instance on compositions of 1, 2, and 3 or more devices (specs, "Workloads")."""


@dataclass(frozen=True)
class NvmeLoad:
    """A workload at a load: what `calibrate` needs."""

    scenario: MixScenario
    target: float
    seed: int
    fio: float = 0.0
    physics: Physics = DEFAULT

    @property
    def mix(self) -> NvmeMix:
        """The mix before its gaps are scaled."""
        p = self.physics
        return NvmeMix(self.scenario, fio=self.fio, seed=self.seed, constant_gaps=p.constant_gaps, correlated=p.correlated)

    @property
    def clock(self) -> NvmeLoad:
        """What the calibration depends on: neither speeds nor priorities matter to the ideal machine."""
        p = self.physics
        return replace(self, physics=Physics(constant_gaps=p.constant_gaps, all_resources=p.all_resources))


@dataclass(frozen=True)
class NvmeCase:
    """One simulation; with `gap_s` one arrival in so many seconds, whatever that loads the ideal machine to."""

    load: NvmeLoad
    policy: NvmePolicy
    infrastructure: Infrastructure = "disaggregated"
    high_priority_factor: float = 1.2
    devices: int = 10
    gap_s: float = 0.0


def measure_nvme_case(
    cases: Iterable[NvmeCase], folder: Path, executor: Executor, progress: Progress | None = None
) -> dict[NvmeCase, dict[str, Any]]:
    """Measure cases, each once, in parallel, after the calibrations that they need; what is kept is not run again."""
    wanted = list(cases)
    clocks = clocks_of(wanted, folder, executor, progress)
    return cached_measurements.measure_all(wanted, partial(measured_values, clocks=clocks), folder, executor, progress=progress)


def clocks_of(
    cases: Iterable[NvmeCase], folder: Path, executor: Executor, progress: Progress | None = None
) -> dict[NvmeLoad, dict[str, Any]]:
    """Calibrate what cases need."""
    return cached_measurements.measure_all(
        [case.load.clock for case in cases], _calibrated, folder, executor, progress=progress
    )


def _calibrated(load: NvmeLoad) -> dict[str, Any]:
    found = calibrate(load.mix, machine("disaggregated", 10), load.target, all_resources=load.physics.all_resources)
    ideal = found.ideal
    return {
        "gap_s": found.mix.mean_gap_s,
        "ideal": ideal.load,
        "reached": found.reached,
        "begin": ideal.window.begin,
        "end": ideal.window.end,
        "opened": ideal.opened,
    }


@lru_cache(maxsize=16)
def machine(infrastructure: Infrastructure, devices: int) -> Machine:
    """The published machine, with another number of pooled devices if asked for."""
    document = Document.read(catalog.find("machines", MACHINES[infrastructure]))
    if infrastructure == "disaggregated":
        document.set("device.nvme.count", devices, Origin("devices"))
    return machine_of(check_machine(document), infrastructure, document)


def model(policy: NvmePolicy, physics: Physics) -> PerformanceModel:
    """How long workloads take under a policy."""
    if policy == "first_fit" and physics.base_times:
        return Ideal()
    tables = {kind: SharingTable.read(name) for kind, name in MODELLED.items()}
    if physics.seventh:
        measured = tables["bandwidth_bound"].seconds
        rows = tuple((*row, more) for row, more in zip(measured, SEVENTH, strict=True))
        tables["bandwidth_bound"] = SharingTable(rows)
    return NvmeSharing(tables, fixed_at_start=physics.frozen)


def placement(policy: NvmePolicy, physics: Physics) -> PlacementPolicy:
    """Where workloads run under a policy."""
    if policy == "first_fit":
        return NvmeFirstFit()
    late_shares = not physics.late_alone
    return NvmeDisaggregationAware(
        NvmeMaximizeComposition(late_shares=late_shares),
        NvmeMinimizeFragmentation(late_shares=late_shares),
        capacity_alone=physics.capacity_alone,
    )


def run_nvme_case(case: NvmeCase, gap_s: float, policy: PlacementPolicy | None = None) -> Schedule:
    """Simulate a case, with another placement if one is given.

    Raises PolicyError if the schedule breaks a rule of composition.
    """
    mix = replace(case.load.mix, mean_gap_s=gap_s, high_priority_factor=case.high_priority_factor)
    scheduler = CompositionScheduler(placement=placement(case.policy, case.load.physics) if policy is None else policy)
    truth = model(case.policy, case.load.physics)
    schedule = simulate(machine(case.infrastructure, case.devices), mix.generate(), scheduler, truth=truth).schedule
    faults = composition_faults(schedule)
    if faults:
        raise PolicyError(f"{case}: {faults[0]}")
    return schedule


def measured_values(
    case: NvmeCase, clocks: Mapping[NvmeLoad, Mapping[str, Any]], policy: PlacementPolicy | None = None
) -> dict[str, Any]:
    """Metrics by the names of the published tables, and what the figures need; see `run_nvme_case`."""
    clock = clocks[case.load.clock]
    gap_s = case.gap_s or clock["gap_s"]
    schedule = run_nvme_case(case, gap_s, policy)
    scale = gap_s / clock["gap_s"]  # the same arrivals are measured
    window = Window(round(clock["begin"] * scale), round(clock["end"] * scale))
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
        "opened": bool(clock["opened"]),
        "reached": bool(clock["reached"]),
        **_places(schedule, case.load.physics.capacity_alone),
    }


def _places(schedule: Schedule, capacity_alone: bool) -> dict[str, Any]:
    """Runs with and without NVMe on each node; NVMe workloads that each policy of the disaggregation-aware one placed."""
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
