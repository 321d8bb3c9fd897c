"""IRoP: bounded slowdown at the least energy; Figures 4 to 7 and every published claim, under both readings of theta."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np

from poolwise.batch.problem.definition import Theta
from poolwise.compare.published import Key
from poolwise.compare.verdicts import Measured
from poolwise.exhibits.figure import Axis, Curves, Figure
from poolwise.metrics.intervals import mean_interval
from poolwise.registry import register
from poolwise.reproductions.irop_runs import HEEP_BY_MODULE, IropCase, measure_placement
from poolwise.reproductions.reproduction import Reproduction, ReproductionResult
from poolwise.trials import Executor, Progress

THETAS: tuple[Theta, ...] = get_args(Theta)
METHODS = ("irop", "place", "heep", "cfm", "first-fit", HEEP_BY_MODULE)
SMALL = 30
TENTH = 0.10
"""An accepted slowdown in the middle of the paper's, at which its reduction against CFM is looked at alone."""


@dataclass(frozen=True)
class Grid:
    """What is varied: accepted slowdowns, weights of energy, seeds; sizes and time limit of the comparison with OPT."""

    tolerances: tuple[float, ...] = (0.05, 0.10, 0.15, 0.20, 0.25)
    etas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    seeds: int = 100
    small_seeds: int = 20
    sizes: tuple[int, ...] = (15, 20, 25, 30)
    opt_seconds: float = 20.0


QUICK = Grid((0.05, 0.25), (0.0, 0.8, 1.0), 2, 2, (15, 30), 5.0)
IropRuns = Mapping[IropCase, dict[str, Any]]


@register("reproductions", "irop")
class IropReproduction(Reproduction):
    """Workload placement with bounded slowdown."""

    title: ClassVar[str] = "Workload placement with bounded slowdown (IRoP)"
    paper: ClassVar[str] = "Sefati, Dolati, Ghaderi: Workload Placement with Bounded Slowdown in Disaggregated Datacenters"

    def run(
        self, out: Path, *, quick: bool, executor: Executor, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Measure everything; see `Reproduction`."""
        grid = QUICK if quick else Grid()
        runs = measure_placement([*_main(grid), *_small(grid), *_growth(grid)], out, executor, progress)
        measured: dict[Key, Measured] = {}
        for theta in THETAS:
            view = View(grid, runs, theta)
            measured |= _slowdown(view) | _energy(view) | _objective(view) | _optimum(view) | _ours(view)
        measured |= _runtime(grid, runs)
        switches: dict[str, dict[Key, Measured]] = {name: {} for name in ("HEEP by whole modules", "Delta 0.10 alone")}
        for theta in THETAS:
            heep = View(grid, runs, theta, {"heep": HEEP_BY_MODULE})
            switches["HEEP by whole modules"] |= _energy(heep) | _objective(heep)
            if TENTH in grid.tolerances:
                switches["Delta 0.10 alone"] |= _slowdown(View(replace(grid, tolerances=(TENTH,)), runs, theta), pooled=True)
        notes = [
            f"{grid.seeds} seeds, Delta {grid.tolerances}, eta {grid.etas}; OPT has {grid.opt_seconds:g} s.",
            "Profiles are read off Figure 2 at their ends and assumed convex between; a third of the modules of each type.",
            "The mean completion ratio (1 + P^m) phi / F compares all methods, whatever theta a problem minimises.",
        ]
        return ReproductionResult(measured, _figures(grid, runs), notes, EXPLANATION, switches=switches)


EXPLANATION = (
    "At the paper's size neither local nor remote memory binds: all memory fits locally on about a hundred modules. With theta "
    "as printed, CFM and first fit therefore have a sum of exactly 0 at any eta, and nothing can have less.",
    "Read as a bound on completion time, theta charges slow modules too; then CFM and first fit break the accepted slowdown of "
    "about a third of the workloads, because they look at no frequency.",
    "Fixing the shares of local memory beforehand (equation 6) costs more than rounding does: the bound of F-DWLP lies well "
    "above what `place` reaches on DWLP, where memory that a module has left goes to whoever gains most.",
)


@dataclass(frozen=True)
class View:
    """The runs under one reading of theta; `instead` maps a method to the one that stands for it."""

    grid: Grid
    runs: IropRuns
    theta: Theta
    instead: Mapping[str, str] = field(default_factory=dict)

    def value(self, method: str, metric: str, tolerance: float, eta: float) -> np.ndarray:
        """(n_seed,) a metric over the seeds."""
        method = self.instead.get(method, method)
        cases = (case(method, self.theta, eta, tolerance, seed) for seed in range(self.grid.seeds))
        return np.array([self.runs[c].get(metric, math.nan) for c in cases], dtype=np.float64)

    def points(self) -> list[tuple[float, float]]:
        """All (Delta, eta)."""
        return list(product(self.grid.tolerances, self.grid.etas))

    def margin(self, metric: str, one: str, other: str, points: Iterable[tuple[float, float]]) -> np.ndarray:
        """(n_point, n_seed) metric of `one` less that of `other`."""
        return np.array([self.value(one, metric, *p) - self.value(other, metric, *p) for p in points])


def case(method: str, theta: Theta, eta: float, tolerance: float | None, seed: int) -> IropCase:
    """A case at the paper's size."""
    return IropCase(method, theta, eta, tolerance, seed)


def _main(grid: Grid) -> list[IropCase]:
    """Seed by seed, so that a run that is ended early has whole seeds."""
    points = product(range(grid.seeds), THETAS, METHODS, grid.tolerances, grid.etas)
    return [case(method, theta, eta, tolerance, seed) for seed, theta, method, tolerance, eta in points]


def _small(grid: Grid) -> list[IropCase]:
    limits = {"irop": 0.05, "opt": grid.opt_seconds, "place": 4.0}
    return [
        IropCase(method, theta, 0.5, None, seed, SMALL, SMALL, seconds)
        for theta, seed in product(THETAS, range(grid.small_seeds))
        for method, seconds in limits.items()
    ]


def _growth(grid: Grid) -> list[IropCase]:
    sizes = [(size, SMALL) for size in grid.sizes] + [(SMALL, size) for size in grid.sizes]
    return [_sized(method, size, seconds) for size in sizes for method, seconds in (("irop", 0.05), ("opt", grid.opt_seconds))]


def _sized(method: str, size: tuple[int, int], seconds: float) -> IropCase:
    """A case of another size, of which only the run time is looked at."""
    return IropCase(method, "printed", 0.5, None, 0, *size, seconds)


def _mean(values: np.ndarray, note: str = "") -> Measured:
    """Mean of one value a seed, with its interval by Student's t."""
    found = mean_interval(values[np.isfinite(values)])
    return Measured(found.mean, found.low, found.high, note)


def _three(artifact: str, condition: str, metric: str, values: np.ndarray) -> dict[Key, Measured]:
    """Greatest, mean and least of all values."""
    return {
        (artifact, condition, f"greatest {metric}"): Measured(float(values.max())),
        (artifact, condition, f"mean {metric}"): _mean(values),
        (artifact, condition, f"least {metric}"): Measured(float(values.min())),
    }


def _slowdown(view: View, pooled: bool = False) -> dict[Key, Measured]:
    """Figure 4; with `pooled` only what is taken over all accepted slowdowns together."""
    grid, theta = view.grid, view.theta
    pairs = [(view.value("irop", "completion", t, 0.0), view.value("cfm", "completion", t, 0.0)) for t in grid.tolerances]
    reduction = np.concatenate([100 * (1 - ours / theirs) for ours, theirs in pairs])
    found = _three("Figure 4", f"eta 0, theta {theta}", "reduction of the completion ratio against CFM", reduction)
    if pooled:
        return found
    for tolerance, (ours, theirs) in zip(grid.tolerances, pairs, strict=True):
        key = f"eta 0, Delta {tolerance:.2f}, theta {theta}"
        found["Figure 4", key, "mean reduction of the completion ratio against CFM"] = _mean(100 * (1 - ours / theirs))
    rise = np.mean([view.value("irop", "theta", t, 1.0) - view.value("irop", "theta", t, 0.0) for t in grid.tolerances], axis=0)
    found["Figure 4", f"theta {theta}", "sum theta at eta 1 less at eta 0"] = _mean(rise)
    late = [(0.25, eta) for eta in grid.etas if eta > 0.3]
    above = view.margin("completion", "irop", "cfm", late).mean(axis=0)
    key = f"Delta 0.25, eta above 0.3, theta {theta}"
    found["Figure 4", key, "completion ratio of IRoP less that of CFM"] = _mean(above)
    return found


def _energy(view: View) -> dict[Key, Measured]:
    grid, theta = view.grid, view.theta
    fall = [view.value("irop", "energy", 0.05, eta) - view.value("irop", "energy", 0.25, eta) for eta in grid.etas]
    found = {("Figure 5", f"theta {theta}", "energy at Delta 0.05 less at Delta 0.25"): _mean(np.mean(fall, axis=0))}
    pair = view.value("irop", "energy", 0.25, 1.0), view.value("heep", "energy", 0.25, 1.0)
    found |= _three(
        "Figure 5", f"Delta above 0.20, eta 1, theta {theta}", "reduction of energy against HEEP", 100 * (1 - pair[0] / pair[1])
    )
    heep = view.value("heep", "theta", 0.25, 1.0) / 150
    return found | {("Figure 5", f"Delta 0.25, theta {theta}", "mean theta of HEEP"): _mean(heep)}


def _objective(view: View) -> dict[Key, Measured]:
    theta, points = view.theta, view.points()
    least = min(float((-view.margin("objective", "irop", other, points)).mean(axis=1).min()) for other in ("first-fit", "cfm"))
    below = (view.margin("objective", "irop", "heep", points).mean(axis=1) < 0).mean() - 0.5
    strict = [(0.05, eta) for eta in view.grid.etas if eta >= 0.7]
    above = view.margin("objective", "irop", "heep", strict).mean(axis=0)
    half = "share of eta and Delta where IRoP's objective is below HEEP's, less one half"
    return {
        ("Figure 6", f"theta {theta}", "least margin of IRoP's objective to first fit and CFM"): Measured(least),
        ("Figure 6", f"theta {theta}", half): Measured(float(below)),
        ("Figure 6", f"Delta 0.05, eta from 0.7, theta {theta}", "objective of IRoP less that of HEEP"): _mean(above),
    }


def _optimum(view: View) -> dict[Key, Measured]:
    theta = view.theta
    above: dict[str, list[float]] = {"completion": [], "energy": []}
    gaps = []
    for seed in range(view.grid.small_seeds):
        of = {
            method: view.runs[IropCase(method, theta, 0.5, None, seed, SMALL, SMALL, seconds)]
            for method, seconds in (("irop", 0.05), ("opt", view.grid.opt_seconds), ("place", 4.0))
        }
        solved = [run for run in (of["opt"], of["place"]) if "objective" in run]
        best = min(solved, key=lambda run: float(run["objective"]))
        bound = max(float(run["bound"]) for run in solved if run["bound"] is not None)
        gaps.append(100 * (best["objective"] - bound) / abs(bound))
        for metric, values in above.items():
            values.append(100 * (of["irop"][metric] / best[metric] - 1))
    note = f"the optimum is the better of OPT and place, proven within {max(gaps):.2g} %"
    condition = f"30 x 30, theta {theta}"
    longest = max(view.value("irop", "cpu_s", *p).max() for p in view.points())
    return {
        ("Figure 7", condition, "slowdown of IRoP above OPT"): _mean(np.array(above["completion"]), note),
        ("Figure 7", condition, "energy of IRoP above OPT"): _mean(np.array(above["energy"]), note),
        ("Section V-B", f"150 x 1200, theta {theta}", "30 s less the longest run of IRoP"): Measured(30 - float(longest)),
    }


def _ours(view: View) -> dict[Key, Measured]:
    found: dict[Key, Measured] = {}
    points, condition = view.points(), f"theta {view.theta}"
    for other, name in (("irop", "IRoP"), ("heep", "HEEP"), ("cfm", "CFM"), ("first-fit", "first fit")):
        margin = view.margin("objective", other, "place", points)
        found["Ours", condition, f"least margin of place to {name}"] = Measured(float(margin.min()))
    for method, name in (("cfm", "CFM"), ("first-fit", "first fit")):
        broken = np.concatenate([view.value(method, "violations", *p) for p in points]) / 1.5
        found["Ours", condition, f"workloads beyond their accepted slowdown under {name}"] = _mean(broken)
    return found


def _runtime(grid: Grid, runs: IropRuns) -> dict[Key, Measured]:
    def ended(run: Mapping[str, Any]) -> bool:
        return run.get("status") != "optimal"

    def growth(sizes: Callable[[int], tuple[int, int]]) -> float:
        ratio = {}
        for method, seconds in (("irop", 0.05), ("opt", grid.opt_seconds)):
            times = [runs[_sized(method, sizes(size), seconds)]["cpu_s"] for size in (grid.sizes[0], SMALL)]
            if method == "opt" and ended(runs[_sized(method, sizes(grid.sizes[0]), seconds)]):
                return math.nan  # its time limit is all that was measured
            ratio[method] = times[1] / max(times[0], 1e-3)
        return float(ratio["opt"] / max(ratio["irop"], 1e-9))

    metric = "growth of OPT's time over growth of IRoP's"
    return {
        ("Figure 7", "workloads 15 to 30 on 30 modules", metric): Measured(growth(lambda size: (size, SMALL))),
        ("Figure 7", "modules 15 to 30 with 30 workloads", metric): Measured(growth(lambda size: (SMALL, size))),
    }


def _figures(grid: Grid, runs: IropRuns) -> list[Figure]:
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
            values = [_mean(view.value(method, metric, tolerance, eta)) for eta in grid.etas]
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
        times = {
            method: [runs[_sized(method, sizes(s), seconds)]["cpu_s"] for s in grid.sizes]
            for method, seconds in (("irop", 0.05), ("opt", grid.opt_seconds))
        }
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
