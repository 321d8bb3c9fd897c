"""Figures 4 to 7 of the IRoP paper drawn from our runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise.reproductions.irop.claims import IropRuns, View, finite_mean
from poolwise.reproductions.irop.plan import FEW, METHODS, SMALL, THETAS, TIMED, Grid

TIMES = "CPU seconds, which vary from run to run"


def at_size(grid: Grid, runs: IropRuns) -> list[Figure]:
    """Draw Figures 4 to 6, at the paper's size."""
    figures: list[Figure] = []
    shown = (
        ("figure4", "theta", "Total slowdown", "sum of theta", ("cfm",)),
        ("figure4_completion", "completion", "Mean completion ratio", "completion time / requested time", METHODS[1:5]),
        ("figure5", "energy", "Energy", "energy, units of TDP", ("heep", "place")),
        ("figure6", "objective", "Objective", "objective (4a)", METHODS[1:5]),
    )
    for theta, (name, metric, title, label, others) in product(THETAS, shown):
        view = View(grid, runs, theta)
        series, interval = {}, {}
        lines = [("irop", t) for t in grid.tolerances] + [(other, grid.tolerances[-1]) for other in others]
        for method, tolerance in lines:
            values = [finite_mean(view.value(method, metric, tolerance, eta)) for eta in grid.etas]
            line = f"{method}, Delta {tolerance:g}"
            series[line] = [v.value for v in values]
            interval[line] = ([v.low for v in values], [v.high for v in values])
        figures.append(
            Curves(
                name=f"{name}_{theta}",
                title=f"{title}, theta {theta}",
                caption=f"Means of {grid.seeds} seeds with 95 % intervals; 150 workloads on 1200 modules.",
                x=list(grid.etas),
                series=series,
                interval=interval,
                x_axis=Axis("weight of energy, eta"),
                y_axis=Axis(label),
                artifact=f"Figure {name[6]}",
            )
        )
    return [*figures, _reduction(grid, runs)]


def times(grid: Grid, runs: IropRuns) -> list[Figure]:
    """Draw Figure 7: run times at the paper's sizes and at sizes that OPT can solve."""
    figures: list[Figure] = []
    for name, axis, sizes in (
        ("figure7a", "workloads on 30 modules", lambda size: (size, SMALL)),
        ("figure7b", "modules for 30 workloads", lambda size: (SMALL, size)),
    ):
        seconds = {method: [runs[grid.sized(method, sizes(s))]["cpu_s"] for s in grid.sizes] for method in TIMED}
        figures.append(
            Curves(
                name=name,
                title=f"Run time against {axis}",
                caption=f"CPU seconds of one run; OPT stops at {grid.opt_seconds:g} s.",
                x=[float(s) for s in grid.sizes],
                series=seconds,
                x_axis=Axis(axis),
                y_axis=Axis("CPU seconds", log=True),
                artifact="Figure 7",
                varies=TIMES,
            )
        )
    return [*figures, *_few(grid, runs)]


def _reduction(grid: Grid, runs: IropRuns) -> Figure:
    """Draw how much faster IRoP completes workloads than CFM, by accepted slowdown; the paper prints one mean."""
    series, interval = {}, {}
    for theta in THETAS:
        view = View(grid, runs, theta)
        pairs = [(view.value("irop", "completion", t, 0.0), view.value("cfm", "completion", t, 0.0)) for t in grid.tolerances]
        found = [finite_mean(100 * (1 - irop / cfm)) for irop, cfm in pairs]
        series[f"theta {theta}"] = [value.value for value in found]
        interval[f"theta {theta}"] = [value.bounds[0] for value in found], [value.bounds[1] for value in found]
    return Curves(
        name="reduction",
        title="Reduction of the completion ratio against CFM at eta 0",
        caption=f"Means of {grid.seeds} seeds with 95 % intervals. The paper: 12, 5 and 2 % at most, on average and at least.",
        x=list(grid.tolerances),
        series=series,
        interval=interval,
        x_axis=Axis("accepted slowdown, Delta"),
        y_axis=Axis("reduction (%)"),
        target=(5.0, "published mean: 5 %"),
        artifact="Figure 4",
    )


def _few(grid: Grid, runs: IropRuns) -> Iterator[Figure]:
    """Draw the run times at sizes that OPT can solve."""
    for name, axis, varied, sizes in (
        ("figure7a_few", f"workloads on {SMALL} modules", grid.few_workloads, [(n, SMALL) for n in grid.few_workloads]),
        ("figure7b_few", f"modules for {FEW} workloads", grid.few_modules, [(FEW, n) for n in grid.few_modules]),
    ):
        seconds = {
            method: [
                float(np.mean([runs[grid.few(method, size, seed)]["cpu_s"] for seed in range(grid.few_seeds)]))
                for size in sizes
            ]
            for method in TIMED
        }
        yield Curves(
            name=name,
            title=f"Run time against {axis}, where OPT can finish",
            caption=f"CPU seconds, means of {grid.few_seeds} seeds; OPT stops at {grid.patience_s:g} s.",
            x=[float(size) for size in varied],
            series=seconds,
            x_axis=Axis(axis),
            y_axis=Axis("CPU seconds", log=True),
            artifact="Figure 7",
            varies=TIMES,
        )
