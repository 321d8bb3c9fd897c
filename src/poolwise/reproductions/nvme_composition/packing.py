"""Core packing: whether it decides anything on which node's cores a workload runs, above all one whose deadline has passed.

At load 0.9 of S1 the published runs miss nearly all deadlines. Here the same runs are made with other nodes than the
algorithms choose, for late workloads alone and for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.disaggregation_aware import NvmeDisaggregationAware
from poolwise.policies.placement.nvme.maximize_composition import NvmeMaximizeComposition
from poolwise.policies.placement.nvme.minimize_fragmentation import NvmeMinimizeFragmentation
from poolwise.policies.placement.nvme.need import Need
from poolwise.presentation.table import Table
from poolwise.reproductions import cached_measurements
from poolwise.reproductions.nvme_composition.cells import NvmeCase, NvmeLoad, clocks_of, measured_values
from poolwise.runner import Executor, Progress


@dataclass(frozen=True)
class CorePacking:
    """Which of the nodes with enough free cores a workload gets: the emptiest, or the fullest; late ones alone, or all."""

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
class PackingCase:
    """A run of S1 at load 0.9 on pooled devices under the disaggregation-aware policy."""

    packing: str
    gap_s: float
    seed: int

    @property
    def run(self) -> NvmeCase:
        """The run of the tables that it varies."""
        return NvmeCase(NvmeLoad("high_bandwidth", 0.9, self.seed), "disaggregation_aware", gap_s=self.gap_s)


def cases(seeds: int) -> list[PackingCase]:
    """Every packing at every rate with every seed."""
    return [PackingCase(name, gap, seed) for gap in GAPS_S for name in PACKINGS for seed in range(seeds)]


def measure_packings(
    wanted: Iterable[PackingCase], folder: Path, executor: Executor, progress: Progress | None = None
) -> dict[PackingCase, dict[str, Any]]:
    """Measure cases, each once, in parallel, after the calibrations that they need; what is kept is not run again."""
    listed = list(wanted)
    clocks = clocks_of([case.run for case in listed], folder, executor, progress)
    return cached_measurements.measure_all(listed, partial(measure_packing, clocks=clocks), folder, executor, progress=progress)


def measure_packing(case: PackingCase, clocks: Mapping[NvmeLoad, Mapping[str, Any]]) -> dict[str, Any]:
    """Missed deadlines, and how often a late workload was shown one node with enough free cores, or several."""
    found: Counter[bool] = Counter()
    packing = PACKINGS[case.packing]
    policy = NvmeDisaggregationAware(_Maximize(packing=packing, shown=found), _Minimize(packing=packing, shown=found))
    values = measured_values(case.run, clocks, policy)
    return {"missed_deadlines_pct": values["missed_deadlines_pct"], "one_node": found[False], "several_nodes": found[True]}


@dataclass(frozen=True)
class _Maximize(NvmeMaximizeComposition):
    """The same with other nodes."""

    packing: CorePacking | None = None
    shown: Counter[bool] = field(default_factory=Counter, compare=False)

    def first(self, need: Need, view: Compositions) -> int:
        """Node by the packing."""
        return node_of(self.packing, self.shown, need, view, super().first(need, view))


@dataclass(frozen=True)
class _Minimize(NvmeMinimizeFragmentation):
    """The same with other nodes."""

    packing: CorePacking | None = None
    shown: Counter[bool] = field(default_factory=Counter, compare=False)

    def first(self, need: Need, view: Compositions) -> int:
        """Node by the packing."""
        return node_of(self.packing, self.shown, need, view, super().first(need, view))


def node_of(packing: CorePacking | None, shown: Counter[bool], need: Need, view: Compositions, usual: int) -> int:
    """Node that a workload gets, -1 where none has the cores: the usual one where the packing does not concern it."""
    able = [int(node) for node in view.layout.nodes.tolist() if view.free_cores(node) >= need.cores]
    if need.late and able:
        shown[len(able) > 1] += 1
    if packing is None or not able or (packing.late_alone and not need.late):
        return usual
    return min(able, key=view.beta) if packing.emptiest else max(able, key=view.beta)


def packing_table(found: Mapping[PackingCase, Mapping[str, Any]]) -> list[Table]:
    """Missed deadlines by packing and rate."""
    if not found:
        return []
    rows = []
    for name in PACKINGS:
        cells = []
        for gap in GAPS_S:
            values = [float(run["missed_deadlines_pct"]) for run in _runs(found, name, gap)]
            cells.append(f"{float(np.mean(values)):.2f}")
        rows.append([name, *cells])
    header = ("node of a workload", "load 0.9", *(f"one arrival in {gap:g} s" for gap in GAPS_S[1:]))
    note = (
        "Missed deadlines in percent of the workloads, means over the seeds; S1, pooled, the disaggregation-aware policy, the "
        "text's physics. Published: 92.42."
    )
    return [Table("Core packing at load 0.9", header, rows, note)]


def said(found: Mapping[PackingCase, Mapping[str, Any]]) -> list[str]:
    """Say how often a late workload had a choice of nodes, and what the choice changed; nothing without runs."""
    if not found:
        return []
    usual = [run for case, run in found.items() if PACKINGS[case.packing] is None]
    several, one = (sum(int(run[name]) for run in usual) for name in ("several_nodes", "one_node"))
    apart = {}
    for late_alone in (True, False):
        names = [name for name, packing in PACKINGS.items() if packing is not None and packing.late_alone == late_alone]
        apart[late_alone] = max(_apart(found, name, gap) for name in names for gap in GAPS_S)
    return [
        f"S1 at load 0.9: of {several + one} times that a late workload found a node with enough free cores, it found more "
        f"than one {several} times. On which of them late workloads run changes the mean of the missed deadlines by at most "
        f"{apart[True]:.2f} points, on which all do by {apart[False]:.1f}: core packing of late workloads is "
        f"{'refuted as a cause' if apart[True] < 1 else 'a part of the cause'} of the published misses."
    ]


def _apart(found: Mapping[PackingCase, Mapping[str, Any]], name: str, gap: float) -> float:
    """Points between the mean misses of a packing and those of the algorithms' own nodes."""
    usual = next(iter(PACKINGS))
    means = [float(np.mean([run["missed_deadlines_pct"] for run in _runs(found, which, gap)])) for which in (name, usual)]
    return abs(means[0] - means[1])


def _runs(found: Mapping[PackingCase, Mapping[str, Any]], name: str, gap: float) -> list[Mapping[str, Any]]:
    return [run for case, run in found.items() if (case.packing, case.gap_s) == (name, gap)]
