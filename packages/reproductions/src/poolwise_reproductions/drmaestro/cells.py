"""Cases of the DRMaestro reproduction: machines, jobs and policies of one simulation, and its measurements."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poolwise import catalog
from poolwise.arrays import FloatArray, IntArray
from poolwise.engines import simulate
from poolwise.errors import PolicyError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.factory import models_of, scheduler_of
from poolwise.files.machine import MachineDescription, read_machine
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json, canonical
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.metrics.deadlines import violated
from poolwise.model import JobTable, Kind, Machine, Schedule
from poolwise.performance.device_profiles import device_profiles_csv, read_device_profiles
from poolwise.quantities import SECOND
from poolwise.schedulers.flow.graph import Clock
from poolwise.studies.cells import Cell, GeneratorSource, cell_sources, workload_of
from poolwise.traces.generators.device_jobs import WARM_UP
from poolwise_reproductions.cases import CellCase, MeasuredCase
from poolwise_reproductions.drmaestro.changes import CHANGES, FITS, Change
from poolwise_reproductions.drmaestro.experiments import EXPERIMENTS

DrMaestroPolicy = Literal["firmament", "drmaestro", "network_aware"]
POLICIES: tuple[DrMaestroPolicy, ...] = ("firmament", "drmaestro", "network_aware")
PROFILES = "catalog:rodinia"
WARM_UP_S = {4: 2000.0, 16: 700.0, 128: 700.0}
"""Number of machines -> seconds until the warm-up jobs end: measured for 4, assumed for 16 and 128."""
POINTS = 240
BEYOND = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Multiples of the goals, from submission, beyond which jobs are counted; the paper states neither goals nor definition."""
ALL_CHANGES = {**CHANGES, **FITS}


@dataclass(frozen=True)
class Variant:
    """Scheduler settings that differ from the algorithms as printed, and the policies that they affect."""

    policies: tuple[DrMaestroPolicy, ...]
    local_first: bool = False
    solve_again: bool = False


OUR_PHASE = "our first phase"
"""First phase that considers the free devices of a node: our own, since the paper's first phase ignores them."""
SOLVED_AGAIN = "rounds solved again without partly placed jobs"
"""Gangs as in our specification. Algorithm 2 as printed solves each phase once, and a partly placed job waits for the next
round. Only network-aware arcs cause such jobs."""
VARIANTS: Mapping[str, Variant] = {
    "": Variant(POLICIES),
    OUR_PHASE: Variant(POLICIES[1:], local_first=True),
    SOLVED_AGAIN: Variant(POLICIES[2:], solve_again=True),
}


@dataclass(frozen=True)
class DrMaestroScenario:
    """Setting of the paper; with `spread`, the warm-up jobs occupy half of every machine instead of half of the machines."""

    machines: int
    jobs: int
    spread: bool = False

    def __str__(self) -> str:
        return f"{self.machines} machines, {self.jobs} jobs"


SCENARIOS = (DrMaestroScenario(4, 128), DrMaestroScenario(4, 512), DrMaestroScenario(16, 512), DrMaestroScenario(128, 4096))


@lru_cache(maxsize=4)
def machine(machines: int) -> MachineDescription:
    """Return the published machine."""
    return read_machine(Document.read(catalog.find("machines", f"gpu-{machines}")))


@dataclass(frozen=True)
class DrMaestroCase(CellCase):
    """One simulation.

    `change` names a changed assumption in `ALL_CHANGES`, `variant` a scheduler variant in `VARIANTS`, and `experiment` one of
    `EXPERIMENTS`, which use the unchanged profiles.
    """

    scenario: DrMaestroScenario
    policy: DrMaestroPolicy
    seed: int
    change: str = ""
    variant: str = ""
    experiment: str = ""

    @property
    def warm_up_s(self) -> float:
        """Seconds until the warm-up jobs end."""
        return WARM_UP_S[self.scenario.machines] * self.assumed.warm_up

    @property
    def assumed(self) -> Change:
        """Changed assumptions, which replace those of the profiles."""
        return ALL_CHANGES[self.change] if self.change else Change()

    @property
    def local_s(self) -> dict[str, float]:
        """Kind of job -> mean time on a local GPU, s."""
        return {name: self.assumed.apply(profile).local_s for name, profile in read_device_profiles(PROFILES).items()}

    @contextmanager
    def profiles(self) -> Iterator[str]:
        """Write the changed profiles of the jobs to a temporary file."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "changed.csv"
            text = device_profiles_csv(self.assumed.apply(profile) for profile in read_device_profiles(PROFILES).values())
            file.write_text(text, encoding="utf-8")
            yield str(file) if self.change else PROFILES

    def cell(self, profiles: str = PROFILES) -> Cell:
        """Return the cell with the given profiles; raise ValueError if the variant does not apply to the policy."""
        s = self.scenario
        drawn: Json = {
            "jobs": s.jobs,
            "seed": self.seed,
            "machines": s.machines,
            "warm_up_s": self.warm_up_s,
            "spread": s.spread,
        }
        drawn |= {"profiles": profiles}
        model = PerformanceSection(model=Component.of("device_network", {"profiles": profiles}))
        if self.experiment:
            other = EXPERIMENTS[self.experiment]
            source, of = other.source(drawn, self.experiment), other.machine(s.machines)
            return Cell({}, 0, source, *of, self._scheduler(profiles), model, 0, cell_sources())
        jobs = GeneratorSource("device_jobs", canonical(drawn), 0, None)
        return Cell({}, 0, jobs, *machine(s.machines), self._scheduler(profiles), model, 0, cell_sources())

    def _scheduler(self, profiles: str) -> SchedulerSection:
        change, variant = self.assumed, VARIANTS[self.variant]
        if self.policy not in variant.policies:
            raise ValueError(f"variant '{self.variant}' does not apply to policy '{self.policy}'")
        settings: Json = {"every_s": change.every_s, "at_ends": change.at_ends}
        if self.policy == "firmament":
            return SchedulerSection(kind="firmament", settings=settings)
        costs = {"profiles": profiles, "network_aware": self.policy == "network_aware"}
        settings |= {"settings": costs, "local_first": variant.local_first, "solve_again": variant.solve_again}
        return SchedulerSection(kind="flow", settings=settings)

    def inputs(self) -> Json:
        """Return the inputs of the cell with the changed profiles."""
        with self.profiles() as profiles:
            return self.cell(profiles).inputs

    def simulate(self, clock: Clock | None = None) -> Schedule:
        """Simulate the cell and record the times of the rounds in a clock; raise PolicyError if a job did not run."""
        with self.profiles() as profiles:
            cell = self.cell(profiles)
            flow, model = scheduler_of(cell.scheduler), models_of(cell.performance, 0)[0]
            policy = flow if clock is None else _Timed(flow, clock)
            schedule = simulate(workload_of(cell), cell.machine, policy, model=model, engine="reference").schedule
        if not schedule.done.all():
            raise PolicyError(f"{self}: {int(np.count_nonzero(~schedule.done))} jobs did not run")
        return schedule

    def measured(self, schedule: Schedule) -> Json:
        """Return the metrics and the curves that the figures need."""
        measured = schedule.workload.attributes["kind"] != WARM_UP
        execution = (schedule.job_end - schedule.job_start)[measured]
        work = schedule.workload.duration[measured]
        goal = schedule.workload.attributes["goal"][measured]
        whole = (schedule.job_end - schedule.workload.submit)[measured]
        local = np.array([self.local_s[kind] for kind in schedule.workload.attributes["kind"][measured]]) * SECOND
        time, used = gpus_in_use(schedule)
        total = len(schedule.machine.of_kind(Kind.DEVICE))
        before = time < self.warm_up_s
        until = np.diff(np.minimum(np.append(time, self.warm_up_s), self.warm_up_s))
        grid = np.linspace(0.0, float(time[-1]), POINTS)
        metrics: dict[str, Any] = {
            "makespan_s": float(schedule.job_end[measured].max()) / SECOND,
            "violations": int(violated(schedule)[measured].sum()),
            "violations_local": int(np.count_nonzero(execution > local)),
            "violations_queueing": int(violated(schedule, queueing=True)[measured].sum()),
            "beyond": [int(np.count_nonzero(whole > times * goal)) for times in BEYOND],
            "execution_s": float(execution.mean()) / SECOND,
            "stretch": float((execution / work).mean()),
            "wait_s": float((schedule.job_start - schedule.workload.submit)[measured].mean()) / SECOND,
            "most_used_before": float(used[before].max() / total),
            "most_used_after": float(used[max(0, np.searchsorted(time, self.warm_up_s, side="right") - 1) :].max() / total),
            "some_unused_before": float(until[used < total].sum() / self.warm_up_s),
            "over_goal": float((execution / goal).mean()),
            "grid_s": grid.tolist(),
            "used": used[np.searchsorted(time, grid, side="right") - 1].tolist(),
        }
        if not self.seed and not self.change and not self.experiment:
            metrics["normalised"] = np.sort(execution / goal)[::-1].tolist()
        return metrics


@dataclass(frozen=True)
class RoundTimes(MeasuredCase):
    """CPU seconds per scheduling round of a case, flow problems solved, and rounds that solve any; the times vary."""

    case: DrMaestroCase

    @staticmethod
    def prepare(cases: Sequence[RoundTimes]) -> None:
        """Simulate the smallest setting under each policy, so that no timed round imports modules."""
        for policy in {case.case.policy: None for case in cases}:
            DrMaestroCase(SCENARIOS[0], policy, 0).simulate()

    def inputs(self) -> Json:
        """Return the inputs of the cell."""
        return self.case.inputs()

    def measure(self) -> Json:
        """Simulate the case with a clock."""
        clock = Clock()
        self.case.simulate(clock)
        total, solver = (np.array(column) for column in zip(*clock.rounds, strict=True))
        solving = int(np.count_nonzero(solver > 0))
        return {"total_s": total.tolist(), "solver_s": solver.tolist(), "solved": clock.solved, "solving": solving}


def gpus_in_use(schedule: Schedule) -> tuple[FloatArray, IntArray]:
    """Return the times (s) at which the number of devices in use changes, from 0 on, and the new numbers, (k,) each."""
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

    scheduler: Scheduler
    clock: Clock

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open the scheduler and attach the clock to its dispatcher."""
        dispatcher: Any = self.scheduler.open(machine, seed)
        dispatcher.clock = self.clock
        return dispatcher  # type: ignore[no-any-return]  # a dispatcher of FlowScheduler, which has a clock

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and jobs with the timed scheduler."""
        self.scheduler.check(machine, jobs)
