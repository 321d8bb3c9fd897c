"""Figures 4 to 10 of the DRMaestro paper drawn from our runs, and the sensitivity tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from poolwise.presentation.figure import Axis, Bars, Curves, Distribution, Figure
from poolwise.presentation.table import Table
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.drmaestro.cells import BEYOND, OUR_PHASE, POLICIES, SCENARIOS, DrMaestroCase, DrMaestroScenario
from poolwise_reproductions.drmaestro.changes import CHANGES
from poolwise_reproductions.drmaestro.claims import GPUS_IN, NAMES, SPEEDUP, DrMaestroResults, rounds_figure

SHOWN = 200
VIOLATED = dict(zip(SCENARIOS, ((106, 117, 112), (445, 463, 431), (377, 382, 272), (2160, 1310, 818)), strict=True))
"""Published numbers of jobs that violate their goals (Tables 3 and 5), in the order of `POLICIES`."""


def makespans(results: DrMaestroResults) -> Iterator[Figure]:
    """Draw the makespan ratios of Tables 2 and 4 under the paper's first phase and under ours."""
    shown = results.scenarios()
    series, published = {}, {}
    phases = {"the paper's first phase": "", OUR_PHASE: OUR_PHASE}
    for (column, policy), (words, variant) in product(enumerate(POLICIES[1:]), phases.items()):
        ratios = [results.ratio(s, "firmament", policy, variant=variant) for s in shown]
        series[f"{NAMES[policy]}, {words}"] = [Measured.over_seeds(values).value for values in ratios]
        published[f"{NAMES[policy]}, {words}"] = [SPEEDUP[s][column] for s in shown]
    yield Bars(
        name="makespans",
        title="Makespan of Firmament over the makespans of DRMaestro and its network-aware policy",
        caption="Means over the seeds; marks are the published ratios.",
        groups=[str(s) for s in shown],
        series=series,
        published=published,
        y_axis=Axis("makespan of Firmament / of the policy"),
    )


def violations(results: DrMaestroResults) -> Iterator[Figure]:
    """Draw how many jobs exceed multiples of their goals, since the paper does not define which violations it counts."""
    for s in results.scenarios():
        table = "Table 3" if s.machines == 4 else "Table 5"
        counts = {
            NAMES[p]: [Measured.over_seeds(results.seeds(s, p, f"beyond:{k}")).value for k in range(len(BEYOND))]
            for p in POLICIES
        }
        printed = dict(zip(counts, VIOLATED[s], strict=True))
        printed_counts = ", ".join(f"{name} {count}" for name, count in printed.items())
        yield Curves(
            name=f"violations_{_name(s)}",
            title=f"Jobs that take longer from submission to end than a multiple of their goal, {s}",
            caption=f"Means over the seeds. {table} prints one count per policy without defining it: {printed_counts}.",
            x=list(BEYOND),
            series=counts,
            published={name: [float(count)] * len(BEYOND) for name, count in printed.items()},
            x_axis=Axis("multiple of the goal"),
            y_axis=Axis("jobs"),
            artifact=table,
        )


def _name(scenario: DrMaestroScenario) -> str:
    return f"{scenario.machines}x{scenario.jobs}"


def _first(results: DrMaestroResults, scenario: DrMaestroScenario, metric: str) -> dict[str, np.ndarray]:
    """Return policy -> values of a list-valued metric, with seed 0."""
    cases = {policy: DrMaestroCase(scenario, policy, 0) for policy in POLICIES}
    return {NAMES[policy]: np.array(results.cases[case][metric], dtype=np.float64) for policy, case in cases.items()}


def gpus(results: DrMaestroResults, scenario: DrMaestroScenario) -> Iterator[Figure]:
    """Draw Figure 4, 5, 7 or 9."""
    if scenario in results.scenarios():
        grid, used = _first(results, scenario, "grid_s"), _first(results, scenario, "used")
        x = np.linspace(0.0, max(float(times[-1]) for times in grid.values()), SHOWN)
        series = {name: used[name][np.maximum(np.searchsorted(times, x, side="right") - 1, 0)] for name, times in grid.items()}
        yield Curves(
            name=f"gpus_{_name(scenario)}",
            title=f"GPUs in use, {scenario}",
            caption="Seed 0. At first the warm-up jobs occupy all cores of half of the machines.",
            x=x.tolist(),
            series={name: values.tolist() for name, values in series.items()},
            x_axis=Axis("time (s)"),
            y_axis=Axis("GPUs in use"),
            artifact=GPUS_IN[scenario],
        )


def normalized(results: DrMaestroResults) -> Iterator[Figure]:
    """Draw Figure 10."""
    for scenario in results.scenarios()[-1:]:
        x = np.linspace(0.0, 1.0, SHOWN)
        sorted_ = _first(results, scenario, "normalised").items()
        yield Curves(
            name=f"normalised_{_name(scenario)}",
            title=f"Execution time over goal, worst to best, {scenario}",
            caption="Seed 0. Above 1 the goal is violated; queueing is excluded.",
            x=(100 * x).tolist(),
            series={name: v[np.minimum((x * len(v)).astype(np.int64), len(v) - 1)].tolist() for name, v in sorted_},
            x_axis=Axis("percent of the jobs"),
            y_axis=Axis("execution time / goal"),
            artifact="Figure 10",
        )


def rounds(results: DrMaestroResults) -> Iterator[Figure]:
    """Draw Figures 6 and 8."""
    for scenario, of in results.timed().items():
        yield Distribution(
            name=f"rounds_{_name(scenario)}",
            title=f"Time of a scheduling round, {scenario}",
            caption="A round every 5 s and at no other time. CPU time, which varies from run to run.",
            series={f"{NAMES[p]}, {what}": 1e3 * np.array(of[p][f"{what}_s"]) for p in of for what in ("total", "solver")},
            x_axis=Axis("milliseconds", log=True),
            y_label="share of the rounds",
            artifact=rounds_figure(scenario),
            varies="CPU times",
        )


def tables(results: DrMaestroResults) -> list[Table]:
    """Return the tables of makespan ratios and violations under each changed assumption."""
    header = ("changed assumption", "Firmament / DRMaestro", "Firmament / network-aware", "violations, plain", "network-aware")
    note = "Makespan ratios, and number of jobs whose execution takes longer than their goal; means over the seeds."
    return [
        Table(f"Sensitivity: {s}", header, [_row(results, s, change) for change in ("", *CHANGES)], note)
        for s in results.changed()
    ]


def _row(results: DrMaestroResults, scenario: DrMaestroScenario, change: str) -> list[str]:
    """Return the means over the same seeds, with a change or without one."""
    n = len(results.seeds(scenario, "firmament", "makespan_s", next(iter(CHANGES))))
    ratios = [float(results.ratio(scenario, "firmament", policy, change=change)[:n].mean()) for policy in POLICIES[1:]]
    counts = [float(results.seeds(scenario, policy, "violations", change)[:n].mean()) for policy in POLICIES[1:]]
    return [change or "none", *(f"{r:.3f}" for r in ratios), *(f"{c:.1f}" for c in counts)]
