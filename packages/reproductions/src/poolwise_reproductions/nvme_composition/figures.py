"""Figures 4 to 11 of Call et al. from our runs, the origin of the gap between the policies, and Tables III to V."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from poolwise.presentation.figure import Axis, Bars, Curves, Figure, Panels
from poolwise.presentation.table import Table
from poolwise.traces.generators.nvme_mix import SHARES, MixScenario
from poolwise_reproductions import catalog
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.nvme_composition import plan as nvme
from poolwise_reproductions.nvme_composition.cells import NvmeCase
from poolwise_reproductions.nvme_composition.claims import AWARE, MISSED, NvmeResults, maximized_pct
from poolwise_reproductions.nvme_composition.plan import CELLS, COLUMNS, INFRASTRUCTURES, POLICIES, SHORT, TABLES
from poolwise_reproductions.published import Key
from poolwise_reproductions.results import RunMetric, bands

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
_NAMES = {
    "first_fit": "first fit",
    "disaggregation_aware": "aware",
    "disaggregated": "pooled",
    "physically_attached": "attached",
}
MISSED_AXIS = Axis("missed deadlines (%)", limits=(0, 100))


def published_values() -> dict[Key, float]:
    """Return row key -> published value."""
    return {claim.key: claim.published for claim in read_claims(catalog.find("claims", "nvme-composition.csv"))}


def _curves(
    results: NvmeResults, name: str, title: str, caption: str, x: Sequence[float], label: str,
    lines: Mapping[str, list[NvmeCase]], metric: RunMetric = MISSED, y_axis: Axis = MISSED_AXIS,
) -> Curves:  # fmt: skip
    """Draw the means of a metric along lines of cases, with their intervals."""
    means = {line: [results.mean(case, metric) for case in cases] for line, cases in lines.items()}
    return Curves(name, title, caption, x=list(x), x_axis=Axis(label), y_axis=y_axis, **bands(means))


def _figure(
    results: NvmeResults, number: int, caption: str, x: Sequence[float], label: str, lines: Mapping[str, list[NvmeCase]],
    metric: RunMetric = MISSED, y_axis: Axis = MISSED_AXIS,
) -> Curves:  # fmt: skip
    """Draw a figure of the paper that has one panel."""
    name, title = f"figure{number}-{results.mode}", f"Figure {number} ({results.mode})"
    return replace(_curves(results, name, title, caption, x, label, lines, metric, y_axis), artifact=f"Figure {number}")


def figure_4(results: NvmeResults) -> Iterator[Figure]:
    """Draw the missed deadlines of Tables III to V."""
    values, loads = published_values(), results.plan.loads
    for scenario in SHARES:
        lines, published = {}, {}
        for infrastructure, policy in CELLS:
            line = f"{policy}, {infrastructure}".replace("_", " ")
            lines[line] = [results.at(scenario, load, policy, infrastructure) for load in loads]
            where = [f"{scenario}, load {load}, {infrastructure}, {policy}" for load in loads]
            published[line] = [values[TABLES[scenario], condition, MISSED] for condition in where]
        name, title = f"figure4-{SHORT[scenario]}-{results.mode}", f"Figure 4, {SHORT[scenario]} {scenario} ({results.mode})"
        caption = "Missed deadlines over the ideal load; bands are 95 % intervals over seeds."
        drawn = _curves(results, name, title, caption, loads, "target CPU load", lines)
        yield replace(drawn, published=published, artifact="Figure 4")


def figure_5(results: NvmeResults) -> Iterator[Figure]:
    """Draw the workloads on each node."""
    for infrastructure in INFRASTRUCTURES:
        series = {}
        for scenario in SHARES:
            runs = results.runs(results.at(scenario, 0.7, AWARE, infrastructure))
            counts = [np.array(run["node_nvme"]) + run["node_compute"] for run in runs]
            series[f"{SHORT[scenario]} {scenario}"] = np.mean(counts, axis=0).tolist()
        yield Bars(
            f"figure5-{infrastructure}-{results.mode}",
            f"Figure 5, {infrastructure.replace('_', ' ')} ({results.mode})",
            "Workloads run on each node at load 0.7, disaggregation-aware.",
            artifact="Figure 5",
            groups=[f"node {k}" for k in range(5)],
            series=series,
            y_axis=Axis("workloads"),
        )


def figure_6(results: NvmeResults) -> Iterator[Figure]:
    """Draw the shares of the two algorithms."""
    loads = results.plan.loads
    lines = {f"{SHORT[s]} {s}": [results.at(s, load, AWARE) for load in loads] for s in SHARES}
    caption = "Share of the NVMe workloads that maximize composition places; minimize fragmentation places the rest."
    axis = Axis("placed by maximize composition (%)", limits=(0, 100))
    yield _figure(results, 6, caption, loads, "target CPU load", lines, maximized_pct, axis)


def figures_7_to_9(results: NvmeResults) -> Iterator[Figure]:
    """Draw missed deadlines, sharing and composition sizes over the deadline factor of high priority."""
    factors = results.plan.factors
    lines = _varied(results, lambda case: [replace(case, high_priority_factor=factor) for factor in factors])
    for number, metric, label in (
        (7, "missed_high_priority_pct", "missed high priority (% of all)"),
        (8, "true_sharing_ratio", "workloads per composition"),
        (9, "true_composition_size", "devices per composition"),
    ):
        x, caption = "deadline factor of high priority", "Load 0.7, disaggregated."
        yield _figure(results, number, caption, factors, x, lines, metric, Axis(label, limits=(0, None)))


def figure_10(results: NvmeResults) -> Iterator[Figure]:
    """Draw missed deadlines over the number of devices."""
    counts = results.plan.devices
    caption = "Load 0.7, disaggregated; the demand remains that of ten devices."
    lines = _varied(results, lambda case: [replace(case, devices=count) for count in counts])
    yield _figure(results, 10, caption, counts, "NVMe devices", lines)


def _varied(results: NvmeResults, vary: Callable[[NvmeCase], list[NvmeCase]]) -> dict[str, list[NvmeCase]]:
    """Apply `vary` to the case of each scenario and policy at load 0.7, and return the results."""
    both = product(SHARES, POLICIES)
    return {f"{SHORT[s]} {policy.replace('_', ' ')}": vary(results.at(s, 0.7, policy)) for s, policy in both}


def figure_11(results: NvmeResults) -> Iterator[Figure]:
    """Draw missed deadlines with FIO in the mix."""
    loads = results.plan.loads
    lines = {
        f"{mix} {policy.replace('_', ' ')}": [results.at("high_bandwidth", load, policy, fio=fio) for load in loads]
        for (mix, fio), policy in product(nvme.MIXES.items(), POLICIES)
    }
    caption = "S1 with FIO in place of 100, 70 and 50 % of SMUFIN; disaggregated."
    yield _figure(results, 11, caption, loads, "target CPU load", lines)


def origins(results: NvmeResults) -> Bars:
    """Draw the missed deadlines under each difference of the authors' simulator."""
    values, series, published = published_values(), {}, {}
    loads = [load for load in nvme.STEP_LOADS if load in results.plan.loads]
    for load, (column, policy) in product(loads, enumerate(POLICIES)):
        name = f"{_NAMES[policy]}, {load}"
        series[name] = [results.mean(nvme.step_pair(load, step)[column], MISSED).value for step in nvme.STEPS]
        parity = values["Table III", f"high_bandwidth, load {load}, disaggregated, {policy}", MISSED]
        published[name] = [parity if step == "all six (parity)" else float("nan") for step in nvme.STEPS]
    return Bars(
        "origins",
        "Origin of the published gap",
        "S1, disaggregated, loads 0.7 and 0.8: the text's physics; each difference of the authors' simulator alone (constant "
        "gaps, correlated priorities, frozen residents, base times under first_fit, an ideal machine of all resources, a "
        "seventh sharer); all six (parity), with the published values as marks. late*: late workloads join no composition in "
        "use, which no source states and which was inferred from the published device usage; alone and combined with parity.",
        artifact="Origin of the gap",
        groups=[_LABELS[name] for name in nvme.STEPS],
        series=series,
        y_axis=MISSED_AXIS,
        published=published,
    )


def rates(results: NvmeResults) -> Panels:
    """Draw missed deadlines over the arrival rate around a knee, with the values published for the corresponding load."""
    values, panels = published_values(), []
    for k, sweep in enumerate(results.plan.sweeps):
        where = f"{sweep.scenario}, load {sweep.load}, {sweep.infrastructure}"
        title = f"{SHORT[sweep.scenario]}, load {sweep.load}, {_NAMES[sweep.infrastructure]}"
        lines = {_NAMES[policy]: sweep.cases(policy) for policy in POLICIES}
        drawn = _curves(results, f"rates-{k + 1}", title, "", sweep.gaps_s, "seconds between arrivals", lines)
        printed = {policy: values[TABLES[sweep.scenario], f"{where}, {policy}", MISSED] for policy in POLICIES}
        flat = {f"{_NAMES[policy]}, published": [value] * len(sweep.gaps_s) for policy, value in printed.items()}
        panels.append(replace(drawn, series={**drawn.series, **flat}))
    return Panels(
        "rates",
        "Missed deadlines over the arrival rate around the knee",
        "The text's physics. Each published value comes from one run at a rate that the paper does not state; bands are 95 % "
        "intervals over seeds. The ideal machine reaches load 0.9 at many rates.",
        panels=panels,
        columns=3,
    )


NOTE = (
    "Ours: mean over seeds ± half the width of the 95 % interval. Default: the physics of the text; parity: the physics of the "
    "authors' simulator. Each published value comes from one run."
)
INFERRED_NOTE = (
    " Inferred: parity with two changes that no source states and that were inferred from the published device usage and "
    "composition sizes: workloads past their deadline join no composition in use, and the capacity alone decides equation 4."
)


def tables(results: NvmeResults) -> list[Table]:
    """Return Tables III to V: a published row for each load, with ours under it."""
    columns = ["load, NVMe, policy", "values", *(heading for heading, _ in COLUMNS.values())]
    notes = {scenario: NOTE + (INFERRED_NOTE if scenario == "high_bandwidth" else "") for scenario in TABLES}
    return [
        Table(f"{name}: {scenario.replace('_', ' ')}", columns, list(_rows(results, scenario)), notes[scenario])
        for scenario, name in TABLES.items()
    ]


def _rows(results: NvmeResults, scenario: MixScenario) -> Iterator[list[str]]:
    published = published_values()
    for load, (infrastructure, policy) in product(results.plan.loads, CELLS):
        key = TABLES[scenario], f"{scenario}, load {load}, {infrastructure}, {policy}"
        words = f"{load} {_NAMES[infrastructure]}, {_NAMES[policy]}"
        yield [words, "published", *(f"{published[(*key, m)]:.{d}f}" for m, (_, d) in COLUMNS.items())]
        for source in nvme.SOURCES:
            case = nvme.base(scenario, load, policy, infrastructure, source)
            if results.runs(case):
                yield ["", source, *(_cell(results.mean(case, m), d) for m, (_, d) in COLUMNS.items())]


def _cell(measured: Measured, decimals: int) -> str:
    half = "" if measured.runs < 2 else f" ±{measured.high - measured.value:.{decimals}f}"
    return f"{measured.value:.{decimals}f}{half}"
