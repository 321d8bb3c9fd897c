"""Runs of the NVMe composition reproduction, and their results by case, shared by claims, figures and tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poolwise.comparison.verdicts import Measured
from poolwise.metrics.intervals import mean_interval
from poolwise.reproductions.nvme_composition.cells import (
    DEFAULT,
    INFERRED,
    PARITY,
    Infrastructure,
    NvmeCase,
    NvmeLoad,
    NvmePolicy,
    Physics,
)
from poolwise.traces.generators.nvme_mix import SHARES, MixScenario

TABLES: Mapping[MixScenario, str] = {"high_bandwidth": "Table III", "high_capacity": "Table IV", "high_compute": "Table V"}
SHORT: Mapping[MixScenario, str] = {"high_bandwidth": "S1", "high_capacity": "S2", "high_compute": "S3"}
MODES: Mapping[str, Physics] = {"default": DEFAULT, "parity": PARITY}
"""Physics under which every row and figure is shown."""
SOURCES: Mapping[str, Physics] = {**MODES, "inferred": INFERRED}
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
FACTORS = tuple(k / 10 for k in range(10, 21))
DEVICES = tuple(range(1, 11))
MIXES = {"M1": 1.0, "M2": 0.7, "M3": 0.5}
INFRASTRUCTURES: tuple[Infrastructure, ...] = ("disaggregated", "physically_attached")
POLICIES: tuple[NvmePolicy, ...] = ("first_fit", "disaggregation_aware")
STEPS: Mapping[str, Physics] = {
    "default": DEFAULT,
    "constant gaps": Physics(constant_gaps=True),
    "correlated priorities": Physics(correlated=True),
    "frozen residents": Physics(frozen=True),
    "base times under first_fit": Physics(base_times=True),
    "window of all resources": Physics(all_resources=True),
    "a seventh sharer": Physics(seventh=True),
    "all six (parity)": PARITY,
    "late workloads alone (inferred)": Physics(late_alone=True),
    "parity and late workloads alone (inferred)": replace(PARITY, late_alone=True),
}
"""Differences of the authors' simulator, one at a time, to attribute the gap between the policies; the last two are ours."""
STEP_LOADS = (0.7, 0.8)
MIDDLE = 0.7
"""Load of the figures that vary another parameter."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "Abstract": ("Table III",),
    **dict.fromkeys(("Figure 4", "Figure 6"), ("Tables",)),
    "Figure 5": ("Middle",),
    **dict.fromkeys(("Figure 7", "Figure 8", "Figure 9"), ("Factors", "Middle")),
    "Figure 10": ("Devices", "Middle"),
}
"""Figure -> parts of the runs that it needs, where these are not its own part alone."""


@dataclass(frozen=True)
class NvmePlan:
    """Number of seeds, parameter ranges, and whether core packing runs (`packings`)."""

    seeds: int
    loads: Sequence[float] = LOADS
    factors: Sequence[float] = FACTORS
    devices: Sequence[int] = DEVICES
    steps: Mapping[str, Physics] = field(default_factory=lambda: STEPS)
    sweeps: Sequence[RateSweep] = field(default_factory=lambda: SWEEPS)
    packings: bool = True

    def cases(self, figure: str = "") -> list[NvmeCase]:
        """Return every case with every seed, or those of a figure: an artifact of a claim, "Figure 8" or "Table III"."""
        middle = [base(s, MIDDLE, policy, mode=mode) for mode, policy, s in itertools.product(MODES, POLICIES, SHARES)]
        parts = {
            "Tables": [case for scenario in SHARES for case in self._table(scenario)],
            **{table: [*self._table(scenario), *FASTER.values()] for scenario, table in TABLES.items()},
            "Middle": [case for scenario in SHARES for case in self._table(scenario) if case.load.target == MIDDLE],
            "Origin of the gap": [
                NvmeCase(NvmeLoad("high_bandwidth", load, 0, physics=physics), policy)
                for physics in self.steps.values()
                for load in STEP_LOADS
                for policy in POLICIES
            ],
            "Factors": [replace(cell, high_priority_factor=f) for cell in middle for f in self.factors],
            "Devices": [replace(cell, devices=count) for cell in middle for count in self.devices],
            "Figure 11": [
                mixed(load, fio, policy, mode)
                for mode, policy in itertools.product(MODES, POLICIES)
                for fio in MIXES.values()
                for load in self.loads
            ],
            "Rates": [case for sweep in self.sweeps for policy in POLICIES for case in sweep.cases(policy)],
        }
        wanted = NEEDED.get(figure, (figure,)) if figure else tuple(parts)
        cases = dict.fromkeys(case for part in wanted for case in parts[part])
        return [seeded(case, seed) for case in cases for seed in range(self.seeds)]

    def _table(self, scenario: MixScenario) -> list[NvmeCase]:
        """Return the cells of a scenario's table."""
        return [
            base(scenario, load, policy, infrastructure, mode)
            for mode in SOURCES
            for load in self.loads
            for infrastructure in INFRASTRUCTURES
            for policy in POLICIES
        ]


def base(
    scenario: MixScenario,
    target: float,
    policy: NvmePolicy,
    infrastructure: Infrastructure = "disaggregated",
    mode: str = "default",
    **more: Any,
) -> NvmeCase:
    """Return a case of the tables, with seed 0."""
    return NvmeCase(NvmeLoad(scenario, target, 0, physics=SOURCES[mode]), policy, infrastructure, **more)


def mixed(target: float, fio: float, policy: NvmePolicy, mode: str) -> NvmeCase:
    """Return a case of Figure 11, with seed 0."""
    return NvmeCase(NvmeLoad("high_bandwidth", target, 0, fio=fio, physics=SOURCES[mode]), policy)


def seeded(case: NvmeCase, seed: int) -> NvmeCase:
    """Return the same case with another seed."""
    return replace(case, load=replace(case.load, seed=seed))


FASTER_S = 50.0
"""Seconds between arrivals at which runs match the published core loads and waits of load 0.9 under first_fit."""
FASTER_CELLS: tuple[tuple[MixScenario, Infrastructure, NvmePolicy], ...] = (
    *(("high_bandwidth", infrastructure, policy) for infrastructure in INFRASTRUCTURES for policy in POLICIES),
    ("high_capacity", "physically_attached", "first_fit"),
)
FASTER: Mapping[tuple[MixScenario, Infrastructure, NvmePolicy], NvmeCase] = {
    cell: base(cell[0], 0.9, cell[2], cell[1], gap_s=FASTER_S) for cell in FASTER_CELLS
}
"""Cells of load 0.9 at that arrival rate."""


@dataclass(frozen=True)
class RateSweep:
    """Cells of the tables at several arrival rates around a knee, where a small difference in the rate decides the result.

    Attributes
    ----------
    scenario, load, infrastructure : the cells, under both policies
    gaps_s : seconds between arrivals
    """

    scenario: MixScenario
    load: float
    infrastructure: Infrastructure
    gaps_s: tuple[float, ...]

    def cases(self, policy: NvmePolicy) -> list[NvmeCase]:
        """Return one case per rate, with seed 0."""
        return [base(self.scenario, self.load, policy, self.infrastructure, gap_s=gap) for gap in self.gaps_s]


SWEEPS: tuple[RateSweep, ...] = (
    RateSweep("high_bandwidth", 0.9, "disaggregated", (45.0, 50.0, 55.0, 60.0, 65.0, 75.0, 90.0)),
    RateSweep("high_capacity", 0.9, "disaggregated", (50.0, 54.0, 58.0, 62.0, 66.0, 75.0)),
    RateSweep("high_bandwidth", 0.6, "physically_attached", (120.0, 130.0, 140.0, 150.0, 160.0, 180.0)),
)
"""Cells of the tables that are at a knee of the curve."""


@dataclass(frozen=True)
class NvmeResults:
    """Measurements of every case, and means over its seeds."""

    seeds: Sequence[int]
    cases: Mapping[NvmeCase, Mapping[str, Any]]

    def runs(self, case: NvmeCase) -> list[Mapping[str, Any]]:
        """Return the measurements of a case, one per seed; empty if it was not run."""
        return [self.cases[run] for seed in self.seeds if (run := seeded(case, seed)) in self.cases]

    def values(self, case: NvmeCase, metric: str) -> list[float]:
        """Return the values of a metric, one per seed."""
        return [float(run[metric]) for run in self.runs(case)]

    def mean(self, case: NvmeCase, metric: str) -> float:
        """Return the mean over the seeds; NaN if the case was not run."""
        values = self.values(case, metric)
        return float(np.mean(values)) if values else float("nan")

    def measured(self, *terms: tuple[float, NvmeCase], metric: str) -> Measured | None:
        """Return a weighted sum of cases, seed by seed on the same workloads, with its interval; None if one was not run."""
        columns = [[weight * value for value in self.values(case, metric)] for weight, case in terms]
        return averaged(np.sum(columns, axis=0).tolist()) if all(columns) else None


def averaged(values: Sequence[float]) -> Measured | None:
    """Return the mean and 95 % interval of values, one per seed; None without values."""
    found = mean_interval(values)
    return Measured(found.mean, found.low, found.high, runs=len(values)) if values else None
