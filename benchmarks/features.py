"""Cost of each feature of list scheduling on racks relative to the fastest path, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from benchmarks.case import Figures, case, seconds
from benchmarks.workloads import perlmutter, perlmutter_jobs
from poolwise.arrays import FloatArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling.loading import load_all
from poolwise.engines.select import find_engine
from poolwise.engines.simulate import simulate
from poolwise.interfaces import BackfillPolicy, OrderKind, QueuePolicy
from poolwise.model import Job, Placement, Queue, Refusal, Snapshot
from poolwise.model.rules import BackfillRule
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FM
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.quantities import HORIZON
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp

JOBS = 2_000
SHORT_S = 0.1
"""Seconds below which a run is repeated."""


class OwnOrder(QueuePolicy):
    """An opaque order, which is evaluated for the whole queue in each pass."""

    kind: ClassVar[OrderKind] = "opaque"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the wait relative to the requested time."""
        return queue.waited_s(snapshot.now) / queue.table.requested_s[queue.jobs]


@dataclass(frozen=True)
class OwnBackfill(Easy):
    """A backfill that overrides a method, so that the rule of its base class does not apply."""

    def open(self) -> BackfillPolicy:
        """Return itself."""
        return super().open()


@dataclass(frozen=True)
class StatedBackfill(Easy):
    """A backfill that declares a rule."""

    def rule(self) -> BackfillRule:
        """Return the rule of EASY."""
        return BackfillRule("head")


@dataclass(frozen=True)
class OwnPlacement(RackPlacement):
    """A placement that overrides a method, so that the rule of its base class does not apply."""

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place as the base class does."""
        return super().place(job, snapshot)


@dataclass(frozen=True)
class OwnModel(RemoteMemory):
    """A model that overrides a method, so that the slowdowns of its base class do not apply."""

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Return the owners of the base class."""
        return super().touches(placement, view)


def fastest() -> RunSpec:
    """Return the run of the fastest path: FM with EASY on racks with pools."""
    return RunSpec(perlmutter_jobs(JOBS, load=0.9), perlmutter(28), ListScheduler(FM()), RemoteMemory(), RemoteMemory())


def _with(**changes: Any) -> Callable[[RunSpec], RunSpec]:
    return lambda parts: replace(parts, **changes)


def _scheduled(**changes: Any) -> Callable[[RunSpec], RunSpec]:
    return _with(scheduler=replace(ListScheduler(FM()), **changes))


def _modeled(model: RemoteMemory) -> Callable[[RunSpec], RunSpec]:
    return _with(model=model, estimate=model)


def _long(parts: RunSpec) -> RunSpec:
    requested = parts.workload.requested.copy()
    requested[::100] = HORIZON
    return replace(parts, workload=replace(parts.workload, requested=requested))


def _tasks(parts: RunSpec) -> RunSpec:
    halves = np.where(parts.workload.nodes % 2 == 0, 2, 1)
    requests = {**parts.workload.requests, "nodes": parts.workload.nodes // halves}
    return replace(parts, workload=replace(parts.workload, tasks=halves, requests=requests))


FEATURES: Mapping[str, Callable[[RunSpec], RunSpec]] = {
    "EASY, static or aging order": lambda parts: parts,
    "custom backfill with a rule": _scheduled(backfill=StatedBackfill()),
    "pools of the whole machine (scope system)": _scheduled(placement=RackPlacement("system")),
    "warm-up": _with(scheduler=WarmUp.before(ListScheduler(FM()), JOBS // 4)),
    "one pass per event": _with(pass_per_event=True),
    "jobs with several tasks": _tasks,
    "requested times of 290 years": _long,
    "remote latencies of 20 us": _modeled(RemoteMemory(near_ns=20_000, far_ns=20_000)),
    "conservative backfilling": _scheduled(backfill=Conservative()),
    "conservative backfilling with kept reservations": _scheduled(backfill=Conservative(keep_reservations=True)),
    "custom opaque order": _scheduled(order=OwnOrder()),
    "custom backfill without a rule": _scheduled(backfill=OwnBackfill()),
    "custom placement without a rule": _scheduled(placement=OwnPlacement()),
    "performance model without fixed slowdowns": _modeled(OwnModel()),
    "capacity changes during the run": _with(disturbances=[Disturbance(HORIZON - 1, 0, 0, -1)]),
}
"""Feature, by its label on the performance page -> change of the fastest run."""


def engine_of(parts: RunSpec) -> str:
    """Return the engine that `auto` selects for a run."""
    family, _ = find_engine(parts)
    return "reference" if family is None else "compiled"


@case("features")
def features() -> Figures:
    """Return the CPU time of 2,000 jobs with each feature, relative to the fastest path."""
    load_all()
    return in_turn({name: change(fastest()) for name, change in FEATURES.items()})


def in_turn(runs: Mapping[str, RunSpec]) -> Figures:
    """Return the CPU time of each run, relative to the first."""
    for parts in runs.values():
        if engine_of(parts) == "compiled":
            _seconds(parts)  # loads its kernels
    spent = {name: _seconds(parts) for name, parts in runs.items()}
    for _ in range(20):  # in turn, so that a temporary slowdown of the computer affects none of them
        for name, parts in runs.items():
            if spent[name] < SHORT_S:
                spent[name] = min(spent[name], _seconds(parts, repeat=3))  # the first call finds cold caches
    least = spent[next(iter(runs))]
    return {name: time / least for name, time in spent.items()}


def _seconds(parts: RunSpec, repeat: int = 1) -> float:
    def run() -> object:
        return simulate(
            parts.workload,
            parts.machine,
            parts.scheduler,
            model=parts.model,
            estimate=parts.estimate,
            disturbances=parts.disturbances,
            pass_per_event=parts.pass_per_event,
        )

    return seconds(run, repeat=repeat)[0]
