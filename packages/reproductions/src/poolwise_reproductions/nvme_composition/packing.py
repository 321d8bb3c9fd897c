"""Core packing: how the node of a workload's cores affects missed deadlines, above all for workloads past their deadline.

At load 0.9 of S1 the published runs miss nearly all deadlines. This module repeats those runs on nodes other than those that
the algorithms choose, for late workloads or for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from poolwise.engines import simulate
from poolwise.files.factory import models_of
from poolwise.hashing import Json
from poolwise.policies.placement.nvme.composition_request import CompositionRequest
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.presentation.table import Table
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.studies.cells import workload_of
from poolwise_reproductions.cases import MeasuredCase, Measurer
from poolwise_reproductions.nvme_composition.cells import NvmeCase, NvmeLoad, NvmeRun, calibrated


@dataclass(frozen=True)
class CorePacking:
    """Choice among the nodes with enough free cores: the emptiest or the fullest, for late workloads alone or for all."""

    emptiest: bool
    late_alone: bool = True


PACKINGS: Mapping[str, CorePacking | None] = {
    "as the algorithms say": None,
    "late workloads on the fullest node": CorePacking(emptiest=False),
    "late workloads on the emptiest node": CorePacking(emptiest=True),
    "all on the fullest node": CorePacking(emptiest=False, late_alone=False),
    "all on the emptiest node": CorePacking(emptiest=True, late_alone=False),
}
GAPS_S = (0.0, 60.0, 50.0)
"""Seconds between arrivals; 0 for the calibrated load of 0.9."""


@dataclass(frozen=True)
class PackingCase(MeasuredCase):
    """Run of S1 at load 0.9 on pooled devices under the disaggregation-aware policy, with a core packing."""

    packing: str
    run: NvmeRun

    def inputs(self) -> Json:
        """Return the inputs of the run without the packing."""
        return self.run.inputs()

    def measure(self) -> Json:
        """Return missed deadlines, and how often a late workload had one node with enough free cores, or several."""
        choices: Counter[bool] = Counter()
        packing, cell = PACKINGS[self.packing], self.run.cell()
        policy = NvmeDisaggregationAware(
            _Maximize(packing=packing, choices=choices), _Minimize(packing=packing, choices=choices)
        )
        scheduler = CompositionScheduler(placement=policy)
        model, _ = models_of(cell.performance, cell.seed)
        schedule = simulate(workload_of(cell), cell.machine, scheduler, model=model).schedule
        missed = self.run.measured(schedule)["missed_deadlines_pct"]
        return {"missed_deadlines_pct": missed, "one_node": choices[False], "several_nodes": choices[True]}


def cases(seeds: int, measure: Measurer) -> list[PackingCase]:
    """Return every packing at every rate with every seed, after calibrating the loads."""
    points = product(GAPS_S, range(seeds))
    plain = [NvmeCase(NvmeLoad("high_bandwidth", 0.9, seed), "disaggregation_aware", gap_s=gap) for gap, seed in points]
    runs = calibrated(plain, measure)
    return [PackingCase(name, run) for name in PACKINGS for run in runs]


@dataclass(frozen=True)
class _Maximize(NvmeMaximizeComposition):
    """Maximize composition with the node chosen by a core packing."""

    packing: CorePacking | None = None
    choices: Counter[bool] = field(default_factory=Counter, compare=False)

    def first(self, need: CompositionRequest, view: Compositions) -> int:
        """Return the node that the packing chooses."""
        return node_of(self.packing, self.choices, need, view, super().first(need, view))


@dataclass(frozen=True)
class _Minimize(NvmeMinimizeFragmentation):
    """Minimize fragmentation with the node chosen by a core packing."""

    packing: CorePacking | None = None
    choices: Counter[bool] = field(default_factory=Counter, compare=False)

    def first(self, need: CompositionRequest, view: Compositions) -> int:
        """Return the node that the packing chooses."""
        return node_of(self.packing, self.choices, need, view, super().first(need, view))


def node_of(
    packing: CorePacking | None, choices: Counter[bool], need: CompositionRequest, view: Compositions, usual: int
) -> int:
    """Return the node chosen for a workload: `usual` if the packing does not apply to it or no node has enough cores.

    `choices` counts late workloads by whether several nodes had enough free cores.
    """
    able = [int(node) for node in view.layout.nodes.tolist() if view.free_cores(node) >= need.cores]
    if need.late and able:
        choices[len(able) > 1] += 1
    if packing is None or not able or (packing.late_alone and not need.late):
        return usual
    return min(able, key=view.beta) if packing.emptiest else max(able, key=view.beta)


def packing_table(by_case: Mapping[PackingCase, Mapping[str, Any]]) -> list[Table]:
    """Return the table of missed deadlines by packing and rate."""
    if not by_case:
        return []
    rows = [[name, *(f"{_missed(by_case, name, gap):.2f}" for gap in GAPS_S)] for name in PACKINGS]
    header = ("node of a workload", "load 0.9", *(f"one arrival in {gap:g} s" for gap in GAPS_S[1:]))
    note = (
        "Missed deadlines as a percentage of the workloads, averaged over the seeds; S1, pooled, the disaggregation-aware "
        "policy, the text's physics. Published: 92.42."
    )
    return [Table("Core packing at load 0.9", header, rows, note)]


def describe_packing(by_case: Mapping[PackingCase, Mapping[str, Any]]) -> list[str]:
    """Describe how often a late workload had a choice of nodes, and the effect of the choice; empty without runs."""
    if not by_case:
        return []
    usual = [run for case, run in by_case.items() if PACKINGS[case.packing] is None]
    several, single = (sum(int(run[name]) for run in usual) for name in ("several_nodes", "one_node"))
    greatest = {True: 0.0, False: 0.0}  # late workloads alone -> points by which a packing changes the mean
    for (name, packing), gap in product(PACKINGS.items(), GAPS_S):
        if packing is not None:
            change = abs(_missed(by_case, name, gap) - _missed(by_case, next(iter(PACKINGS)), gap))
            greatest[packing.late_alone] = max(greatest[packing.late_alone], change)
    return [
        f"S1 at load 0.9: of {several + single} times that a late workload found a node with enough free cores, it found more "
        f"than one {several} times. The choice of node for late workloads changes the mean of the missed deadlines by at most "
        f"{greatest[True]:.2f} points, the choice for all workloads by {greatest[False]:.1f}: core packing of late workloads "
        f"is {'refuted as a cause' if greatest[True] < 1 else 'a part of the cause'} of the published misses."
    ]


def _missed(by_case: Mapping[PackingCase, Mapping[str, Any]], name: str, gap: float) -> float:
    """Return the missed deadlines of a packing at a rate, mean over the seeds."""
    runs = [run for case, run in by_case.items() if (case.packing, case.run.case.gap_s) == (name, gap)]
    return float(np.mean([run["missed_deadlines_pct"] for run in runs]))
