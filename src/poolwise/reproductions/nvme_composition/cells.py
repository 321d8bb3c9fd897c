"""Cases of the NVMe composition reproduction: one simulation, the physics it assumes, and its measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
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
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
    rule,
)
from poolwise.reproductions.measurements import Measurer
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.traces.generators.nvme_mix import MixScenario, NvmeMix

Infrastructure = Literal["disaggregated", "physically_attached"]
NvmePolicy = Literal["first_fit", "disaggregation_aware"]
MACHINES: Mapping[Infrastructure, str] = {"disaggregated": "nvme-pooled", "physically_attached": "nvme-attached"}
MODELED = {"bandwidth_bound": "catalog:nvme-smufin.csv", "fio": "catalog:nvme-fio.csv"}


@dataclass(frozen=True)
class Physics:
    """Assumptions that may differ from the text, each switched alone; all off by default.

    All but the last two are known differences of the authors' simulator (specs of the NVMe composition, "Parity").

    Attributes
    ----------
    constant_gaps : workloads arrive at equal gaps instead of as a Poisson process
    correlated : kind and priority come from one draw
    frozen : running workloads keep the speed at which they started
    base_times : under first_fit modeled workloads take their base time, under the other policies the table's
    all_resources : bandwidth and capacity also limit the ideal machine and open the window
    seventh : a seventh workload may share a composition
    late_alone : a workload past its deadline joins no composition in use. No source states this; it was inferred from the
        published device usage and sharing ratios of overloaded machines, so it is not part of parity
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


DEFAULT = Physics()
PARITY = Physics(constant_gaps=True, correlated=True, frozen=True, base_times=True, all_resources=True, seventh=True)
INFERRED = replace(PARITY, late_alone=True, capacity_alone=True)
SEVENTH = (2358.0, 2132.0, 1905.0)
"""Seconds of a seventh SMUFIN instance on compositions of 1, 2, and 3 or more devices (specs, "Workloads")."""


@dataclass(frozen=True)
class NvmeLoad:
    """Workload mix at a target load: the input of `calibrate`."""

    scenario: MixScenario
    target: float
    seed: int
    fio: float = 0.0
    physics: Physics = DEFAULT

    @property
    def mix(self) -> NvmeMix:
        """Mix before its gaps are scaled."""
        p = self.physics
        return NvmeMix(self.scenario, fio=self.fio, seed=self.seed, constant_gaps=p.constant_gaps, correlated=p.correlated)

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


def measure_nvme_case(cases: Sequence[NvmeCase], measure: Measurer) -> dict[NvmeCase, dict[str, Any]]:
    """Measure each case after its calibration."""
    return measure(cases, partial(measured_values, calibrations=calibrate_loads(cases, measure)))


def calibrate_loads(cases: Sequence[NvmeCase], measure: Measurer) -> dict[NvmeLoad, dict[str, Any]]:
    """Calibrate the arrival gaps of the loads of some cases."""
    return measure([case.load.calibration for case in cases], _calibrate_load)


def _calibrate_load(load: NvmeLoad) -> dict[str, Any]:
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
    """Return the published machine, with the given number of pooled devices."""
    document = Document.read(catalog.find("machines", MACHINES[infrastructure]))
    if infrastructure == "disaggregated":
        document = document.with_value("device.nvme.count", devices, Origin("devices"))
    return machine_of(check_machine(document), infrastructure)


def model(policy: NvmePolicy, physics: Physics) -> PerformanceModel:
    """Return the performance model under a policy."""
    if policy == "first_fit" and physics.base_times:
        return Ideal()
    tables = {kind: SharingTable.read(name) for kind, name in MODELED.items()}
    if physics.seventh:
        measured = tables["bandwidth_bound"].seconds
        rows = tuple((*row, more) for row, more in zip(measured, SEVENTH, strict=True))
        tables["bandwidth_bound"] = SharingTable(rows)
    return NvmeSharing(tables, fixed_at_start=physics.frozen)


def placement(policy: NvmePolicy, physics: Physics) -> PlacementPolicy:
    """Return the placement of a policy."""
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

    Raises PolicyError if the schedule breaks a composition rule.
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
    case: NvmeCase, calibrations: Mapping[NvmeLoad, Mapping[str, Any]], policy: PlacementPolicy | None = None
) -> dict[str, Any]:
    """Return the metrics of a case under the names of the published tables, and the counts that the figures need."""
    calibration = calibrations[case.load.calibration]
    gap_s = case.gap_s or calibration["gap_s"]
    schedule = run_nvme_case(case, gap_s, policy)
    scale = gap_s / calibration["gap_s"]  # the window scales with the gaps, so it covers the same arrivals
    window = Window(round(calibration["begin"] * scale), round(calibration["end"] * scale))
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
        "opened": bool(calibration["opened"]),
        "reached": bool(calibration["reached"]),
        **_placement_counts(schedule, case.load.physics.capacity_alone),
    }


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
