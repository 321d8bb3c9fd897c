"""Measured values of the claims of Call et al.: published tables, statements read off figures, origins of the gap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.reproductions.nvme_composition.cells import Infrastructure, NvmeCase, NvmeLoad, NvmePolicy
from poolwise.reproductions.nvme_composition.plan import (
    FASTER,
    FASTER_S,
    INFRASTRUCTURES,
    LOADS,
    MIXES,
    POLICIES,
    STEP_LOADS,
    STEPS,
    TABLES,
    NvmeResults,
    averaged,
    base,
    mixed,
)
from poolwise.reproductions.nvme_composition.tables import COLUMNS
from poolwise.traces.generators.nvme_mix import SHARES

KeyedRow = tuple[Key, Measured | None]
AWARE: NvmePolicy = "disaggregation_aware"
LEAD = "first_fit less disaggregation_aware"
MISSED = "missed_deadlines_pct"
LEAST = 1.0
"""Percent of missed deadlines below which a relative reduction is meaningless."""


def claim_rows(results: NvmeResults, mode: str = "default") -> Iterable[KeyedRow]:
    """Yield every row of the claims file under a physics, with None where it was not measured."""
    yield from _values(results, mode)
    yield from _orders(results, mode)
    yield from _figures(results, mode)
    yield from _gaps(results, mode)
    yield from _abstract(results, mode)
    if mode == "default":
        yield from _steps(results)


def _values(results: NvmeResults, mode: str) -> Iterable[KeyedRow]:
    """Yield the cells of Tables III to V."""
    for scenario, table in TABLES.items():
        for load in LOADS:
            for infrastructure in INFRASTRUCTURES:
                for policy in POLICIES:
                    case = base(scenario, load, policy, infrastructure, mode)
                    condition = f"{scenario}, load {load}, {infrastructure}, {policy}"
                    for metric in (*COLUMNS, "true_composition_size", "true_sharing_ratio"):
                        yield (table, condition, metric), results.measured((1, case), metric=metric)


def _orders(results: NvmeResults, mode: str) -> Iterable[KeyedRow]:
    """Yield the differences in missed deadlines between infrastructures and between policies."""
    for policy in POLICIES:
        for load in LOADS[1:]:
            pooled, attached = (base("high_bandwidth", load, policy, i, mode) for i in INFRASTRUCTURES)
            condition = f"high_bandwidth, load {load}, {policy}"
            found = results.measured((1, attached), (-1, pooled), metric=MISSED)
            yield ("Table III", condition, "attached less disaggregated"), found
    for scenario, table in TABLES.items():
        for load in LOADS:
            condition = f"{scenario}, load {load}, disaggregated"
            yield (table, condition, LEAD), _lead(results, [base(scenario, load, p, mode=mode) for p in POLICIES])


def _figures(results: NvmeResults, mode: str) -> Iterable[KeyedRow]:
    """Yield the node, placement, sharing and composition statements of Figures 5, 6, 8 and 9."""
    for infrastructure in INFRASTRUCTURES:
        case = base("high_bandwidth", 0.7, AWARE, infrastructure, mode)
        placed = [np.array(run["node_nvme"]) for run in results.runs(case)]
        condition = f"high_bandwidth, load 0.7, {infrastructure}"
        if infrastructure == "disaggregated":
            least = [100 * float(nodes.min() / nodes.sum()) for nodes in placed]
            yield ("Figure 5", condition, "least share of NVMe workloads on a node"), averaged(least)
        else:
            outside = [100 * float(np.delete(nodes, [0, 2]).sum() / nodes.sum()) for nodes in placed]
            yield ("Figure 5", condition, "NVMe workloads outside nodes 0 and 2"), averaged(outside)
    for scenario in SHARES:
        for load in LOADS:
            share = maximized_pct(results, base(scenario, load, AWARE, mode=mode))
            yield ("Figure 6", f"{scenario}, load {load}", "placed by maximize composition"), averaged(share)
        for name, metric in (("Figure 8", "sharing_ratio"), ("Figure 9", "composition_size")):
            above = [value - 1 for value in results.values(base(scenario, 0.7, AWARE, mode=mode), f"true_{metric}")]
            yield (name, f"{scenario}, load 0.7", f"{metric} above 1"), averaged(above)


def _gaps(results: NvmeResults, mode: str) -> Iterable[KeyedRow]:
    """Yield how many more deadlines first_fit misses (Figures 7, 10, 11)."""
    for scenario in SHARES:
        for factor in (1.0, 1.2, 1.5, 2.0):
            pair = [base(scenario, 0.7, p, mode=mode, high_priority_factor=factor) for p in POLICIES]
            found = _lead(results, pair, metric="missed_high_priority_pct")
            yield ("Figure 7", f"{scenario}, factor {factor}", LEAD), found
        for count in (2, 6, 10):
            pair = [base(scenario, 0.7, p, mode=mode, devices=count) for p in POLICIES]
            yield ("Figure 10", f"{scenario}, {count} devices", LEAD), _lead(results, pair)
    for mix, fio in MIXES.items():
        for load in (0.7, 0.8, 0.9):
            pair = [mixed(load, fio, p, mode) for p in POLICIES]
            yield ("Figure 11", f"{mix}, load {load}", LEAD), _lead(results, pair)


def _abstract(results: NvmeResults, mode: str) -> Iterable[KeyedRow]:
    """Yield the "up to" statements of the abstract and the conclusion: the cell with the greatest mean."""

    def at(load: float, policy: NvmePolicy, where: Infrastructure = "disaggregated") -> NvmeCase:
        return base("high_bandwidth", load, policy, where, mode)

    pooled = [_difference(results, at(load, p, "physically_attached"), at(load, p)) for load in LOADS for p in POLICIES]
    yield ("Abstract", "high_bandwidth", "greatest fall of missed deadlines by pooling"), _greatest(pooled)
    falls = [_fall(results, at(load, "first_fit"), at(load, AWARE)) for load in LOADS]
    name = "greatest fall of missed deadlines by disaggregation_aware against first_fit"
    yield ("Abstract", "high_bandwidth", name), _greatest(falls)
    shared = [results.measured((1, at(load, AWARE)), metric="true_sharing_ratio") for load in LOADS]
    yield ("Abstract", "high_bandwidth", "greatest sharing ratio of disaggregation_aware"), _greatest(shared)


def _difference(results: NvmeResults, above: NvmeCase, below: NvmeCase) -> Measured | None:
    return results.measured((1, above), (-1, below), metric=MISSED)


def _fall(results: NvmeResults, before: NvmeCase, after: NvmeCase) -> Measured | None:
    """Return the percentage by which a share falls, from means over seeds; None if it is below `LEAST` before."""
    old, new = results.mean(before, MISSED), results.mean(after, MISSED)
    return Measured(100 * (1 - new / old)) if old >= LEAST else None


def _greatest(found: Iterable[Measured | None]) -> Measured | None:
    return max((value for value in found if value is not None), key=lambda value: value.value, default=None)


def _steps(results: NvmeResults) -> Iterable[KeyedRow]:
    """Yield the missed deadlines and the gap between the policies under each difference of the authors' simulator alone."""
    for load in STEP_LOADS:
        for name, physics in STEPS.items():
            first, aware = (NvmeCase(NvmeLoad("high_bandwidth", load, 0, physics=physics), policy) for policy in POLICIES)
            condition = f"high_bandwidth, load {load}, disaggregated, {name}"
            yield ("Origin of the gap", condition, "first_fit"), results.measured((1, first), metric=MISSED)
            yield ("Origin of the gap", condition, AWARE), results.measured((1, aware), metric=MISSED)
            yield ("Origin of the gap", condition, LEAD), _lead(results, (first, aware))


def switches(results: NvmeResults) -> dict[str, dict[Key, Measured]]:
    """Return switch -> claim -> measurement with that switch alone, for the claims that each switch affects."""
    faster = f"one arrival in {FASTER_S:g} s"
    found: dict[str, dict[Key, Measured | None]] = {faster: {}, "first_fit at load 0.6 alone": {}, "ratios rounded down": {}}
    for (scenario, infrastructure, policy), case in FASTER.items():
        condition = f"{scenario}, load 0.9, {infrastructure}, {policy}"
        for metric in COLUMNS:
            found[faster][TABLES[scenario], condition, metric] = results.measured((1, case), metric=metric)
    attached, pooled = (base("high_bandwidth", 0.6, "first_fit", i) for i in ("physically_attached", "disaggregated"))
    fall = "greatest fall of missed deadlines by pooling"
    found["first_fit at load 0.6 alone"]["Abstract", "high_bandwidth", fall] = _difference(results, attached, pooled)
    shared = [results.measured((1, base("high_bandwidth", load, AWARE)), metric="sharing_ratio") for load in LOADS]
    ratio = "greatest sharing ratio of disaggregation_aware"
    found["ratios rounded down"]["Abstract", "high_bandwidth", ratio] = _greatest(shared)
    return {name: {key: value for key, value in items.items() if value is not None} for name, items in found.items()}


def _lead(results: NvmeResults, pair: Iterable[NvmeCase], metric: str = MISSED) -> Measured | None:
    first, aware = pair
    return results.measured((1, first), (-1, aware), metric=metric)


def maximized_pct(results: NvmeResults, case: NvmeCase) -> list[float]:
    """Return the percentages of NVMe workloads that maximize composition placed, one per seed."""
    return [100 * run["maximized"] / max(run["maximized"] + run["minimized"], 1) for run in results.runs(case)]
