"""Figures 4 to 7 of the paper from our runs."""

from __future__ import annotations

from itertools import product

from poolwise.exhibits.figure import Axis, Curves, Figure
from poolwise.reproductions.irop.claims import IropRuns, View, mean
from poolwise.reproductions.irop.plan import METHODS, SMALL, THETAS, TIMED, Grid


def draw(grid: Grid, runs: IropRuns) -> list[Figure]:
    """All figures, in the order of the paper."""
    figures: list[Figure] = []
    shown = (
        ("figure4", "theta", "Total slowdown", "sum of theta", ("cfm",)),
        ("figure4_completion", "completion", "Mean completion ratio", "completion time / as asked for", METHODS[1:5]),
        ("figure5", "energy", "Energy", "energy, units of TDP", ("heep", "place")),
        ("figure6", "objective", "Objective", "objective (4a)", METHODS[1:5]),
    )
    for theta, (name, metric, title, label, others) in product(THETAS, shown):
        view = View(grid, runs, theta)
        series, interval = {}, {}
        lines = [("irop", t) for t in grid.tolerances] + [(other, grid.tolerances[-1]) for other in others]
        for method, tolerance in lines:
            values = [mean(view.value(method, metric, tolerance, eta)) for eta in grid.etas]
            label_ = f"{method}, Delta {tolerance:g}"
            series[label_] = [v.value for v in values]
            interval[label_] = ([v.low for v in values], [v.high for v in values])
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
            )
        )
    for name, what, sizes in (
        ("figure7a", "workloads on 30 modules", lambda size: (size, SMALL)),
        ("figure7b", "modules for 30 workloads", lambda size: (SMALL, size)),
    ):
        times = {method: [runs[grid.sized(method, sizes(s))]["cpu_s"] for s in grid.sizes] for method in TIMED}
        figures.append(
            Curves(
                name=name,
                title=f"Run time against {what}",
                caption=f"CPU seconds of one run; OPT ends at {grid.opt_seconds:g} s.",
                x=[float(s) for s in grid.sizes],
                series=times,
                x_axis=Axis(what),
                y_axis=Axis("CPU seconds", log=True),
            )
        )
    return figures
