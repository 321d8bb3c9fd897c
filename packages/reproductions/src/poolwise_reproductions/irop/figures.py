"""Figures 4 to 7 of the IRoP paper drawn from our runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise_reproductions.irop.claims import IropRuns, View, finite_mean, substitutes
from poolwise_reproductions.irop.plan import FEW, METHODS, PRIMARY, SMALL, THETAS, TIMED, Grid
from poolwise_reproductions.irop.runs import IropCase
from poolwise_reproductions.results import bands


def at_size(grid: Grid, runs: IropRuns) -> Iterator[Figure]:
    """Draw Figures 4 to 6 at the paper's size, and how much faster IRoP completes workloads than CFM."""
    for theta, (name, metric, title, label, others) in product(
        THETAS,
        (
            ("figure4", "theta", "Total slowdown", "sum of theta", ("cfm",)),
            ("figure4_completion", "completion", "Mean completion ratio", "completion time / requested time", METHODS[1:5]),
            ("figure5", "energy", "Energy", "energy, units of TDP", ("heep", "place")),
            ("figure6", "objective", "Objective", "objective (4a)", METHODS[1:5]),
        ),
    ):
        by_module = "; HEEP sorts modules by the energy of the whole module" if theta == PRIMARY and "heep" in others else ""
        view, lines, seeds = View(grid, runs, theta, substitutes=substitutes(theta)), {}, len(grid.seeds_of(theta))
        for method, tolerance in [("irop", t) for t in grid.tolerances] + [(other, grid.tolerances[-1]) for other in others]:
            values = [finite_mean(view.value(method, metric, tolerance, eta)) for eta in grid.etas]
            lines[f"{method}, Delta {tolerance:g}"] = values
        yield Curves(
            name=f"{name}_{theta}",
            title=f"{title}, theta {theta}",
            caption=f"Means of {seeds} seeds with 95 % intervals; 150 workloads on 1200 modules{by_module}.",
            x=list(grid.etas),
            x_axis=Axis("weight of energy, eta"),
            y_axis=Axis(label, limits=(0 if metric in ("completion", "energy") else None, None)),
            artifact=f"Figure {name[6]}",
            **bands(lines),
        )
    lines = {}
    for theta in THETAS:
        view = View(grid, runs, theta)
        lines[f"theta {theta}"] = [finite_mean(view.reduction("completion", "irop", "cfm", t, 0.0)) for t in grid.tolerances]
    both = " and ".join(f"{len(grid.seeds_of(theta))} seeds (theta {theta})" for theta in THETAS)
    yield Curves(
        name="reduction",
        title="Reduction of the completion ratio against CFM at eta 0",
        caption=f"Means of {both} with 95 % intervals. The paper: 12 % (maximum), 5 % (mean) and 2 % (minimum).",
        x=list(grid.tolerances),
        x_axis=Axis("accepted slowdown, Delta"),
        y_axis=Axis("reduction (%)"),
        target=(5.0, "published mean: 5 %"),
        artifact="Figure 4",
        **bands(lines),
    )


def times(grid: Grid, runs: IropRuns) -> Iterator[Figure]:
    """Draw Figure 7: run times at the paper's sizes and at sizes that OPT can solve."""

    def once(method: str, size: tuple[int, int]) -> list[IropCase]:
        return [grid.sized(method, size)]

    def seeded(method: str, size: tuple[int, int]) -> list[IropCase]:
        return [grid.few(method, size, seed) for seed in range(grid.few_seeds)]

    solvable = ", where OPT can finish"
    for name, axis, where, cases, sizes in (
        ("figure7a", "workloads on 30 modules", "", once, {n: (n, SMALL) for n in grid.sizes}),
        ("figure7b", "modules for 30 workloads", "", once, {n: (SMALL, n) for n in grid.sizes}),
        ("figure7a_few", f"workloads on {SMALL} modules", solvable, seeded, {n: (n, SMALL) for n in grid.few_workloads}),
        ("figure7b_few", f"modules for {FEW} workloads", solvable, seeded, {n: (FEW, n) for n in grid.few_modules}),
    ):
        many, limit = (f", means of {grid.few_seeds} seeds", grid.patience_s) if where else (" of one run", grid.opt_seconds)
        seconds = {m: [[runs[case]["cpu_s"] for case in cases(m, size)] for size in sizes.values()] for m in TIMED}
        yield Curves(
            name=name,
            title=f"Run time against {axis}{where}",
            caption=f"CPU seconds{many}; OPT stops at {limit:g} s.",
            x=[float(size) for size in sizes],
            series={method: [float(np.mean(each)) for each in line] for method, line in seconds.items()},
            x_axis=Axis(axis),
            y_axis=Axis("CPU seconds", log=True),
            artifact="Figure 7",
            varies="CPU seconds, which vary from run to run",
        )
