"""The runs behind the reproduction of DRMaestro: what one is, and what is measured of it."""

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
from poolwise.metrics.goals import violated
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
"""Machines -> seconds until the warm-up jobs end: measured for 4, assumed for 16 and 128."""
POINTS = 240
BEYOND = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Multiples of the goals beyond which jobs are counted, from submission on: the paper prints neither goals nor definition."""
KNOWN = {**CHANGES, **FITS}


@dataclass(frozen=True)
class Variant:
    """Settings of the scheduler other than the specification's reading of the paper, and policies that they concern."""

    policies: tuple[DrMaestroPolicy, ...]
    local_first: bool = False
    solve_again: bool = True


OUR_PHASE = "our first phase"
"""The first phase looks at free devices of a node's own, which is ours: the paper's does not."""
SOLVED_ONCE = "each phase solved once a round"
"""Algorithm 2 as printed: a job that was placed in part waits for the next round. Only network-aware arcs leave any so."""
VARIANTS: Mapping[str, Variant] = {
    "": Variant(POLICIES),
    OUR_PHASE: Variant(POLICIES[1:], local_first=True),
    SOLVED_ONCE: Variant(POLICIES[2:], solve_again=False),
}


@dataclass(frozen=True)
class DrMaestroScenario:
    """Machines and jobs of the paper; `spread`: the warm-up jobs hold half of every machine instead of half of the machines."""

    machines: int
    jobs: int
    spread: bool = False

    def __str__(self) -> str:
        return f"{self.machines} machines, {self.jobs} jobs"


SCENARIOS = (DrMaestroScenario(4, 128), DrMaestroScenario(4, 512), DrMaestroScenario(16, 512), DrMaestroScenario(128, 4096))


@dataclass(frozen=True)
class DrMaestroCase:
    """One simulation.

    `change` names what is assumed otherwise than in the profiles, `variant` one of `VARIANTS`.
    """

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
        """What is assumed otherwise than in the profiles."""
        return KNOWN[self.change] if self.change else Change()


@lru_cache(maxsize=4)
def machine(machines: int) -> Machine:
    """The published machine."""
    return load_machine(catalog.find("machines", f"gpu-{machines}"))


def workload(case: DrMaestroCase, profiles: str = PROFILES) -> Workload:
    """Draw a case's jobs."""
    scenario = case.scenario
    jobs = DeviceJobs(scenario.jobs, case.seed, scenario.machines, warm_up_s=case.warm_up_s, spread=scenario.spread)
    return replace(jobs, profiles=profiles).generate()


def scheduler(case: DrMaestroCase, profiles: str = PROFILES) -> FlowScheduler:
    """Configure a case's policy."""
    change, variant = case.assumed, VARIANTS[case.variant]
    if case.policy not in variant.policies:
        raise ValueError(f"{case.policy} has nothing to do with '{case.variant}'")
    if case.policy == "firmament":
        return Firmament(every_s=change.every_s, at_ends=change.at_ends)
    return FlowScheduler(
        settings={"profiles": profiles, "network_aware": case.policy == "network_aware"},
        every_s=change.every_s,
        at_ends=change.at_ends,
        local_first=variant.local_first,
        solve_again=variant.solve_again,
    )


def run_case(case: DrMaestroCase, clock: Clock | None = None) -> Schedule:
    """Simulate a case; raises PolicyError if a job did not run."""
    change = case.assumed
    with tempfile.TemporaryDirectory() as folder:
        profiles = PROFILES
        if case.change:
            file = Path(folder) / "changed.csv"
            file.write_text(
                device_profiles_csv(change.apply(profile) for profile in read_device_profiles(PROFILES).values()),
                encoding="utf-8",
            )
            profiles = str(file)
        flow = scheduler(case, profiles)
        policy: Scheduler = flow if clock is None else _Timed(flow, clock)
        truth = DeviceNetwork(profiles)
        machine_ = machine(case.scenario.machines)
        schedule = simulate(machine_, workload(case, profiles), policy, truth=truth, engine="reference").schedule
    if not schedule.done.all():
        raise PolicyError(f"{case}: {int(np.count_nonzero(~schedule.done))} jobs did not run")
    return schedule


def measure_case(case: DrMaestroCase) -> dict[str, Any]:
    """Metrics of a case, and what the figures need."""
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
    """CPU seconds of each scheduling round of a case, flow problems solved, and rounds that solve any; times vary."""
    clock = Clock()
    run_case(case, clock)
    total, solver = (np.array(column) for column in zip(*clock.rounds, strict=True))
    return {
        "total_s": total.tolist(),
        "solver_s": solver.tolist(),
        "solved": clock.solved,
        "solving": int(np.count_nonzero(solver > 0)),
    }


def gpus_in_use(schedule: Schedule) -> tuple[FloatArray, IntArray]:
    """(k,) seconds at which the number of devices in use changes, from 0 on, and (k,) the number from then on."""
    device = schedule.machine.kind[schedule.owner] == Kind.DEVICE
    many = np.add.reduceat(np.append(device, False).astype(np.int64), schedule.offset[:-1])
    time = np.concatenate([[0], schedule.start, schedule.end])
    step = np.concatenate([[0], many, -many])
    times, at = np.unique(time, return_inverse=True)
    change = np.bincount(at.reshape(-1), weights=step).astype(np.int64)
    return times / SECOND, np.cumsum(change)


@dataclass(frozen=True)
class _Timed(Scheduler):
    """A flow scheduler whose dispatcher writes its times into a clock of ours."""

    scheduler: FlowScheduler
    clock: Clock

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run."""
        dispatcher = self.scheduler.open(machine, seed)
        dispatcher.clock = self.clock
        return dispatcher

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """As the scheduler that is timed."""
        self.scheduler.check(machine, jobs)
