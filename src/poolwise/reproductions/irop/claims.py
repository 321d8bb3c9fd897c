"""Measured values of the claims of the IRoP paper, one function per figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from poolwise.batch.problem.definition import Theta
from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.metrics.intervals import mean_interval
from poolwise.reproductions.irop.plan import FEW, SMALL, TIMED, Grid, case
from poolwise.reproductions.irop.runs import IropCase

IropRuns = Mapping[IropCase, dict[str, Any]]
SHORTEST_S = 1e-3
"""CPU seconds to which shorter times are rounded up."""


@dataclass(frozen=True)
class View:
    """Runs under one reading of theta; `substitutes` maps a method to the one whose runs replace it."""

    grid: Grid
    runs: IropRuns
    theta: Theta
    substitutes: Mapping[str, str] = field(default_factory=dict)

    def value(self, method: str, metric: str, tolerance: float, eta: float) -> np.ndarray:
        """Return (n_seed,) values of a metric."""
        method = self.substitutes.get(method, method)
        cases = (case(method, self.theta, eta, tolerance, seed) for seed in range(self.grid.seeds))
        return np.array([self.runs[c].get(metric, math.nan) for c in cases], dtype=np.float64)

    def points(self) -> list[tuple[float, float]]:
        """Return all pairs (Delta, eta)."""
        return list(product(self.grid.tolerances, self.grid.etas))

    def margin(self, metric: str, one: str, other: str, points: Iterable[tuple[float, float]]) -> np.ndarray:
        """Return (n_point, n_seed) differences: the metric of `one` less that of `other`."""
        return np.array([self.value(one, metric, *p) - self.value(other, metric, *p) for p in points])


def finite_mean(values: np.ndarray, note: str = "") -> Measured:
    """Return the mean of the finite values, one per seed, with its interval by Student's t."""
    found = mean_interval(values[np.isfinite(values)])
    return Measured(found.mean, found.low, found.high, note)


def factor(values: np.ndarray) -> Measured:
    """Return the geometric mean of factors, one per seed, with its interval by Student's t over the logarithms."""
    found = finite_mean(np.log(values))
    return Measured(math.exp(found.value), math.exp(found.low), math.exp(found.high))


def extremes_and_mean(artifact: str, condition: str, metric: str, values: np.ndarray) -> dict[Key, Measured]:
    """Return the greatest, mean and least of all values as three rows."""
    return {
        (artifact, condition, f"greatest {metric}"): Measured(float(values.max())),
        (artifact, condition, f"mean {metric}"): finite_mean(values),
        (artifact, condition, f"least {metric}"): Measured(float(values.min())),
    }


def slowdown(view: View, pooled: bool = False) -> dict[Key, Measured]:
    """Measure Figure 4; with `pooled` only the rows over all accepted slowdowns together."""
    grid, theta = view.grid, view.theta
    pairs = [(view.value("irop", "completion", t, 0.0), view.value("cfm", "completion", t, 0.0)) for t in grid.tolerances]
    reduction = np.concatenate([100 * (1 - irop / cfm) for irop, cfm in pairs])
    found = extremes_and_mean("Figure 4", f"eta 0, theta {theta}", "reduction of the completion ratio against CFM", reduction)
    if pooled:
        return found
    for tolerance, (irop, cfm) in zip(grid.tolerances, pairs, strict=True):
        key = f"eta 0, Delta {tolerance:.2f}, theta {theta}"
        found["Figure 4", key, "mean reduction of the completion ratio against CFM"] = finite_mean(100 * (1 - irop / cfm))
    rise = np.mean([view.value("irop", "theta", t, 1.0) - view.value("irop", "theta", t, 0.0) for t in grid.tolerances], axis=0)
    found["Figure 4", f"theta {theta}", "sum theta at eta 1 less at eta 0"] = finite_mean(rise)
    late = [(0.25, eta) for eta in grid.etas if eta > 0.3]
    above = view.margin("completion", "irop", "cfm", late).mean(axis=0)
    key = f"Delta 0.25, eta above 0.3, theta {theta}"
    found["Figure 4", key, "completion ratio of IRoP less that of CFM"] = finite_mean(above)
    return found


def energy(view: View) -> dict[Key, Measured]:
    """Measure Figure 5."""
    grid, theta = view.grid, view.theta
    fall = [view.value("irop", "energy", 0.05, eta) - view.value("irop", "energy", 0.25, eta) for eta in grid.etas]
    found = {("Figure 5", f"theta {theta}", "energy at Delta 0.05 less at Delta 0.25"): finite_mean(np.mean(fall, axis=0))}
    pair = view.value("irop", "energy", 0.25, 1.0), view.value("heep", "energy", 0.25, 1.0)
    found |= extremes_and_mean(
        "Figure 5", f"Delta above 0.20, eta 1, theta {theta}", "reduction of energy against HEEP", 100 * (1 - pair[0] / pair[1])
    )
    heep = view.value("heep", "theta", 0.25, 1.0) / 150
    return found | {("Figure 5", f"Delta 0.25, theta {theta}", "mean theta of HEEP"): finite_mean(heep)}


def objective(view: View) -> dict[Key, Measured]:
    """Measure Figure 6."""
    theta, points = view.theta, view.points()
    least = min(float((-view.margin("objective", "irop", other, points)).mean(axis=1).min()) for other in ("first-fit", "cfm"))
    below = (view.margin("objective", "irop", "heep", points).mean(axis=1) < 0).mean() - 0.5
    strict = [(0.05, eta) for eta in view.grid.etas if eta >= 0.7]
    above = view.margin("objective", "irop", "heep", strict).mean(axis=0)
    half = "share of eta and Delta where IRoP's objective is below HEEP's, less one half"
    return {
        ("Figure 6", f"theta {theta}", "least margin of IRoP's objective to first fit and CFM"): Measured(least),
        ("Figure 6", f"theta {theta}", half): Measured(float(below)),
        ("Figure 6", f"Delta 0.05, eta from 0.7, theta {theta}", "objective of IRoP less that of HEEP"): finite_mean(above),
    }


def optimum(view: View) -> dict[Key, Measured]:
    """Measure the comparison of Figure 7 with OPT."""
    condition = f"30 x 30, theta {view.theta}"
    return {
        ("Figure 7", condition, "slowdown of IRoP above OPT"): above_optimum(view, "irop", "completion"),
        ("Figure 7", condition, "energy of IRoP above OPT"): above_optimum(view, "irop", "energy"),
    }


def longest(view: View) -> dict[Key, Measured]:
    """Measure how far the longest run of IRoP at the paper's size stays below 30 s."""
    seconds = max(float(view.value("irop", "cpu_s", *point).max()) for point in view.points())
    key = "Section V-B", f"150 x 1200, theta {view.theta}", "30 s less the longest run of IRoP"
    return {key: Measured(30 - seconds)}


def above_optimum(view: View, method: str, metric: str) -> Measured:
    """Return the percentage by which a metric exceeds that of the optimum (for theta: points of its mean), mean over seeds."""
    found, gaps = [], []
    for seed in range(view.grid.small_seeds):
        run, opt, place = (view.runs[view.grid.small(name, view.theta, seed)] for name in (method, "opt", "place"))
        solved = [each for each in (opt, place) if "objective" in each]
        best = min(solved, key=lambda each: float(each["objective"]))
        bound = max(float(each["bound"]) for each in solved if each["bound"] is not None)
        gaps.append(100 * (best["objective"] - bound) / abs(bound))
        found.append(100 * ((run[metric] - best[metric]) / SMALL if metric == "theta" else run[metric] / best[metric] - 1))
    return finite_mean(np.array(found), f"the optimum is the better of OPT and place, proven within {max(gaps):.2g} %")


def our_rows(view: View) -> dict[Key, Measured]:
    """Measure the margin of our method `place`, and the workloads beyond their accepted slowdown under CFM and first fit."""
    found: dict[Key, Measured] = {}
    points, condition = view.points(), f"theta {view.theta}"
    for other, name in (("irop", "IRoP"), ("heep", "HEEP"), ("cfm", "CFM"), ("first-fit", "first fit")):
        margin = view.margin("objective", other, "place", points)
        found["Ours", condition, f"least margin of place to {name}"] = Measured(float(margin.min()))
    for method, name in (("cfm", "CFM"), ("first-fit", "first fit")):
        broken = np.concatenate([view.value(method, "violations", *p) for p in points]) / 1.5
        found["Ours", condition, f"workloads beyond their accepted slowdown under {name}"] = finite_mean(broken)
    return found


def runtime(grid: Grid, runs: IropRuns) -> dict[Key, Measured]:
    """Measure the growth of the times of OPT and IRoP with the size, at the paper's sizes and at sizes that OPT can solve."""
    metric = "growth of OPT's time over growth of IRoP's"
    ends = grid.sizes[0], SMALL
    found = {
        ("Figure 7", "workloads 15 to 30 on 30 modules", metric): Measured(
            _growth([runs[grid.sized(method, (size, SMALL))] for method in TIMED for size in ends])
        ),
        ("Figure 7", "modules 15 to 30 with 30 workloads", metric): Measured(
            _growth([runs[grid.sized(method, (SMALL, size))] for method in TIMED for size in ends])
        ),
    }
    few = (
        (f"workloads {grid.few_workloads[0]} to {grid.few_workloads[-1]} on {SMALL} modules", grid.few_workloads, False),
        (f"modules {grid.few_modules[0]} to {grid.few_modules[-1]} with {FEW} workloads", grid.few_modules, True),
    )
    for condition, sizes, of_modules in few:
        pairs = [(FEW, size) if of_modules else (size, SMALL) for size in (sizes[0], sizes[-1])]
        each = [
            _growth([runs[grid.few(method, pair, seed)] for method in TIMED for pair in pairs])
            for seed in range(grid.few_seeds)
        ]
        found["Figure 7", condition, metric] = factor(np.array(each))
    return found


def _growth(four: Sequence[Mapping[str, Any]]) -> float:
    """Return the growth of OPT's time over that of IRoP's, from the small and large runs of IRoP, then of OPT."""
    if four[2].get("status") != "optimal":
        return math.nan  # the small run of OPT hit its time limit, so its time is unknown
    irop, irop_large, opt, opt_large = (max(float(run["cpu_s"]), SHORTEST_S) for run in four)
    return (opt_large / opt) / (irop_large / irop)
