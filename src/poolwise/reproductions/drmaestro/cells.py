"""Cases of the DRMaestro reproduction: machines, jobs and policies of one simulation, and its measurements."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poolwise import catalog
from poolwise.arrays import FloatArray, IntArray
from poolwise.engines import simulate
from poolwise.errors import PolicyError
from poolwise.files.machine import load_machine
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.metrics.deadlines import violated
from poolwise.model import JobTable, Kind, Machine, Schedule, Workload
from poolwise.performance.device_network import DeviceNetwork
from poolwise.performance.device_profiles import device_profiles_csv, read_device_profiles
from poolwise.reproductions.drmaestro.changes import CHANGES, FITS, Change
from poolwise.schedulers.flow import Firmament, FlowScheduler
from poolwise.schedulers.flow.graph import Clock
from poolwise.traces.generators.device_jobs import WARM_UP, DeviceJobs
from poolwise.units import SECOND

DrMaestroPolicy = Literal["firmament", "drmaestro", "network_aware"]
POLICIES: tuple[DrMaestroPolicy, ...] = ("firmament", "drmaestro", "network_aware")
PROFILES = "catalog:rodinia"
WARM_UP_S = {4: 2000.0, 16: 700.0, 128: 700.0}
"""Number of machines -> seconds until the warm-up jobs end: measured for 4, assumed for 16 and 128."""
POINTS = 240
BEYOND = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Multiples of the goals beyond which jobs are counted, from submission; the paper states neither goals nor definition."""
ALL_CHANGES = {**CHANGES, **FITS}


@dataclass(frozen=True)
class Variant:
    """Scheduler settings that differ from the specification's reading of the paper, and the policies that they affect."""

    policies: tuple[DrMaestroPolicy, ...]
    local_first: bool = False
    solve_again: bool = True


OUR_PHASE = "our first phase"
"""First phase that considers the free devices of a node; this is ours, the paper's ignores them."""
SOLVED_ONCE = "each phase solved once a round"
"""Algorithm 2 as printed: a partially placed job waits for the next round. Only network-aware arcs cause such jobs."""
VARIANTS: Mapping[str, Variant] = {
    "": Variant(POLICIES),
    OUR_PHASE: Variant(POLICIES[1:], local_first=True),
    SOLVED_ONCE: Variant(POLICIES[2:], solve_again=False),
}


@dataclass(frozen=True)
class DrMaestroScenario:
    """Setting of the paper; with `spread` the warm-up jobs hold half of every machine instead of half of the machines."""

    machines: int
    jobs: int
    spread: bool = False

    def __str__(self) -> str:
        return f"{self.machines} machines, {self.jobs} jobs"


SCENARIOS = (DrMaestroScenario(4, 128), DrMaestroScenario(4, 512), DrMaestroScenario(16, 512), DrMaestroScenario(128, 4096))


@dataclass(frozen=True)
class DrMaestroCase:
    """One simulation; `change` names a changed assumption in `ALL_CHANGES`, `variant` a scheduler variant in `VARIANTS`."""

    scenario: DrMaestroScenario
    policy: DrMaestroPolicy
    seed: int
    change: str = ""
    variant: str = ""

    @property
    def warm_up_s(self) -> float:
        """Seconds until the warm-up jobs end."""
        return WARM_UP_S[self.scenario.machines] * self.assumed.warm_up

    @property
    def assumed(self) -> Change:
        """Assumptions that replace those of the profiles."""
        return ALL_CHANGES[self.change] if self.change else Change()


@lru_cache(maxsize=4)
def machine(machines: int) -> Machine:
    """Return the published machine."""
    return load_machine(catalog.find("machines", f"gpu-{machines}"))


def workload(case: DrMaestroCase, profiles: str = PROFILES) -> Workload:
    """Generate the jobs of a case."""
    scenario = case.scenario
    jobs = DeviceJobs(scenario.jobs, case.seed, scenario.machines, warm_up_s=case.warm_up_s, spread=scenario.spread)
    return replace(jobs, profiles=profiles).generate()


def scheduler(case: DrMaestroCase, profiles: str = PROFILES) -> FlowScheduler:
    """Return the scheduler of a case; raise ValueError if the variant does not apply to its policy."""
    change, variant = case.assumed, VARIANTS[case.variant]
    if case.policy not in variant.policies:
        raise ValueError(f"variant '{case.variant}' does not apply to policy '{case.policy}'")
    if case.policy == "firmament":
        return Firmament(every_s=change.every_s, at_ends=change.at_ends)
    settings = {"profiles": profiles, "network_aware": case.policy == "network_aware"}
    return FlowScheduler(
        settings=settings, every_s=change.every_s, at_ends=change.at_ends,
        local_first=variant.local_first, solve_again=variant.solve_again,
    )  # fmt: skip


def run_case(case: DrMaestroCase, clock: Clock | None = None) -> Schedule:
    """Simulate a case; raise PolicyError if a job did not run."""
    change = case.assumed
    with tempfile.TemporaryDirectory() as folder:
        profiles = PROFILES
        if case.change:
            profiles = str(Path(folder) / "changed.csv")
            text = device_profiles_csv(change.apply(profile) for profile in read_device_profiles(PROFILES).values())
            Path(profiles).write_text(text, encoding="utf-8")
        flow = scheduler(case, profiles)
        policy: Scheduler = flow if clock is None else _Timed(flow, clock)
        jobs, gpus = workload(case, profiles), machine(case.scenario.machines)
        schedule = simulate(gpus, jobs, policy, truth=DeviceNetwork(profiles), engine="reference").schedule
    if not schedule.done.all():
        raise PolicyError(f"{case}: {int(np.count_nonzero(~schedule.done))} jobs did not run")
    return schedule


def measure_case(case: DrMaestroCase) -> dict[str, Any]:
    """Return the metrics of a case and the curves that the figures need."""
    schedule = run_case(case)
    measured = schedule.workload.attributes["kind"] != WARM_UP
    execution = (schedule.job_end - schedule.job_start)[measured]
    work = schedule.workload.duration[measured]
    goal = schedule.workload.attributes["goal"][measured]
    whole = (schedule.job_end - schedule.workload.submit)[measured]
    time, used = gpus_in_use(schedule)
    total = len(schedule.machine.of_kind(Kind.DEVICE))
    before = time < case.warm_up_s
    grid = np.linspace(0.0, float(time[-1]), POINTS)
    found: dict[str, Any] = {
        "makespan_s": float(schedule.job_end[measured].max()) / SECOND,
        "violations": int(violated(schedule)[measured].sum()),
        "violations_queueing": int(violated(schedule, queueing=True)[measured].sum()),
        "beyond": [int(np.count_nonzero(whole > times * goal)) for times in BEYOND],
        "execution_s": float(execution.mean()) / SECOND,
        "stretch": float((execution / work).mean()),
        "wait_s": float((schedule.job_start - schedule.workload.submit)[measured].mean()) / SECOND,
        "most_used_before": float(used[before].max() / total),
        "grid_s": grid.tolist(),
        "used": used[np.searchsorted(time, grid, side="right") - 1].tolist(),
    }
    if not case.seed and not case.change:
        found["normalised"] = np.sort(execution / goal)[::-1].tolist()
    return found


def measure_rounds(case: DrMaestroCase) -> dict[str, Any]:
    """Return CPU seconds per scheduling round of a case, flow problems solved, and rounds that solve any; times vary."""
    clock = Clock()
    run_case(case, clock)
    total, solver = (np.array(column) for column in zip(*clock.rounds, strict=True))
    solving = int(np.count_nonzero(solver > 0))
    return {"total_s": total.tolist(), "solver_s": solver.tolist(), "solved": clock.solved, "solving": solving}


def gpus_in_use(schedule: Schedule) -> tuple[FloatArray, IntArray]:
    """Return (k,) seconds at which the number of devices in use changes, starting at 0, and (k,) the number from each on."""
    device = schedule.machine.kind[schedule.owner] == Kind.DEVICE
    many = np.add.reduceat(np.append(device, False).astype(np.int64), schedule.offset[:-1])
    time = np.concatenate([[0], schedule.start, schedule.end])
    step = np.concatenate([[0], many, -many])
    times, at = np.unique(time, return_inverse=True)
    change = np.bincount(at.reshape(-1), weights=step).astype(np.int64)
    return times / SECOND, np.cumsum(change)


@dataclass(frozen=True)
class _Timed(Scheduler):
    """Flow scheduler whose dispatcher records the time of each round in a given clock."""

    scheduler: FlowScheduler
    clock: Clock

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open the scheduler and attach the clock to its dispatcher."""
        dispatcher = self.scheduler.open(machine, seed)
        dispatcher.clock = self.clock
        return dispatcher

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and jobs with the timed scheduler."""
        self.scheduler.check(machine, jobs)
