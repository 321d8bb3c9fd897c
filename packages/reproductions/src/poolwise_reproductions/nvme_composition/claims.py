"""Results of the runs of Call et al., and measured values of the claims: tables, figures, origins of the policies' gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.traces.generators.nvme_mix import SHARES, MixScenario
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.nvme_composition import plan as nvme
from poolwise_reproductions.nvme_composition.cells import (
    ALONE,
    AS_SPECIFIED,
    Algorithms,
    Infrastructure,
    NvmeCase,
    NvmePolicy,
)
from poolwise_reproductions.nvme_composition.plan import (
    CELLS,
    COLUMNS,
    INFRASTRUCTURES,
    LOADS,
    POLICIES,
    RELAXED,
    SATURATED,
    TABLES,
    NvmePlan,
)
from poolwise_reproductions.published import ChangeTexts, Key
from poolwise_reproductions.results import KeyedRow, RunMetric, SeedResults, without_nan

AWARE: NvmePolicy = "disaggregation_aware"
MAXIMIZE, MINIMIZE = ALONE
LEAD, ATTACHED = "first_fit minus disaggregation_aware", "attached minus disaggregated"
MISSED = "missed_deadlines_pct"
LEAST = 1.0
"""Percent of missed deadlines below which a relative reduction is meaningless."""
POOLING, SHARING = "maximum fall of missed deadlines by pooling", "maximum sharing ratio of disaggregation_aware"
"""Metrics of the abstract that a switch affects."""


@dataclass(frozen=True)
class NvmeResults(SeedResults[NvmeCase]):
    """Measurements of every case of a plan, looked up by the physics that `mode` names and by a change of the algorithms."""

    plan: NvmePlan
    mode: str = "default"
    algorithms: Algorithms = AS_SPECIFIED

    def seeded(self, case: NvmeCase) -> list[NvmeCase]:
        """Return a case with each seed."""
        return [nvme.seeded(case, seed) for seed in self.plan.seeds_of(case)]

    def planned(self, loads: Iterable[float]) -> list[float]:
        """Return the loads that the plan covers fully; at other loads, only single cells were run, to verify causes."""
        return [load for load in loads if load in self.plan.loads]

    def at(
        self, scenario: MixScenario, load: float, policy: NvmePolicy, where: Infrastructure = "disaggregated", **more: Any
    ) -> NvmeCase:
        """Return a case under the physics."""
        case = nvme.base(scenario, load, policy, where, self.mode, **more)
        return replace(case, algorithms=self.algorithms) if policy == AWARE else case

    def less(self, case: NvmeCase, other: NvmeCase, metric: RunMetric = MISSED) -> Measured:
        """Return a metric of `case` minus that of `other`, seed by seed on the same workloads; NaN if one was not run."""
        above, below = self.values(case, metric), self.values(other, metric)
        return Measured.over_seeds(above - below if len(above) and len(below) else [])

    def lead(self, scenario: MixScenario, load: float, metric: RunMetric = MISSED, **more: Any) -> Measured:
        """Return a metric under first_fit minus that under disaggregation_aware, on pooled devices."""
        first, aware = (self.at(scenario, load, policy, **more) for policy in POLICIES)
        return self.less(first, aware, metric)


def maximized_pct(run: Any) -> float:
    """Return the percentage of NVMe workloads that maximize composition placed."""
    return float(100 * run["maximized"] / max(run["maximized"] + run["minimized"], 1))


def table(results: NvmeResults, scenario: MixScenario) -> Iterator[KeyedRow]:
    """Measure Table III, IV or V: its cells, and the lead of the disaggregation-aware policy."""
    name, metrics = TABLES[scenario], (*COLUMNS, "true_composition_size", "true_sharing_ratio")
    for load, (infrastructure, policy) in product(results.planned(LOADS), CELLS):
        case = results.at(scenario, load, policy, infrastructure)
        for metric in metrics:
            yield (name, f"{scenario}, load {load}, {infrastructure}, {policy}", metric), results.mean(case, metric)
    for load in results.planned(LOADS):
        yield (name, f"{scenario}, load {load}, disaggregated", LEAD), results.lead(scenario, load)


def pooling(results: NvmeResults, scenario: MixScenario) -> Iterator[KeyedRow]:
    """Measure how many more deadlines are missed on attached than on pooled devices (Tables III to V)."""
    loads = LOADS[1:] if scenario == "high_bandwidth" else SATURATED
    for policy, load in product(POLICIES, results.planned(loads)):
        key = TABLES[scenario], f"{scenario}, load {load}, {policy}", ATTACHED
        yield key, _by_pooling(results, load, policy, scenario)


def _by_pooling(results: NvmeResults, load: float, policy: NvmePolicy, scenario: MixScenario = "high_bandwidth") -> Measured:
    pooled, attached = (results.at(scenario, load, policy, where) for where in INFRASTRUCTURES)
    return results.less(attached, pooled)


def figure_4(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure the missed deadlines of every cell at low saturation."""
    for scenario, (infrastructure, policy) in product(SHARES, CELLS):
        missed = results.mean(results.at(scenario, RELAXED, policy, infrastructure), MISSED)
        yield ("Figure 4", f"{scenario}, load {RELAXED}, {infrastructure}, {policy}", "missed deadlines"), missed


def section_3c(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure how many more deadlines the less suitable algorithm of a scenario misses, each used throughout a run."""
    for scenario, load in product(SHARES, SATURATED):
        worse, better = (MINIMIZE, MAXIMIZE) if scenario == "high_bandwidth" else (MAXIMIZE, MINIMIZE)
        more = results.less(results.at(scenario, load, worse), results.at(scenario, load, better))
        yield ("Section III-C", f"{scenario}, load {load}", f"{worse} minus {better}"), more


def figure_5(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure the shares of NVMe workloads on the nodes."""
    pooled, attached = (results.at("high_bandwidth", 0.7, AWARE, where) for where in INFRASTRUCTURES)
    least = results.mean(pooled, lambda run: 100 * (min(run["node_nvme"]) / sum(run["node_nvme"])))
    yield ("Figure 5", "high_bandwidth, load 0.7, disaggregated", "minimum share of NVMe workloads on a node"), least
    outside = results.mean(attached, lambda run: 100 * (sum(np.delete(run["node_nvme"], [0, 2])) / sum(run["node_nvme"])))
    yield ("Figure 5", "high_bandwidth, load 0.7, physically_attached", "NVMe workloads outside nodes 0 and 2"), outside


def figure_6(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure the shares of the two algorithms."""
    for scenario, load in product(SHARES, results.planned(LOADS)):
        share = results.mean(results.at(scenario, load, AWARE), maximized_pct)
        yield ("Figure 6", f"{scenario}, load {load}", "placed by maximize composition"), share


def figure_7(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure how many more high-priority deadlines first_fit misses."""
    for scenario, factor in product(SHARES, nvme.JUDGED_FACTORS):
        lead = results.lead(scenario, 0.7, "missed_high_priority_pct", high_priority_factor=factor)
        yield ("Figure 7", f"{scenario}, factor {factor}", LEAD), lead


def figures_8_9(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure sharing and composition sizes."""
    for scenario in SHARES:
        for name, metric in (("Figure 8", "sharing_ratio"), ("Figure 9", "composition_size")):
            above = results.values(results.at(scenario, 0.7, AWARE), f"true_{metric}") - 1
            yield (name, f"{scenario}, load 0.7", f"{metric} above 1"), Measured.over_seeds(above)


def figure_10(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure how many more deadlines first_fit misses with fewer devices."""
    for scenario, count in product(SHARES, nvme.JUDGED_DEVICES):
        yield ("Figure 10", f"{scenario}, {count} devices", LEAD), results.lead(scenario, 0.7, devices=count)
    yield from _falls(results, nvme.MIDDLE)


def _falls(results: NvmeResults, load: float) -> Iterator[KeyedRow]:
    """Yield how much the lead of the disaggregation-aware policy in S1 falls from more devices to fewer."""
    for more, fewer in pairwise(nvme.FEWER_DEVICES):
        above, below = _leads(results, more, load), _leads(results, fewer, load)
        fall = Measured.over_seeds(above - below if len(above) and len(below) else [])
        yield ("Figure 10", f"high_bandwidth, {more} to {fewer} devices", f"fall of {LEAD}"), fall


def _leads(results: NvmeResults, devices: int, load: float) -> FloatArray:
    """Return the leads of the disaggregation-aware policy in S1, (n_seed,); empty if a case was not run."""
    first, aware = (results.values(results.at("high_bandwidth", load, policy, devices=devices), MISSED) for policy in POLICIES)
    return first - aware if len(first) and len(aware) else np.array([])


def figure_11(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure how many more deadlines first_fit misses with FIO in the mix."""
    for (mix, fio), load in product(nvme.MIXES.items(), SATURATED):
        yield ("Figure 11", f"{mix}, load {load}", LEAD), results.lead("high_bandwidth", load, fio=fio)


def abstract(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure the "up to" statements of the abstract and the conclusion: the cell with the greatest mean."""
    pooled = [_by_pooling(results, load, "first_fit") for load in LOADS]
    yield ("Abstract", "high_bandwidth, first_fit", POOLING), _greatest(pooled)
    metric = "maximum fall of missed deadlines by disaggregation_aware against first_fit"
    yield ("Abstract", "high_bandwidth", metric), _greatest([_fall(results, load) for load in LOADS])
    for load in (load for load in LOADS if load <= nvme.MIDDLE):
        missed = results.mean(results.at("high_bandwidth", load, AWARE), MISSED)
        yield ("Section VI", f"high_bandwidth, load {load}, disaggregated, {AWARE}", "missed deadlines"), missed
    shared = [results.mean(results.at("high_bandwidth", load, AWARE), "true_sharing_ratio") for load in LOADS]
    yield ("Abstract", "high_bandwidth", SHARING), _greatest(shared)


def _fall(results: NvmeResults, load: float) -> Measured:
    """Return the percentage by which the policy reduces missed deadlines; NaN if first_fit misses less than `LEAST`.

    It is a ratio of means, since some seeds have no missed deadlines; its interval is that of the linearized ratio.
    """
    first, aware = (results.values(results.at("high_bandwidth", load, policy), MISSED) for policy in POLICIES)
    if not len(first) or not len(aware) or first.mean() < LEAST:
        return Measured(np.nan)
    ratio = aware.mean() / first.mean()
    return Measured.over_seeds(100 * (1 - ratio + (ratio * first - aware) / first.mean()))


def _greatest(measurements: Iterable[Measured]) -> Measured:
    measured = (value for value in measurements if not np.isnan(value.value))
    return max(measured, key=lambda value: value.value, default=Measured(np.nan))


def origins(results: NvmeResults) -> Iterator[KeyedRow]:
    """Measure the missed deadlines and the gap between the policies under each single difference of the authors' simulator."""
    for load, step in product(nvme.STEP_LOADS, nvme.STEPS if results.mode == "default" else ()):
        first, aware = nvme.step_pair(load, step)
        condition = f"high_bandwidth, load {load}, disaggregated, {step}"
        yield ("Origin of the gap", condition, "first_fit"), results.mean(first, MISSED)
        yield ("Origin of the gap", condition, AWARE), results.mean(aware, MISSED)
        yield ("Origin of the gap", condition, LEAD), results.less(first, aware)
    if results.mode == "default":
        pooled, attached = (results.at("high_bandwidth", 0.9, "first_fit", w, gap_s=nvme.FASTER_S) for w in INFRASTRUCTURES)
        condition = f"high_bandwidth, load 0.9, first_fit, one arrival in {nvme.FASTER_S:g} s"
        yield ("Origin of the gap", condition, ATTACHED), results.less(attached, pooled)


_CAUSES = {
    "constant gaps": "Poisson arrivals cause bursts in which workloads wait, while the authors' simulator uses equal gaps",
    "correlated priorities": "priority is independent of kind here; in the published runs both come from one random draw, "
    "so the urgent workloads are the bandwidth-bound ones",
    "base times under first_fit": "first_fit uses the table of run times here; in the published runs it used the longer "
    "base time",
    "window of all resources": "the authors' ideal machine also has limited bandwidth and capacity, so it reaches a load "
    "with other arrivals than here, where only cores limit it",
    "frozen residents": "running workloads change their speed here when others join or leave; in the authors' simulator "
    "they keep the speed at which they started",
    "a seventh sharer": "at most six workloads share a composition here; the authors' simulator admits a seventh",
    "late workloads alone": "late workloads may join compositions in use, so a few devices serve all of them; that they "
    "join none is inferred",
    "capacity alone": "here the demand for bandwidth and that for capacity both decide equation 4; that the capacity alone "
    "decides it is inferred",
}
"""Difference of the authors' simulator, or inferred difference -> the cause that it verifies alone."""
TEXTS = ChangeTexts(
    {
        name: f"{cause}[: with that alone, this value is {{switched}} instead of {{measured}}]"
        for name, cause in _CAUSES.items()
    },
    {
        nvme.GAPS_AND_DRAW: "equal gaps and one draw of kind and priority",
        "as run": "the six differences of the authors' simulator",
        "inferred": "the six differences of the authors' simulator and the two inferred ones",
    },
)


def switches(results: NvmeResults) -> dict[str, dict[Key, Measured]]:
    """Return switch -> claim -> measurement with that switch alone, for the claims that each switch affects."""
    faster = [*_columns(results, nvme.FASTER)]
    for scenario in nvme.SATURATED_EARLY:
        lead = results.lead(scenario, 0.9, gap_s=nvme.FASTER_S)
        faster.append(((TABLES[scenario], f"{scenario}, load 0.9, disaggregated", LEAD), lead))
    many = replace(results, plan=results.plan.with_more_seeds)
    few = replace(results, plan=results.plan.with_few_capacity_bound)
    alone = ("Abstract", "high_bandwidth, first_fit", POOLING), _by_pooling(many, 0.6, "first_fit")
    ratios = [results.mean(results.at("high_bandwidth", load, AWARE), "sharing_ratio") for load in LOADS]
    return {
        f"one arrival in {nvme.FASTER_S:g} s": without_nan(faster),
        "first_fit at load 0.6 alone": without_nan([alone]),
        "few capacity-bound workloads": without_nan(_columns(few, nvme.FEW_CAPACITY_BOUND)),
        f"load {nvme.FULL_LOAD}": without_nan(_falls(results, nvme.FULL_LOAD)),
        "ratios rounded down": without_nan([(("Abstract", "high_bandwidth", SHARING), _greatest(ratios))]),
    }


def _columns(results: NvmeResults, cells: Iterable[NvmeCase]) -> Iterator[KeyedRow]:
    """Yield every column of Tables III to V for the given cells, which may differ from those of the specification."""
    for case in cells:
        scenario, load = case.load.scenario, case.load.target
        condition = f"{scenario}, load {load}, {case.infrastructure}, {case.policy}"
        yield from (((TABLES[scenario], condition, metric), results.mean(case, metric)) for metric in COLUMNS)


def explain(results: NvmeResults) -> list[str]:
    """Describe how much each difference changes the gap between the policies at S1."""
    sentences = []
    for load in nvme.STEP_LOADS:
        gaps = {}
        for name in nvme.STEPS:
            first, aware = (results.mean(case, MISSED).value for case in nvme.step_pair(load, name))
            gaps[name] = first - aware
        parts = ", ".join(f"{name} {gap - gaps['default']:+.1f}" for name, gap in gaps.items() if name != "default")
        sentences.append(
            f"S1 at load {load}, disaggregated: first_fit misses {gaps['default']:.1f} points more deadlines than "
            f"disaggregation_aware under the text's physics. Change of that gap with each difference alone: {parts}."
        )
    return sentences
