"""Tables III to V of Call et al. with our values under each published row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poolwise import catalog
from poolwise.comparison.published import Key, read_claims
from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.table import Table
from poolwise.reproductions.nvme_composition.plan import INFRASTRUCTURES, POLICIES, SOURCES, TABLES, NvmePlan, NvmeResults, base
from poolwise.traces.generators.nvme_mix import MixScenario

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
"""Metric -> its heading and the number of decimals that the paper prints."""
_SHORT = {
    "disaggregated": "pooled",
    "physically_attached": "attached",
    "first_fit": "first fit",
    "disaggregation_aware": "aware",
}
NOTE = (
    "Ours: mean over seeds ± half the width of the 95 % interval. Default: the physics of the text; parity: the physics of the "
    "authors' simulator. Each published value comes from one run."
)
INFERRED_NOTE = (
    " Inferred: parity with two changes that no source states and that were inferred from the published device usage and "
    "composition sizes: workloads past their deadline join no composition in use, and the capacity alone decides equation 4."
)


def tables(results: NvmeResults, plan: NvmePlan) -> list[Table]:
    """Return one table per scenario: a published row for each load, with ours under it."""
    published = published_values()
    columns = ["load, NVMe, policy", "values", *(heading for heading, _ in COLUMNS.values())]
    return [
        Table(
            f"{name}: {scenario.replace('_', ' ')}",
            columns,
            list(_rows(results, plan, scenario, published)),
            NOTE + (INFERRED_NOTE if scenario == "high_bandwidth" else ""),
        )
        for scenario, name in TABLES.items()
    ]


def published_values() -> dict[Key, float]:
    """Return every published value by its row."""
    return {claim.key: claim.published for claim in read_claims(catalog.find("reproductions", "nvme-composition.csv"))}


def _rows(results: NvmeResults, plan: NvmePlan, scenario: MixScenario, published: Mapping[Key, float]) -> Iterator[list[str]]:
    for load in plan.loads:
        for infrastructure in INFRASTRUCTURES:
            for policy in POLICIES:
                where = f"{load}, {infrastructure}, {policy}"
                key = TABLES[scenario], f"{scenario}, load {where}"
                words = f"{load} {_SHORT[infrastructure]}, {_SHORT[policy]}"
                yield [words, "published", *(f"{published[(*key, m)]:.{d}f}" for m, (_, d) in COLUMNS.items())]
                for source in SOURCES:
                    case = base(scenario, load, policy, infrastructure, source)
                    if results.runs(case):
                        yield ["", source, *(_cell(results.values(case, m), d) for m, (_, d) in COLUMNS.items())]


def _cell(values: list[float], decimals: int) -> str:
    found = mean_interval(values)
    half = "" if found.n < 2 else f" ±{found.high - found.mean:.{decimals}f}"
    return f"{found.mean:.{decimals}f}{half}"
