"""Runs of the NVMe composition reproduction: parameter ranges, and the cases that each figure and table needs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from poolwise.traces.generators.nvme_mix import CAPACITY_BOUND, SHARES, MixScenario, NvmeMix
from poolwise_reproductions.nvme_composition.cells import (
    ALONE,
    DEFAULT,
    INFERRED,
    PARITY,
    Algorithms,
    Infrastructure,
    NvmeCase,
    NvmeLoad,
    NvmePolicy,
    Physics,
)

TABLES: Mapping[MixScenario, str] = {"high_bandwidth": "Table III", "high_capacity": "Table IV", "high_compute": "Table V"}
SHORT: Mapping[MixScenario, str] = {"high_bandwidth": "S1", "high_capacity": "S2", "high_compute": "S3"}
MODES: Mapping[str, Physics] = {"default": DEFAULT, "parity": PARITY}
"""Physics under which every row and figure is shown."""
SOURCES: Mapping[str, Physics] = {**MODES, "inferred": INFERRED}
GAPS_AND_DRAW = "equal gaps and one draw"
SINGLE: Mapping[str, Physics] = {
    "constant gaps": Physics(constant_gaps=True),
    "correlated priorities": Physics(correlated=True),
    "frozen residents": Physics(frozen=True),
    "base times under first_fit": Physics(base_times=True),
    "window of all resources": Physics(all_resources=True),
    "a seventh sharer": Physics(seventh=True),
    "late workloads alone": Physics(late_alone=True),
    "capacity alone": Physics(capacity_alone=True),
}
"""Each difference of the authors' simulator alone, and each of the two that are inferred, to verify causes."""
PHYSICS: Mapping[str, Physics] = {**SOURCES, **SINGLE, GAPS_AND_DRAW: Physics(constant_gaps=True, correlated=True)}
"""Physics under which the judged rows are measured."""
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
SATURATED = (0.7, 0.8, 0.9)
"""Loads of mid to high saturation: the paper calls 0.7 "a not relaxed but not saturated system" (section IV-D)."""
RELAXED = 0.5
"""The load of low saturation."""
FACTORS = tuple(k / 10 for k in range(10, 21))
JUDGED_FACTORS = (1.0, 1.2, 1.5, 2.0)
DEVICES = tuple(range(1, 11))
JUDGED_DEVICES = (2, 6, 10)
MIXES = {"M1": 1.0, "M2": 0.7, "M3": 0.5}
INFRASTRUCTURES: tuple[Infrastructure, ...] = ("disaggregated", "physically_attached")
POLICIES: tuple[NvmePolicy, ...] = ("first_fit", "disaggregation_aware")
CELLS = tuple(itertools.product(INFRASTRUCTURES, POLICIES))
"""Columns of Tables III to V."""
COLUMNS: Mapping[str, tuple[str, int]] = {
    "cpu_load": ("CPU load", 2),
    "bandwidth_load": ("bandwidth load", 2),
    "capacity_load": ("capacity load", 2),
    "missed_deadlines_pct": ("missed deadlines (%)", 2),
    "missed_high_priority_pct": ("missed high priority (%)", 2),
    "nvme_usage_pct": ("NVMe usage (%)", 2),
    "mean_wait_s": ("mean wait (s)", 0),
    "composition_size": ("composition size", 2),
    "sharing_ratio": ("sharing ratio", 2),
}
"""Metric of Tables III to V -> its heading and the number of decimals that the paper prints."""
STEPS: Mapping[str, Physics] = {
    "default": DEFAULT,
    **{name: physics for name, physics in SINGLE.items() if PARITY.includes(physics)},
    "all six (parity)": PARITY,
    "late workloads alone (inferred)": SINGLE["late workloads alone"],
    "parity and late workloads alone (inferred)": replace(PARITY, late_alone=True),
}
"""Differences of the authors' simulator, one at a time, to attribute the gap between the policies; the last two are ours."""
ALGORITHMS: Mapping[str, Mapping[str, Algorithms]] = {
    "Algorithm 1": {
        "a loop over each parameter": Algorithms(each_parameter=True),
        "a new composition beyond an extension of 0.5": Algorithms(max_extension=0.5),
        "a new composition beyond an extension of 0.1": Algorithms(max_extension=0.1),
    },
    "Equation 1": {"equation 1 as printed": Algorithms(fitness_as_printed=True)},
    "Equation 2": {"equation 2 as printed": Algorithms(alpha_as_printed=True)},
}
"""Artifact -> condition -> single change of the algorithms; extensions are fractions of the workload's time (assumed)."""
STEP_LOADS = (0.7, 0.8)
MIDDLE = 0.7
"""Load in figures that vary a parameter other than the load."""
FULL_LOAD, FEWER_DEVICES = 0.9, (10, 6, 2)
"""Load at which first_fit lacks devices even if all are present, and the numbers of devices that Figure 10 compares."""


@dataclass(frozen=True)
class NvmePlan:
    """Number of seeds, parameter ranges, and whether core packing runs (`packings`).

    `more_seeds` is the number of seeds of the cases in which the policies differ by less than a few seeds do (section III-C);
    it is at least `seeds`. `chosen`, if given, are the seeds of every case instead.
    """

    seeds: int
    loads: Sequence[float] = LOADS
    factors: Sequence[float] = FACTORS
    devices: Sequence[int] = DEVICES
    sweeps: Sequence[RateSweep] = field(default_factory=lambda: SWEEPS)
    packings: bool = True
    more_seeds: int = 0
    chosen: Sequence[int] = ()

    @property
    def with_more_seeds(self) -> NvmePlan:
        """Plan that runs every case with `more_seeds` seeds."""
        return replace(self, chosen=range(max(self.seeds, self.more_seeds)))

    @property
    def with_few_capacity_bound(self) -> NvmePlan:
        """Plan whose seeds are the tenth of the draws of S2 that has the fewest capacity-bound workloads."""
        return replace(self, chosen=fewest_capacity_bound(self.seeds))

    def seeds_of(self, case: NvmeCase) -> Sequence[int]:
        """Return the seeds of a case."""
        if self.chosen:
            return self.chosen
        return range(max(self.seeds, self.more_seeds) if case.policy in ALONE else self.seeds)

    def table(self, scenario: MixScenario) -> list[NvmeCase]:
        """Return the cells of a scenario's table, and those of load 0.9 at another arrival rate."""
        return [*self._cells(scenario), *FASTER]

    def tables(self) -> list[NvmeCase]:
        """Return the cells of all tables, which Figures 4 and 6 draw."""
        return [case for scenario in SHARES for case in self._cells(scenario)]

    def alone(self) -> list[NvmeCase]:
        """Return the cases of section III-C: each of the two algorithms used throughout a run."""
        loads = [load for load in self.loads if load in SATURATED]
        points = itertools.product(MODES, SHARES, loads, ALONE)
        return [base(scenario, load, policy, mode=mode) for mode, scenario, load, policy in points]

    def middle(self) -> list[NvmeCase]:
        """Return the cells at the middle load, which Figure 5 draws."""
        return [case for case in self.tables() if case.load.target == MIDDLE]

    def priorities(self) -> list[NvmeCase]:
        """Return the cases of Figures 7 to 9: several deadline factors of high priority."""
        drawn = [replace(case, high_priority_factor=f) for case in self._varied() for f in self.factors]
        judged = [
            replace(case, high_priority_factor=f) for case in self._varied(PHYSICS) for f in JUDGED_FACTORS if f in self.factors
        ]
        return [*self.middle(), *drawn, *judged]

    def sizes(self) -> list[NvmeCase]:
        """Return the cases of Figure 10: several numbers of devices; and those of S1 at full load, which verify a cause."""
        points = itertools.product(FEWER_DEVICES, POLICIES)
        full = [base("high_bandwidth", FULL_LOAD, policy, devices=count) for count, policy in points]
        drawn = [replace(case, devices=count) for case in self._varied() for count in self.devices]
        judged = [
            replace(case, devices=count) for case in self._varied(PHYSICS) for count in JUDGED_DEVICES if count in self.devices
        ]
        return [*self.middle(), *drawn, *judged, *full]

    def mixes(self) -> list[NvmeCase]:
        """Return the cases of Figure 11: several shares of FIO."""
        saturated = [load for load in self.loads if load in SATURATED]
        drawn = itertools.product(MODES, POLICIES, MIXES.values(), self.loads)
        judged = itertools.product(PHYSICS, POLICIES, MIXES.values(), saturated)
        points = dict.fromkeys([*drawn, *judged])
        return [base("high_bandwidth", load, policy, mode=mode, fio=fio) for mode, policy, fio, load in points]

    def origins(self) -> list[NvmeCase]:
        """Return the cases with the differences of the authors' simulator, and those of load 0.9 at another arrival rate."""
        return [*(case for step in STEPS for load in STEP_LOADS for case in step_pair(load, step)), *FASTER]

    def algorithms(self, artifact: str) -> list[NvmeCase]:
        """Return the saturated cells on pooled devices under the changes of an artifact, and without a change."""
        points = itertools.product(SHARES, [load for load in self.loads if load in SATURATED])
        cases: list[NvmeCase] = []
        for scenario, load in points:
            first, aware = (base(scenario, load, policy) for policy in POLICIES)
            cases += [first, aware, *(replace(aware, algorithms=each) for each in ALGORITHMS[artifact].values())]
        return cases

    def rates(self) -> list[NvmeCase]:
        """Return the cells of the tables at several arrival rates."""
        return [case for sweep in self.sweeps for policy in POLICIES for case in sweep.cases(policy)]

    def _cells(self, scenario: MixScenario) -> list[NvmeCase]:
        points = itertools.product(PHYSICS, self.loads, CELLS)
        return [base(scenario, load, policy, where, mode) for mode, load, (where, policy) in points]

    def _varied(self, modes: Iterable[str] = MODES) -> list[NvmeCase]:
        """Return the cases in which Figures 7 to 10 vary a parameter other than the load."""
        points = itertools.product(modes, POLICIES, SHARES)
        return [base(scenario, MIDDLE, policy, mode=mode) for mode, policy, scenario in points]


def step_pair(load: float, step: str) -> tuple[NvmeCase, NvmeCase]:
    """Return the cases of S1 under both policies with one difference of the authors' simulator, with seed 0."""
    first, aware = (NvmeCase(NvmeLoad("high_bandwidth", load, 0, physics=STEPS[step]), policy) for policy in POLICIES)
    return first, aware


def base(
    scenario: MixScenario, target: float, policy: NvmePolicy, infrastructure: Infrastructure = "disaggregated",
    mode: str = "default", fio: float = 0.0, **more: Any,
) -> NvmeCase:  # fmt: skip
    """Return a case of the tables, with seed 0."""
    return NvmeCase(NvmeLoad(scenario, target, 0, fio, PHYSICS[mode]), policy, infrastructure, **more)


def seeded(case: NvmeCase, seed: int) -> NvmeCase:
    """Return the same case with another seed."""
    return replace(case, load=replace(case.load, seed=seed))


FASTER_S = 50.0
"""Seconds between arrivals at which runs match the core loads and waits published for load 0.9 under first_fit."""
SATURATED_EARLY: tuple[MixScenario, ...] = ("high_bandwidth", "high_capacity")
"""Scenarios whose published values at load 0.9 imply more arrivals than the ideal machine needs to reach that load."""
FASTER: tuple[NvmeCase, ...] = tuple(
    base(scenario, 0.9, policy, infrastructure, gap_s=FASTER_S)
    for scenario, (infrastructure, policy) in itertools.product(SATURATED_EARLY, CELLS)
)
"""Cells of load 0.9 with arrivals every `FASTER_S` seconds."""


@lru_cache(maxsize=4)
def fewest_capacity_bound(count: int) -> tuple[int, ...]:
    """Return the `count` seeds of S2, out of ten times as many, with the fewest capacity-bound workloads."""
    drawn = (NvmeMix("high_capacity", seed=seed).generate().attributes["kind"] for seed in range(10 * count))
    numbers = np.array([(kind == CAPACITY_BOUND.name).sum() for kind in drawn])
    return tuple(np.argsort(numbers, kind="stable")[:count].tolist())


FEW_CAPACITY_BOUND: tuple[NvmeCase, ...] = (
    base("high_capacity", 0.6, "first_fit", "physically_attached"),
    base("high_capacity", 0.6, "disaggregation_aware", "physically_attached"),
    *(base("high_capacity", load, policy) for load in (0.6, 0.7, 0.8, 0.9) for policy in POLICIES),
)
"""Cells of Table IV whose capacity load exceeds the published load; they are repeated with draws that have a lower one."""
POOLED_EARLY: tuple[NvmeCase, ...] = tuple(base("high_bandwidth", 0.6, "first_fit", where) for where in INFRASTRUCTURES)
"""Cells of Table III at the load at which pooling gains about as much as the abstract states."""


@dataclass(frozen=True)
class RateSweep:
    """Cells of the tables at several arrival rates around a knee, where a small difference in rate decides the result.

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

QUICK = NvmePlan(2, (0.7, 0.8), (1.0, 1.2), (2, 10), sweeps=(), packings=False)
