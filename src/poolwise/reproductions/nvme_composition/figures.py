"""Figures 4 to 11 of Call et al. drawn from measured cases, and the origin of the gap between the policies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.figure import Axis, Bars, Curves, Figure, Panels
from poolwise.reproductions.nvme_composition.cells import Infrastructure, NvmeCase, NvmeLoad
from poolwise.reproductions.nvme_composition.claims import maximized_pct
from poolwise.reproductions.nvme_composition.plan import (
    INFRASTRUCTURES,
    MIXES,
    MODES,
    POLICIES,
    SHORT,
    STEP_LOADS,
    TABLES,
    NvmePlan,
    NvmeResults,
    base,
    mixed,
)
from poolwise.reproductions.nvme_composition.tables import published_values
from poolwise.traces.generators.nvme_mix import SHARES, MixScenario

_LABELS = {
    "default": "text",
    "constant gaps": "gaps",
    "correlated priorities": "prio",
    "frozen residents": "froz",
    "base times under first_fit": "base",
    "window of all resources": "ideal",
    "a seventh sharer": "7th",
    "all six (parity)": "all\nsix",
    "late workloads alone (inferred)": "late*",
    "parity and late workloads alone (inferred)": "six,\nlate*",
}
_DISPLAY_NAMES = {
    "first_fit": "first fit",
    "disaggregation_aware": "aware",
    "disaggregated": "pooled",
    "physically_attached": "attached",
}
MISSED = Axis("missed deadlines (%)")
ORIGIN = "Origin of the gap"
Drawing = Callable[[NvmeResults, NvmePlan, str], Sequence[Figure]]
"""Function that draws a figure of the paper under one physics."""


def figures(results: NvmeResults, plan: NvmePlan, figure: str = "") -> list[Figure]:
    """Draw every figure, default physics before parity, or those of one artifact."""
    drawn = []
    for mode, (artifact, draw) in itertools.product(MODES, _DRAWN.items()):
        if figure in ("", artifact):
            drawn += [replace(one, artifact=artifact) for one in draw(results, plan, mode)]
    if figure in ("", ORIGIN):
        drawn.append(replace(_origins(results, plan), artifact=ORIGIN))
    return [*drawn, *([_rates(results, plan)] if plan.sweeps and not figure else [])]


def _rates(results: NvmeResults, plan: NvmePlan) -> Panels:
    """Draw missed deadlines over the arrival rate around a knee, with the published values of the corresponding load."""
    values, panels = published_values(), []
    for k, sweep in enumerate(plan.sweeps):
        where = f"{sweep.scenario}, load {sweep.load}, {sweep.infrastructure}"
        lines = {_DISPLAY_NAMES[policy]: sweep.cases(policy) for policy in POLICIES}
        title = f"{SHORT[sweep.scenario]}, load {sweep.load}, {_DISPLAY_NAMES[sweep.infrastructure]}"
        drawn = _curves(
            results, f"rates-{k + 1}", title, "",
            sweep.gaps_s, "seconds between arrivals", MISSED, "missed_deadlines_pct", lines,
        )  # fmt: skip
        printed = {policy: values[TABLES[sweep.scenario], f"{where}, {policy}", "missed_deadlines_pct"] for policy in POLICIES}
        flat = {f"{_DISPLAY_NAMES[policy]}, published": [value] * len(sweep.gaps_s) for policy, value in printed.items()}
        panels.append(replace(drawn, series={**drawn.series, **flat}))
    return Panels(
        "rates",
        "Missed deadlines over the arrival rate around the knee",
        "The text's physics. Each published value comes from one run at a rate that the paper does not state; bands are 95 % "
        "intervals over seeds. The ideal machine reaches load 0.9 at many rates.",
        panels=panels,
        columns=3,
    )


def _series(
    results: NvmeResults, cases: Sequence[NvmeCase], metric: str
) -> tuple[list[float], tuple[list[float], list[float]]]:
    """Return the means along a curve and the band of their intervals."""
    found = [mean_interval(results.values(case, metric)) for case in cases]
    return [f.mean for f in found], ([f.low for f in found], [f.high for f in found])


def _curves(
    results: NvmeResults, name: str, title: str, caption: str, x: Sequence[float], label: str, y: Axis, metric: str,
    lines: Mapping[str, list[NvmeCase]], published: Mapping[str, list[float]] | None = None,
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


def _loads(results: NvmeResults, plan: NvmePlan, scenario: MixScenario, mode: str) -> Curves:
    lines, published = {}, {}
    values = published_values()
    for infrastructure in INFRASTRUCTURES:
        for policy in POLICIES:
            line = f"{policy}, {infrastructure}".replace("_", " ")
            lines[line] = [base(scenario, load, policy, infrastructure, mode) for load in plan.loads]
            where = [f"{scenario}, load {load}, {infrastructure}, {policy}" for load in plan.loads]
            published[line] = [values[TABLES[scenario], condition, "missed_deadlines_pct"] for condition in where]
    return _curves(
        results, f"figure4-{SHORT[scenario]}-{mode}", f"Figure 4, {SHORT[scenario]} {scenario} ({mode})",
        "Missed deadlines over the ideal load; bands are 95 % intervals over seeds.", plan.loads, "target CPU load", MISSED,
        "missed_deadlines_pct", lines, published,
    )  # fmt: skip


def _nodes(results: NvmeResults, infrastructure: Infrastructure, mode: str) -> Bars:
    series = {}
    for scenario in SHARES:
        case = base(scenario, 0.7, "disaggregation_aware", infrastructure, mode)
        counts = [np.array(run["node_nvme"]) + run["node_compute"] for run in results.runs(case)]
        series[f"{SHORT[scenario]} {scenario}"] = np.mean(counts, axis=0).tolist()
    return Bars(
        f"figure5-{infrastructure}-{mode}", f"Figure 5, {infrastructure.replace('_', ' ')} ({mode})",
        "Workloads run on each node at load 0.7, disaggregation-aware.", groups=[f"node {k}" for k in range(5)], series=series,
        y_axis=Axis("workloads"),
    )  # fmt: skip


def _shares(results: NvmeResults, plan: NvmePlan, mode: str) -> Curves:
    lines = {f"{SHORT[s]} {s}": [base(s, load, "disaggregation_aware", mode=mode) for load in plan.loads] for s in SHARES}
    found = {line: [mean_interval(maximized_pct(results, case)) for case in cases] for line, cases in lines.items()}
    return Curves(
        f"figure6-{mode}", f"Figure 6 ({mode})",
        "Share of the NVMe workloads that maximize composition places; minimize fragmentation places the rest.",
        x=list(plan.loads), series={line: [f.mean for f in values] for line, values in found.items()},
        interval={line: ([f.low for f in values], [f.high for f in values]) for line, values in found.items()},
        x_axis=Axis("target CPU load"), y_axis=Axis("placed by maximize composition (%)"),
    )  # fmt: skip


def _factors(number: int, metric: str, label: str) -> Drawing:
    """Return the function that draws Figure 7, 8 or 9: a metric over the deadline factor of high priority."""

    def draw(results: NvmeResults, plan: NvmePlan, mode: str) -> Sequence[Figure]:
        lines = {
            f"{SHORT[s]} {policy}".replace("_", " "): [
                base(s, 0.7, policy, mode=mode, high_priority_factor=f) for f in plan.factors
            ]
            for s in SHARES
            for policy in POLICIES
        }
        curves = _curves(
            results, f"figure{number}-{mode}", f"Figure {number} ({mode})", "Load 0.7, disaggregated.", plan.factors,
            "deadline factor of high priority", Axis(label), metric, lines,
        )  # fmt: skip
        return [curves]

    return draw


def _devices(results: NvmeResults, plan: NvmePlan, mode: str) -> Curves:
    lines = {
        f"{SHORT[s]} {policy}".replace("_", " "): [base(s, 0.7, policy, mode=mode, devices=count) for count in plan.devices]
        for s in SHARES
        for policy in POLICIES
    }
    return _curves(
        results, f"figure10-{mode}", f"Figure 10 ({mode})", "Load 0.7, disaggregated; the demand remains that of ten devices.",
        plan.devices, "NVMe devices", MISSED, "missed_deadlines_pct", lines,
    )  # fmt: skip


def _mixes(results: NvmeResults, plan: NvmePlan, mode: str) -> Curves:
    lines = {
        f"{mix} {policy}".replace("_", " "): [mixed(load, fio, policy, mode) for load in plan.loads]
        for mix, fio in MIXES.items()
        for policy in POLICIES
    }
    return _curves(
        results, f"figure11-{mode}", f"Figure 11 ({mode})",
        "S1 with FIO in place of 100, 70 and 50 % of SMUFIN; disaggregated.",
        plan.loads, "target CPU load", MISSED, "missed_deadlines_pct", lines,
    )  # fmt: skip


def _origins(results: NvmeResults, plan: NvmePlan) -> Bars:
    loads = [load for load in STEP_LOADS if load in plan.loads]
    values, series, published = published_values(), {}, {}
    for load in loads:
        for policy in POLICIES:
            name = f"{'first fit' if policy == 'first_fit' else 'aware'}, {load}"
            cases = [NvmeCase(NvmeLoad("high_bandwidth", load, 0, physics=physics), policy) for physics in plan.steps.values()]
            series[name] = [results.mean(case, "missed_deadlines_pct") for case in cases]
            parity = values["Table III", f"high_bandwidth, load {load}, disaggregated, {policy}", "missed_deadlines_pct"]
            published[name] = [parity if step == "all six (parity)" else float("nan") for step in plan.steps]
    return Bars(
        "origins",
        "Origin of the published gap",
        "S1, disaggregated, loads 0.7 and 0.8: the text's physics; each difference of the authors' simulator alone (constant "
        "gaps, correlated priorities, frozen residents, base times under first_fit, an ideal machine of all resources, a "
        "seventh sharer); all six (parity), with the published values as marks. late*: late workloads join no composition in "
        "use, which no source states and which was inferred from the published device usage; alone and combined with parity.",
        groups=[_LABELS[name] for name in plan.steps],
        series=series,
        y_axis=MISSED,
        published=published,
    )


_DRAWN: Mapping[str, Drawing] = {
    "Figure 4": lambda results, plan, mode: [_loads(results, plan, scenario, mode) for scenario in SHARES],
    "Figure 5": lambda results, _, mode: [_nodes(results, infrastructure, mode) for infrastructure in INFRASTRUCTURES],
    "Figure 6": lambda results, plan, mode: [_shares(results, plan, mode)],
    "Figure 7": _factors(7, "missed_high_priority_pct", "missed high priority (% of all)"),
    "Figure 8": _factors(8, "true_sharing_ratio", "workloads per composition"),
    "Figure 9": _factors(9, "true_composition_size", "devices per composition"),
    "Figure 10": lambda results, plan, mode: [_devices(results, plan, mode)],
    "Figure 11": lambda results, plan, mode: [_mixes(results, plan, mode)],
}
"""Figure of the paper -> function that draws it from the runs that this figure alone needs."""
