"""Figures 4 to 10 of the paper from our runs, and tables to read beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise.exhibits.figure import Axis, Curves, Distribution, Figure
from poolwise.exhibits.table import Table
from poolwise.reproductions.drmaestro.cells import POLICIES, DrMaestroScenario
from poolwise.reproductions.drmaestro.changes import CHANGES
from poolwise.reproductions.drmaestro.claims import NAMES, DrMaestroResults

SHOWN = 200


def draw(results: DrMaestroResults) -> list[Figure]:
    """All figures."""
    return [*_gpus(results), *_normalised(results), *_rounds(results)]


def _name(scenario: DrMaestroScenario) -> str:
    return f"{scenario.machines}x{scenario.jobs}"


def _first(results: DrMaestroResults, scenario: DrMaestroScenario, metric: str) -> dict[str, np.ndarray]:
    """Policy -> a list of seed 0."""
    cases = {c.policy: c for c in results.cases if c.scenario == scenario and not c.seed and not c.change}
    return {NAMES[policy]: np.array(results.cases[cases[policy]][metric], dtype=np.float64) for policy in POLICIES}


def _gpus(results: DrMaestroResults) -> Iterator[Figure]:
    for scenario in results.scenarios():
        grid, used = _first(results, scenario, "grid_s"), _first(results, scenario, "used")
        x = np.linspace(0.0, max(float(times[-1]) for times in grid.values()), SHOWN)
        series = {name: used[name][np.maximum(np.searchsorted(times, x, side="right") - 1, 0)] for name, times in grid.items()}
        yield Curves(
            name=f"gpus_{_name(scenario)}",
            title=f"GPUs in use, {scenario}",
            caption="Seed 0; Figures 4, 5, 7 and 9. The warm-up jobs leave half of the machines no cores at first.",
            x=x.tolist(),
            series={name: values.tolist() for name, values in series.items()},
            x_axis=Axis("time (s)"),
            y_axis=Axis("GPUs in use"),
        )


def _normalised(results: DrMaestroResults) -> Iterator[Figure]:
    for scenario in results.scenarios()[-1:]:
        values = _first(results, scenario, "normalised")
        x = np.linspace(0.0, 1.0, SHOWN)
        yield Curves(
            name=f"normalised_{_name(scenario)}",
            title=f"Execution time over goal, worst to best, {scenario}",
            caption="Seed 0; Figure 10. Above 1 the goal is violated; queueing is excluded.",
            x=(100 * x).tolist(),
            series={name: _along(found, x).tolist() for name, found in values.items()},
            x_axis=Axis("percent of the jobs"),
            y_axis=Axis("execution time / goal"),
        )


def _along(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Values of a list at fractions of its length."""
    return values[np.minimum((x * len(values)).astype(np.int64), len(values) - 1)]


def _rounds(results: DrMaestroResults) -> Iterator[Figure]:
    for scenario in sorted({case.scenario for case in results.rounds}, key=lambda s: (s.machines, s.jobs)):
        of = {case.policy: found for case, found in results.rounds.items() if case.scenario == scenario}
        series = {f"{NAMES[p]}, {what}": 1e3 * np.array(of[p][f"{what}_s"]) for p in of for what in ("total", "solver")}
        yield Distribution(
            name=f"rounds_{_name(scenario)}",
            title=f"Time of a scheduling round, {scenario}",
            caption="CPU time, which varies from run to run; Figures 6 and 8.",
            series=series,
            x_axis=Axis("milliseconds", log=True),
            y_label="share of the rounds",
        )


def tables(results: DrMaestroResults) -> list[Table]:
    """What changes with each assumption."""
    return [
        Table(
            f"Sensitivity: {scenario}",
            (
                "what is assumed otherwise",
                "Firmament / DRMaestro",
                "Firmament / network-aware",
                "violations, plain",
                "network-aware",
            ),
            [_row(results, scenario, change) for change in ("", *CHANGES)],
            "Makespans as ratios, and jobs whose execution takes longer than their goal; means over the seeds.",
        )
        for scenario in results.changed()
    ]


def _row(results: DrMaestroResults, scenario: DrMaestroScenario, change: str) -> list[str]:
    """Means of a change, or without one of the same seeds."""
    n = len(results.seeds(scenario, "firmament", "makespan_s", next(iter(CHANGES))))
    ratios = [float(results.ratio(scenario, "firmament", policy, change=change)[:n].mean()) for policy in POLICIES[1:]]
    counts = [float(results.seeds(scenario, policy, "violations", change)[:n].mean()) for policy in POLICIES[1:]]
    return [change or "nothing", *(f"{r:.3f}" for r in ratios), *(f"{c:.1f}" for c in counts)]
