"""The runs behind the reproduction of the NVMe composition paper: what one is, how it is measured, where it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types

from poolwise import catalog
from poolwise.engine import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.files import write_whole
from poolwise.interfaces import PerformanceModel, PlacementPolicy
from poolwise.metrics.compositions import composition_faults
from poolwise.metrics.deadlines import missed_high_priority_pct, missed_pct
from poolwise.metrics.devices import demand_before, device_use, nodes_of
from poolwise.metrics.window import Window
from poolwise.model import Machine, Schedule
from poolwise.performance.ideal import Ideal
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.policies.placement.nvme_disaggregation_aware import NvmeDisaggregationAware, rule
from poolwise.policies.placement.nvme_first_fit import NvmeFirstFit
from poolwise.policies.placement.nvme_maximize_composition import NvmeMaximizeComposition
from poolwise.policies.placement.nvme_minimize_fragmentation import NvmeMinimizeFragmentation
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.studies.build import machine_of
from poolwise.studies.calibration import calibrate
from poolwise.studies.cells import canonical, digest, sources
from poolwise.studies.document import Document, Origin
from poolwise.studies.machine_file import check
from poolwise.traces.generators.nvme_mix import NvmeMix, Scenario

Infrastructure = Literal["disaggregated", "physically_attached"]
Policy = Literal["first_fit", "disaggregation_aware"]
MACHINES: Mapping[Infrastructure, str] = {"disaggregated": "nvme-pooled", "physically_attached": "nvme-attached"}
MODELLED = {"bandwidth_bound": "catalog:nvme-smufin.csv", "fio": "catalog:nvme-fio.csv"}


@dataclass(frozen=True)
class Physics:
    """What may differ from the text, each on its own; all off by default.

    All but the last are what the authors' simulator is known to do differently (specs of the NVMe composition, "Parity").

    Attributes
    ----------
    constant_gaps : arrivals at equal gaps instead of a Poisson process
    correlated : kind and priority from one draw
    frozen : residents keep the speed that they started with
    base_times : under first_fit modelled workloads take their base time, under the other policies the table
    all_resources : bandwidth and capacity limit the ideal machine too, and open the window
    seventh : a seventh workload may share a composition
    late_alone : a workload whose deadline has passed joins no composition in use. Nobody says so: it was inferred from the
        published device usage and sharing ratios of overloaded machines, so it is no part of parity
    """

    constant_gaps: bool = False
    correlated: bool = False
    frozen: bool = False
    base_times: bool = False
    all_resources: bool = False
    seventh: bool = False
    late_alone: bool = False


DEFAULT = Physics()
PARITY = Physics(constant_gaps=True, correlated=True, frozen=True, base_times=True, all_resources=True, seventh=True)
INFERRED = replace(PARITY, late_alone=True)
SEVENTH = (2358.0, 2132.0, 1905.0)
"""Seconds of a seventh SMUFIN instance on compositions of 1, 2, and 3 or more devices (specs, "Workloads")."""


@dataclass(frozen=True)
class Load:
    """A workload at a load: what `calibrate` needs."""

    scenario: Scenario
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
    def clock(self) -> Load:
        """What the calibration depends on: neither speeds nor priorities matter to the ideal machine."""
        p = self.physics
        return replace(self, physics=Physics(constant_gaps=p.constant_gaps, all_resources=p.all_resources))


@dataclass(frozen=True)
class Case:
    """One simulation."""

    load: Load
    policy: Policy
    infrastructure: Infrastructure = "disaggregated"
    high_priority_factor: float = 1.2
    devices: int = 10


@dataclass(frozen=True)
class Cells:
    """Results that are kept in a folder, one file a calibration or case: what is there is not run again."""

    folder: Path
    jobs: int = -1
    _done: dict[str, dict[str, Any]] = field(default_factory=dict)

    def measure(self, cases: Iterable[Case]) -> dict[Case, dict[str, Any]]:
        """Measure cases, each once, in parallel."""
        wanted = list(dict.fromkeys(cases))
        clocks = list(dict.fromkeys(case.load.clock for case in wanted))
        self._run([("calibration", clock, (clock,)) for clock in clocks])
        gaps = {clock: self._done[_key("calibration", clock)] for clock in clocks}
        self._run([("case", case, (case, gaps[case.load.clock])) for case in wanted])
        return {case: self._done[_key("case", case)] for case in wanted}

    def _run(self, tasks: list[tuple[str, Load | Case, tuple[Any, ...]]]) -> None:
        todo = []
        for what, thing, arguments in tasks:
            key = _key(what, thing)
            if key in self._done:
                continue
            kept = self.folder / f"{key}.json"
            if kept.is_file():
                self._done[key] = json.loads(kept.read_bytes())
            else:
                todo.append((what, key, arguments))
        self.folder.mkdir(parents=True, exist_ok=True)
        program = sources()
        work = (delayed(_perform)(what, arguments, self.folder / f"{key}.json", program) for what, key, arguments in todo)
        for (_, key, _), found in zip(todo, Parallel(n_jobs=self.jobs)(work), strict=True):
            self._done[key] = found


def _key(what: str, thing: Load | Case) -> str:
    return digest(canonical([what, asdict(thing), sources()]))


def _perform(what: str, arguments: tuple[Any, ...], path: Path, program: str) -> dict[str, Any]:
    if sources() != program:  # a worker that started later
        raise InputError("Poolwise itself changed while the reproduction ran", remedy="run it again")
    found = _calibrated(*arguments) if what == "calibration" else _measured(*arguments)
    write_whole(path, canonical(found).encode())
    return found


def _calibrated(load: Load) -> dict[str, Any]:
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
    return machine_of(check(document), infrastructure, document)


def model(policy: Policy, physics: Physics) -> PerformanceModel:
    """How long workloads take under a policy."""
    if policy == "first_fit" and physics.base_times:
        return Ideal()
    tables = {kind: SharingTable.read(name) for kind, name in MODELLED.items()}
    if physics.seventh:
        measured = tables["bandwidth_bound"].seconds
        rows = tuple((*row, more) for row, more in zip(measured, SEVENTH, strict=True))
        tables["bandwidth_bound"] = SharingTable(rows)
    return NvmeSharing(tables, fixed_at_start=physics.frozen)


def placement(policy: Policy, physics: Physics) -> PlacementPolicy:
    """Where workloads run under a policy."""
    if policy == "first_fit":
        return NvmeFirstFit()
    late_shares = not physics.late_alone
    return NvmeDisaggregationAware(
        NvmeMaximizeComposition(late_shares=late_shares), NvmeMinimizeFragmentation(late_shares=late_shares)
    )


def run(case: Case, gap_s: float) -> Schedule:
    """Simulate a case; raises PolicyError if the schedule breaks a rule of composition."""
    mix = replace(case.load.mix, mean_gap_s=gap_s, high_priority_factor=case.high_priority_factor)
    scheduler = CompositionScheduler(placement=placement(case.policy, case.load.physics))
    truth = model(case.policy, case.load.physics)
    schedule = simulate(machine(case.infrastructure, case.devices), mix.generate(), scheduler, truth=truth).schedule
    faults = composition_faults(schedule)
    if faults:
        raise PolicyError(f"{case}: {faults[0]}")
    return schedule


def _measured(case: Case, clock: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics by the names of the published tables, and what the figures need."""
    schedule = run(case, clock["gap_s"])
    window = Window(clock["begin"], clock["end"])
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
        **_places(schedule),
    }


def _places(schedule: Schedule) -> dict[str, Any]:
    """Runs with and without NVMe on each node; NVMe workloads that each policy of the disaggregation-aware one placed."""
    nvme = schedule.workload.request("bandwidth")[schedule.job] > 0
    nodes = nodes_of(schedule)
    loads = zip(demand_before(schedule, "bandwidth").tolist(), demand_before(schedule, "storage").tolist(), strict=True)
    maximized = np.array([rule(*pair) == "maximize_composition" for pair in loads], dtype=np.bool_)
    count = int(nodes.max()) + 1 if len(nodes) else 0
    return {
        "node_nvme": np.bincount(nodes[nvme], minlength=count).tolist(),
        "node_compute": np.bincount(nodes[~nvme], minlength=count).tolist(),
        "maximized": int((maximized & nvme).sum()),
        "minimized": int((~maximized & nvme).sum()),
    }
