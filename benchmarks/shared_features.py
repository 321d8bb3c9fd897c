"""Cost of each feature of list scheduling on shared nodes relative to the fastest path, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.case import Figures, case
from benchmarks.features import in_turn
from benchmarks.shared_nodes import shared, shared_jobs
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.shared_nodes.replay import load, load_rare
from poolwise.model import Failures, Partition, QualityOfService, ReservedWindow
from poolwise.performance.ideal import Ideal
from poolwise.platforms.failures import draw_failures
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.order.priorities import FCFS, FM
from poolwise.policies.placement.nodes.placement import EmptiestNodes, FirstNodes, FullestNodes, PackedNodes
from poolwise.quantities import DAY, HOUR
from poolwise.schedulers.list import ListScheduler

JOBS, NODES = 1_000, 50
FIRST = ListScheduler(FCFS(), placement=FirstNodes())


def fastest() -> RunSpec:
    """Return the run of the fastest path: FCFS with EASY and first fit."""
    return RunSpec(shared_jobs(JOBS, NODES, 0.9), shared(NODES), FIRST, Ideal(), Ideal())


def _scheduled(**changes: Any) -> Callable[[RunSpec], RunSpec]:
    return lambda parts: replace(parts, scheduler=replace(FIRST, **changes))


def _on(**changes: Any) -> Callable[[RunSpec], RunSpec]:
    return lambda parts: replace(parts, machine=replace(parts.machine, **changes))


def _failing(parts: RunSpec) -> RunSpec:
    failures = Failures(owners=tuple(range(NODES)), mtbf=10 * DAY, mttr=4 * HOUR)
    _, disturbances, _ = draw_failures(parts.workload, replace(parts.machine, failures=failures), 0)
    return replace(parts, disturbances=disturbances)


def _divided(parts: RunSpec) -> RunSpec:
    sets = {"low": np.arange(NODES) < 80, "high": np.arange(NODES) >= 20}
    parts = replace(parts, machine=replace(parts.machine, node_sets=sets))
    names = np.array(["low", "high", "low,high"])
    return replace(parts, workload=replace(parts.workload, attributes={"partition": names[np.arange(JOBS) % 3]}))


def _tiers(parts: RunSpec) -> RunSpec:
    parts = _divided(parts)
    limited = (Partition("low", max_time=12 * HOUR), Partition("high", tier=2))
    return replace(parts, machine=replace(parts.machine, partitions=limited))


def _aging(parts: RunSpec) -> RunSpec:
    parts = _tiers(parts)
    return replace(parts, scheduler=replace(FIRST, order=FM()))


def _closed(parts: RunSpec) -> RunSpec:
    attributes = {"preceding": parts.workload.id - 50, "think_s": np.zeros(JOBS)}
    return replace(parts, workload=replace(parts.workload, attributes=attributes, closed_loop=True))


UPKEEP = tuple(
    ReservedWindow(f"night {day}", day * DAY + 2 * HOUR, day * DAY + 4 * HOUR, np.arange(NODES) < NODES // 2)
    for day in range(14)
)
LIMITS = (QualityOfService("normal", True, total=(("nodes", NODES),)),)

FEATURES: Mapping[str, Callable[[RunSpec], RunSpec]] = {
    "EASY, first fit": lambda parts: parts,
    "best fit": _scheduled(placement=FullestNodes()),
    "worst fit": _scheduled(placement=EmptiestNodes()),
    "packed": _scheduled(placement=PackedNodes()),
    "overlapping partitions": _divided,
    "partitions with tiers and limits": _tiers,
    "node failures and repairs": _failing,
    "nightly windows on half of the nodes": _on(windows=UPKEEP),
    "conservative backfilling": _scheduled(backfill=Conservative()),
    "node failures under conservative backfilling": lambda parts: _scheduled(backfill=Conservative())(_failing(parts)),
    "conservative backfilling with kept reservations": _scheduled(backfill=Conservative(keep_reservations=True)),
    "partitions with tiers, aging order": _aging,
    "QOS limits": _on(qos=LIMITS),
    "closed loop": _closed,
}
"""Feature, by its label on the page on shared nodes -> change of the fastest run."""


@case("shared-features")
def shared_features() -> Figures:
    """Return the CPU time of 1,000 jobs on 50 shared nodes with each feature, relative to the fastest path."""
    load()
    load_rare()
    return in_turn({name: change(fastest()) for name, change in FEATURES.items()})
