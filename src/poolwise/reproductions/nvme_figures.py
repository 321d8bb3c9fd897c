"""Figures 4 to 11 of Call et al. from measured cases, and the claims that are read off them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from poolwise import catalog
from poolwise.metrics.intervals import mean_interval
from poolwise.reproductions.nvme_cells import DEFAULT, PARITY, Case, Infrastructure, Load, Physics, Policy
from poolwise.studies.comparison import Key, Measured, read_claims
from poolwise.studies.figure import Axis, Bars, Curves, Figure
from poolwise.traces.generators.nvme_mix import SHARES, Scenario

if TYPE_CHECKING:
    from poolwise.reproductions.nvme_composition import Plan, Results

SHORT: dict[Scenario, str] = {"high_bandwidth": "S1", "high_capacity": "S2", "high_compute": "S3"}
MODES: dict[str, Physics] = {"default": DEFAULT, "parity": PARITY}
POLICIES: tuple[Policy, ...] = ("first_fit", "disaggregation_aware")
INFRASTRUCTURES: tuple[Infrastructure, ...] = ("disaggregated", "physically_attached")
_LABELS = {
    "constant gaps": "gaps",
    "correlated priorities": "prio-\nrities",
    "frozen residents": "frozen",
    "base times under first_fit": "base\ntimes",
    "window of all resources": "window",
    "late workloads alone": "late\nalone",
    "all six (parity)": "all six",
}
MISSED = Axis("missed deadlines (%)")


def _case(scenario: Scenario, load: float, policy: Policy, mode: str, **more: Any) -> Case:
    return Case(Load(scenario, load, 0, physics=MODES[mode]), policy, **more)


def figures(results: Results, plan: Plan) -> list[Figure]:
    """Every figure, default physics before parity."""
    drawn: list[Figure] = []
    for mode in MODES:
        drawn += [_loads(results, plan, scenario, mode) for scenario in SHARES]
        drawn += [_nodes(results, infrastructure, mode) for infrastructure in INFRASTRUCTURES]
        drawn.append(_shares(results, plan, mode))
        drawn += _factors(results, plan, mode)
        drawn.append(_devices(results, plan, mode))
        drawn.append(_mixes(results, plan, mode))
    return [*drawn, _origins(results, plan)]


def _series(results: Results, cases: Sequence[Case], metric: str) -> tuple[list[float], tuple[list[float], list[float]]]:
    """Means along a curve and the band of their intervals."""
    found = [mean_interval(results.values(case, metric)) for case in cases]
    return [f.mean for f in found], ([f.low for f in found], [f.high for f in found])


def _curves(
    results: Results, name: str, title: str, caption: str, x: Sequence[float], label: str, y: Axis, metric: str,
    lines: dict[str, list[Case]], published: dict[str, list[float]] | None = None,
) -> Curves:  # fmt: skip
    series, interval = {}, {}
    for line, cases in lines.items():
        series[line], interval[line] = _series(results, cases, metric)
    return Curves(
        name,
        title,
        caption,
        x=list(x),
        series=series,
        interval=interval,
        x_axis=Axis(label),
        y_axis=y,
        published=published or {},
    )


def _loads(results: Results, plan: Plan, scenario: Scenario, mode: str) -> Curves:
    lines, published = {}, {}
    table = {c.key: c.published for c in read_claims(catalog.find("reproductions", "nvme-composition.csv"))}
    numeral = {"high_bandwidth": "III", "high_capacity": "IV", "high_compute": "V"}[scenario]
    for infrastructure in INFRASTRUCTURES:
        for policy in POLICIES:
            line = f"{policy}, {infrastructure}".replace("_", " ")
            lines[line] = [_case(scenario, load, policy, mode, infrastructure=infrastructure) for load in plan.loads]
            published[line] = [
                table[
                    f"Table {numeral}", f"{scenario}, load {load}, {infrastructure}, {policy}, {mode}", "missed_deadlines_pct"
                ]
                for load in plan.loads
            ]
    return _curves(
        results, f"figure4-{SHORT[scenario]}-{mode}", f"Figure 4, {SHORT[scenario]} {scenario} ({mode})",
        "Missed deadlines over the ideal load; bands are 95 % intervals over seeds.", plan.loads, "target CPU load", MISSED,
        "missed_deadlines_pct", lines, published,
    )  # fmt: skip


def _nodes(results: Results, infrastructure: Infrastructure, mode: str) -> Bars:
    series = {}
    for scenario in SHARES:
        case = _case(scenario, 0.7, "disaggregation_aware", mode, infrastructure=infrastructure)
        counts = [np.array(run["node_nvme"]) + run["node_compute"] for run in runs(results, case)]
        series[f"{SHORT[scenario]} {scenario}"] = np.mean(counts, axis=0).tolist()
    return Bars(
        f"figure5-{infrastructure}-{mode}", f"Figure 5, {infrastructure.replace('_', ' ')} ({mode})",
        "Workloads run on each node at load 0.7, disaggregation-aware.", groups=[f"node {k}" for k in range(5)], series=series,
        y_axis=Axis("workloads"),
    )  # fmt: skip


def runs(results: Results, case: Case) -> list[Any]:
    """Measurements of a case, one a seed."""
    seeded = [replace(case, load=replace(case.load, seed=seed)) for seed in results.seeds]
    return [results.cases[run] for run in seeded if run in results.cases]


def maximized_pct(results: Results, case: Case) -> list[float]:
    """Percent of the NVMe workloads that maximize composition placed, one a seed."""
    return [100 * run["maximized"] / max(run["maximized"] + run["minimized"], 1) for run in runs(results, case)]


def _shares(results: Results, plan: Plan, mode: str) -> Curves:
    lines = {f"{SHORT[s]} {s}": [_case(s, load, "disaggregation_aware", mode) for load in plan.loads] for s in SHARES}
    found = {line: [mean_interval(maximized_pct(results, case)) for case in cases] for line, cases in lines.items()}
    return Curves(
        f"figure6-{mode}", f"Figure 6 ({mode})", "Workloads with NVMe placed by maximize composition; the rest by minimize.",
        x=list(plan.loads), series={line: [f.mean for f in values] for line, values in found.items()},
        interval={line: ([f.low for f in values], [f.high for f in values]) for line, values in found.items()},
        x_axis=Axis("target CPU load"), y_axis=Axis("placed by maximize composition (%)"),
    )  # fmt: skip


def _factors(results: Results, plan: Plan, mode: str) -> list[Figure]:
    lines = {
        f"{SHORT[s]} {policy}".replace("_", " "): [_case(s, 0.7, policy, mode, high_priority_factor=f) for f in plan.factors]
        for s in SHARES
        for policy in POLICIES
    }
    wanted = (
        ("figure7", "Figure 7", "missed_high_priority_pct", "missed high priority (% of all)"),
        ("figure8", "Figure 8", "true_sharing_ratio", "workloads per composition"),
        ("figure9", "Figure 9", "true_composition_size", "devices per composition"),
    )
    return [
        _curves(
            results, f"{name}-{mode}", f"{title} ({mode})", "Load 0.7, disaggregated.", plan.factors,
            "deadline factor of high priority", Axis(label), metric, lines,
        )
        for name, title, metric, label in wanted
    ]  # fmt: skip


def _devices(results: Results, plan: Plan, mode: str) -> Curves:
    lines = {
        f"{SHORT[s]} {policy}".replace("_", " "): [_case(s, 0.7, policy, mode, devices=count) for count in plan.devices]
        for s in SHARES
        for policy in POLICIES
    }
    return _curves(
        results, f"figure10-{mode}", f"Figure 10 ({mode})", "Load 0.7, disaggregated; the demand stays that of ten devices.",
        plan.devices, "NVMe devices", MISSED, "missed_deadlines_pct", lines,
    )  # fmt: skip


def _mixes(results: Results, plan: Plan, mode: str) -> Curves:
    lines = {
        f"{mix} {policy}".replace("_", " "): [_mixed(load, fio, policy, mode) for load in plan.loads]
        for mix, fio in (("M1", 1.0), ("M2", 0.7), ("M3", 0.5))
        for policy in POLICIES
    }
    return _curves(
        results, f"figure11-{mode}", f"Figure 11 ({mode})", "S1 with FIO for 100, 70 and 50 % of SMUFIN; disaggregated.",
        plan.loads, "target CPU load", MISSED, "missed_deadlines_pct", lines,
    )  # fmt: skip


def _mixed(load: float, fio: float, policy: Policy, mode: str) -> Case:
    return Case(Load("high_bandwidth", load, 0, fio=fio, physics=MODES[mode]), policy)


def _origins(results: Results, plan: Plan) -> Bars:
    loads = [load for load in (0.7, 0.8) if load in plan.loads]
    series = {
        f"{policy}, load {load}".replace("_", " "): [
            results.mean(Case(Load("high_bandwidth", load, 0, physics=physics), policy), "missed_deadlines_pct")
            for physics in plan.steps.values()
        ]
        for load in loads
        for policy in POLICIES
    }
    return Bars(
        "origins", "Where the published gap comes from",
        "S1, disaggregated: the text's physics, each difference of the authors' simulator on its own, all of them.",
        groups=[_LABELS.get(name, name) for name in plan.steps], series=series, y_axis=MISSED,
    )  # fmt: skip


def claims(results: Results, mode: str) -> Iterable[tuple[Key, Measured | None]]:
    """Measure what the paper says about its figures."""
    aware: Policy = "disaggregation_aware"
    for infrastructure in INFRASTRUCTURES:
        case = _case("high_bandwidth", 0.7, aware, mode, infrastructure=infrastructure)
        least = [100 * min(run["node_nvme"]) / sum(run["node_nvme"]) for run in runs(results, case)]
        outside = [100 * sum(np.delete(run["node_nvme"], [0, 2])) / sum(run["node_nvme"]) for run in runs(results, case)]
        condition = f"high_bandwidth, load 0.7, {infrastructure}, {mode}"
        if infrastructure == "disaggregated":
            yield ("Figure 5", condition, "least share of NVMe workloads on a node"), _mean(least)
        else:
            yield ("Figure 5", condition, "NVMe workloads outside nodes 0 and 2"), _mean(outside)
    for scenario in SHARES:
        for load in (0.5, 0.6, 0.7, 0.8, 0.9):
            share = maximized_pct(results, _case(scenario, load, aware, mode))
            yield ("Figure 6", f"{scenario}, load {load}, {mode}", "placed by maximize composition"), _mean(share)
        for factor in (1.0, 1.2, 1.5, 2.0):
            first, other = (_case(scenario, 0.7, policy, mode, high_priority_factor=factor) for policy in POLICIES)
            found = results.measured((1, first), (-1, other), metric="missed_high_priority_pct")
            yield ("Figure 7", f"{scenario}, factor {factor}, {mode}", "first_fit less disaggregation_aware"), found
        case = _case(scenario, 0.7, aware, mode)
        for name, metric in (("Figure 8", "true_sharing_ratio"), ("Figure 9", "true_composition_size")):
            found = results.measured((1, case), metric=metric)
            above = None if found is None else Measured(found.value - 1, found.low - 1, found.high - 1)
            yield (name, f"{scenario}, load 0.7, {mode}", f"{metric.removeprefix('true_')} above 1"), above
        for count in (2, 6, 10):
            first, other = (_case(scenario, 0.7, policy, mode, devices=count) for policy in POLICIES)
            found = results.measured((1, first), (-1, other), metric="missed_deadlines_pct")
            yield ("Figure 10", f"{scenario}, {count} devices, {mode}", "first_fit less disaggregation_aware"), found
    for mix, fio in (("M1", 1.0), ("M2", 0.7), ("M3", 0.5)):
        for load in (0.7, 0.8, 0.9):
            first, other = (_mixed(load, fio, policy, mode) for policy in POLICIES)
            found = results.measured((1, first), (-1, other), metric="missed_deadlines_pct")
            yield ("Figure 11", f"{mix}, load {load}, {mode}", "first_fit less disaggregation_aware"), found


def _mean(values: Sequence[float]) -> Measured | None:
    found = mean_interval(values)
    return Measured(found.mean, found.low, found.high) if values else None
