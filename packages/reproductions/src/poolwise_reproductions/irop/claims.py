"""Measured values of the claims of the IRoP paper, and of the runs that verify why some claims fail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from poolwise.batch.problem.definition import Theta
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.irop.plan import FEW, FIFTH, LOOSE, PRIMARY, SMALL, STRICT, TENTH, THETAS, TIMED, Grid, of_method
from poolwise_reproductions.irop.runs import (
    AS_PUBLISHED,
    FILLED_UP,
    HEEP_ASCENDING,
    HEEP_BY_MODULE,
    LARGEST_FIRST,
    IropCase,
    MemoryTimeCase,
    ProblemVariant,
)
from poolwise_reproductions.published import Key
from poolwise_reproductions.results import KeyedRow

IropRuns = Mapping[IropCase, dict[str, Any]]
WORKLOADS = 150
SHORTEST_S = 1e-3
"""CPU seconds to which shorter times are rounded up."""


@dataclass(frozen=True)
class View:
    """Runs under one reading of theta and a variant; `substitutes` maps a method to the one whose runs replace it.

    Under `PRIMARY`, HEEP sorts modules by the energy of the whole module, which reproduces the paper's mean theta.
    """

    grid: Grid
    runs: IropRuns
    theta: Theta
    memory_time: Mapping[MemoryTimeCase, dict[str, Any]] = field(default_factory=dict)
    substitutes: Mapping[str, str] = field(default_factory=dict)
    variant: ProblemVariant = AS_PUBLISHED

    def value(self, method: str, metric: str, tolerance: float, eta: float) -> np.ndarray:
        """Return the values of a metric, (n_seed,); see `Grid.seeds_of`."""
        method = self.substitutes.get(method, method)
        variant = of_method(self.variant, method)
        seeds = self.grid.seeds_of(self.theta)
        cases = (IropCase(method, self.theta, eta, tolerance, seed, variant=variant) for seed in seeds)
        return np.array([self.runs[case].get(metric, math.nan) for case in cases], dtype=np.float64)

    def points(self) -> list[tuple[float, float]]:
        """Return all pairs (Delta, eta)."""
        return list(product(self.grid.tolerances, self.grid.etas))

    def margin(self, metric: str, method: str, other: str, points: Iterable[tuple[float, float]]) -> np.ndarray:
        """Return the metric of `method` minus that of `other`, (n_point, n_seed)."""
        return np.array([self.value(method, metric, *p) - self.value(other, metric, *p) for p in points])

    def reduction(self, metric: str, below: str, above: str, tolerance: float, eta: float) -> np.ndarray:
        """Return the percentage by which the metric of `below` is less than that of `above`, (n_seed,)."""
        reductions: np.ndarray = 100 * (
            1 - self.value(below, metric, tolerance, eta) / self.value(above, metric, tolerance, eta)
        )
        return reductions


def substitutes(theta: Theta) -> dict[str, str]:
    """Return method -> method whose runs replace it, under a reading of theta."""
    return {"heep": HEEP_BY_MODULE} if theta == PRIMARY else {}


def finite_mean(values: np.ndarray, note: str = "") -> Measured:
    """Return the mean of the finite values, one per seed, with its interval by Student's t."""
    return Measured.over_seeds(values[np.isfinite(values)], note)


def factor(values: np.ndarray) -> Measured:
    """Return the geometric mean of factors, one per seed, with its interval by Student's t over the logarithms."""
    log_mean = finite_mean(np.log(values))
    return Measured(math.exp(log_mean.value), math.exp(log_mean.low), math.exp(log_mean.high))


def _extremes(artifact: str, condition: str, metric: str, values: np.ndarray, means: np.ndarray) -> Iterator[KeyedRow]:
    """Yield the largest and smallest of all values, and the mean of independent means, as three rows."""
    yield (artifact, condition, f"maximum {metric}"), Measured(float(values.max()))
    yield (artifact, condition, f"mean {metric}"), finite_mean(means)
    yield (artifact, condition, f"minimum {metric}"), Measured(float(values.min()))


def figure_4(view: View) -> Iterator[KeyedRow]:
    """Measure the completion of workloads compared with CFM."""
    yield from _reductions(view)
    grid, theta = view.grid, view.theta
    for tolerance in grid.tolerances:
        key = "Figure 4", f"eta 0, Delta {tolerance:.2f}, theta {theta}", "mean reduction of the completion ratio against CFM"
        yield key, finite_mean(view.reduction("completion", "irop", "cfm", tolerance, 0.0))
    rise = np.mean([view.value("irop", "theta", t, 1.0) - view.value("irop", "theta", t, 0.0) for t in grid.tolerances], axis=0)
    yield ("Figure 4", f"theta {theta}", "sum theta at eta 1 minus at eta 0"), finite_mean(rise)
    above = view.margin("completion", "irop", "cfm", [(0.25, eta) for eta in grid.etas if eta > 0.3]).mean(axis=0)
    condition = f"Delta 0.25, eta above 0.3, theta {theta}"
    yield ("Figure 4", condition, "completion ratio of IRoP minus that of CFM"), finite_mean(above)
    yield from _margins_to_cfm(view)


def _margins_to_cfm(view: View) -> Iterator[KeyedRow]:
    """Yield CFM's completion ratio minus IRoP's at each point where IRoP is ahead in the paper."""
    for tolerance, eta in view.points() if view.theta == PRIMARY else ():
        if tolerance < LOOSE or eta <= 0.3:
            irop = view.value("irop", "completion", tolerance, eta)
            condition = f"Delta {tolerance:.2f}, eta {eta:.1f}, theta {view.theta}"
            key = "Figure 4", condition, "completion ratio of CFM minus that of IRoP"
            yield key, finite_mean(view.value("cfm", "completion", tolerance, eta) - irop)


def _reductions(view: View) -> Iterator[KeyedRow]:
    """Yield the reduction of the completion ratio, pooled over all accepted slowdowns."""
    reductions = [view.reduction("completion", "irop", "cfm", tolerance, 0.0) for tolerance in view.grid.tolerances]
    metric, means = "reduction of the completion ratio against CFM", np.mean(reductions, axis=0)
    yield from _extremes("Figure 4", f"eta 0, theta {view.theta}", metric, np.concatenate(reductions), means)


def figure_5(view: View) -> Iterator[KeyedRow]:
    """Measure the energy as a function of the accepted slowdown, and compared with HEEP."""
    theta = view.theta
    fall = [view.value("irop", "energy", 0.05, eta) - view.value("irop", "energy", 0.25, eta) for eta in view.grid.etas]
    yield ("Figure 5", f"theta {theta}", "energy at Delta 0.05 minus at Delta 0.25"), finite_mean(np.mean(fall, axis=0))
    yield from figure_5_heep(view)


def figure_5_heep(view: View) -> Iterator[KeyedRow]:
    """Measure the energy and slowdown compared with HEEP, which runs once, at the loosest Delta."""
    theta = view.theta
    yield from _energy_against_heep(view)
    heep = view.value("heep", "theta", LOOSE, 1.0) / WORKLOADS
    yield ("Figure 5", f"Delta 0.25, theta {theta}", "mean theta of HEEP"), finite_mean(heep)
    for eta in view.grid.fifth_etas:
        for metric, name in (("theta", "sum theta"), ("energy", "energy")):
            more = view.value("heep", metric, LOOSE, eta) - view.value("irop", metric, FIFTH, eta)
            key = "Figure 5", f"Delta 0.20, eta {eta:.1f}, theta {theta}", f"{name} of HEEP minus that of IRoP"
            yield key, finite_mean(more)


def figure_6(view: View) -> Iterator[KeyedRow]:
    """Measure the objective compared with the other methods."""
    yield from figure_6_least(view)
    yield from figure_6_heep(view)


def figure_6_least(view: View) -> Iterator[KeyedRow]:
    """Measure the smallest margin of IRoP's objective over those of first fit and CFM."""
    theta, points = view.theta, view.points()
    least = min(float((-view.margin("objective", "irop", other, points)).mean(axis=1).min()) for other in ("first-fit", "cfm"))
    yield ("Figure 6", f"theta {theta}", "minimum margin of IRoP's objective to first fit and CFM"), Measured(least)


def figure_6_heep(view: View) -> Iterator[KeyedRow]:
    """Measure the objective compared with HEEP, which runs once, at the loosest Delta."""
    theta = view.theta

    def more(tolerance: float, eta: float) -> np.ndarray:
        differences: np.ndarray = view.value("irop", "objective", tolerance, eta) - view.value("heep", "objective", LOOSE, eta)
        return differences

    below = float(np.mean([more(*point).mean() < 0 for point in view.points()])) - 0.5
    half = "share of eta and Delta where IRoP's objective is below HEEP's, minus one half"
    yield ("Figure 6", f"theta {theta}", half), Measured(below)
    above = np.mean([more(0.05, eta) for eta in view.grid.etas if eta >= 0.7], axis=0)
    condition = f"Delta 0.05, eta from 0.7, theta {theta}"
    yield ("Figure 6", condition, "objective of IRoP minus that of HEEP"), finite_mean(above)


def _energy_against_heep(view: View) -> Iterator[KeyedRow]:
    """Yield the reduction of energy compared with HEEP at the loosest Delta and eta 1."""
    less = view.reduction("energy", "irop", "heep", LOOSE, 1.0)
    condition = f"Delta above 0.20, eta 1, theta {view.theta}"
    yield from _extremes("Figure 5", condition, "reduction of energy against HEEP", less, less)


BY_CORES = ", HEEP by cores"
"""Suffix of the conditions of rows in which HEEP sorts modules by energy per core and frequency."""


def heep_by_cores(view: View) -> Iterator[KeyedRow]:
    """Measure the rows of HEEP with the other sort key for modules: energy per core and frequency."""
    if view.theta == PRIMARY:
        plain = replace(view, substitutes={})
        for (artifact, condition, metric), value in (*figure_5_heep(plain), *figure_6_heep(plain)):
            yield (artifact, f"{condition}{BY_CORES}", metric), value


def longest(view: View) -> Iterator[KeyedRow]:
    """Measure how far the longest run of IRoP at the paper's size stays below 30 s."""
    seconds = max(float(view.value("irop", "cpu_s", *point).max()) for point in view.points())
    yield ("Section V-B", f"150 x 1200, theta {view.theta}", "30 s minus the longest run of IRoP"), Measured(30 - seconds)


def figure_7(view: View) -> Iterator[KeyedRow]:
    """Measure the comparison with OPT."""
    condition = f"30 x 30, theta {view.theta}"
    yield ("Figure 7", condition, "slowdown of IRoP above OPT"), above_optimum(view, "irop", "completion")
    yield ("Figure 7", condition, "energy of IRoP above OPT"), above_optimum(view, "irop", "energy")


def above_optimum(view: View, method: str, metric: str, variant: ProblemVariant = AS_PUBLISHED) -> Measured:
    """Return the mean percentage by which a metric exceeds its value at the optimum (for theta: points of its mean)."""
    excess, gaps = [], []
    for seed in range(view.grid.small_seeds):
        opt, place = (view.runs[view.grid.small(name, view.theta, seed)] for name in ("opt", "place"))
        run = view.runs[replace(view.grid.small(method, view.theta, seed), variant=variant)]
        solved = [each for each in (opt, place) if "objective" in each]
        best = min(solved, key=lambda each: float(each["objective"]))
        bound = max(float(each["bound"]) for each in solved if each["bound"] is not None)
        gaps.append(100 * (best["objective"] - bound) / abs(bound))
        excess.append(100 * ((run[metric] - best[metric]) / SMALL if metric == "theta" else run[metric] / best[metric] - 1))
    return finite_mean(np.array(excess), f"the optimum is the better of OPT and place, proven within {max(gaps):.2g} %")


def growth(view: View) -> Iterator[KeyedRow]:
    """Measure how the run times of OPT and IRoP grow with the size, at the paper's sizes and at sizes that OPT can solve.

    These runs do not depend on the reading of theta.
    """
    grid, runs, metric = view.grid, view.runs, "growth of OPT's time over growth of IRoP's"
    least = grid.sizes[0]
    for condition, small in (
        ("workloads 15 to 30 on 30 modules", (least, SMALL)),
        ("modules 15 to 30 with 30 workloads", (SMALL, least)),
    ):
        four = [runs[grid.sized(method, size)] for method in TIMED for size in (small, (SMALL, SMALL))]
        yield ("Figure 7", condition, metric), Measured(_growth(four))
    few, many = grid.few_workloads[0], grid.few_workloads[-1]
    less, more = grid.few_modules[0], grid.few_modules[-1]
    for condition, sizes in (
        (f"workloads {few} to {many} on {SMALL} modules", ((few, SMALL), (many, SMALL))),
        (f"modules {less} to {more} with {FEW} workloads", ((FEW, less), (FEW, more))),
    ):
        seeds = range(grid.few_seeds)
        each = [_growth([runs[grid.few(method, size, seed)] for method in TIMED for size in sizes]) for seed in seeds]
        yield ("Figure 7", condition, metric), factor(np.array(each))


def _growth(four: Sequence[Mapping[str, Any]]) -> float:
    """Return the growth of OPT's time divided by that of IRoP's; `four` are the small and large runs of IRoP, then of OPT."""
    if four[2].get("status") != "optimal":
        return math.nan  # the small run of OPT hit its time limit, so its time is unknown
    irop, irop_large, opt, opt_large = (max(float(run["cpu_s"]), SHORTEST_S) for run in four)
    return (opt_large / opt) / (irop_large / irop)


def ours(view: View) -> Iterator[KeyedRow]:
    """Measure the margin of our method `place`, and the workloads beyond their accepted slowdown under CFM and first fit."""
    view = replace(view, substitutes={})
    points, condition = view.points(), f"theta {view.theta}"
    for other, name in (("irop", "IRoP"), ("heep", "HEEP"), ("cfm", "CFM"), ("first-fit", "first fit")):
        least = float(view.margin("objective", other, "place", points).min())
        yield ("Ours", condition, f"minimum margin of place to {name}"), Measured(least)
    for method, name in (("cfm", "CFM"), ("first-fit", "first fit")):
        broken = np.concatenate([view.value(method, "violations", *p) for p in points]) / 1.5
        yield ("Ours", condition, f"workloads beyond their accepted slowdown under {name}"), finite_mean(broken)


def witnesses(view: View) -> Iterator[KeyedRow]:
    """Measure the rows at the paper's size that verify causes."""
    view = replace(view, substitutes={})
    theta = f"theta {view.theta}"
    strict = [t for t in view.grid.tolerances if t <= TENTH]
    at_delta = max(float(np.abs(view.value("irop", "theta", t, 0.0) / (WORKLOADS * t) - 1).max()) for t in strict)
    metric = "largest distance of IRoP's mean theta from Delta"
    yield ("Ours", f"eta 0, Delta up to 0.10, {theta}", metric), Measured(at_delta)
    local = max(float(np.abs(view.value(m, "theta", LOOSE, 0.0) / WORKLOADS).max()) for m in ("cfm", "first-fit"))
    yield ("Ours", f"eta 0, {theta}", "largest mean theta of CFM and first fit"), Measured(local)
    loose, methods = f"Delta above 0.20, eta 1, {theta}", ("irop", "heep", HEEP_BY_MODULE, LARGEST_FIRST)
    irop, heep, other, largest = (view.value(method, "energy", LOOSE, 1.0) for method in methods)
    metric = "reduction of energy against HEEP minus that against HEEP by whole modules"
    yield ("Ours", loose, metric), finite_mean(100 * (irop / other - irop / heep))
    metric = "energy of IRoP minus that with large workloads rounded first"
    yield ("Ours", loose, metric), finite_mean(100 * (1 - largest / irop))
    used = view.value("heep", "memory_used", LOOSE, 1.0) - view.value("irop", "memory_used", LOOSE, 1.0)
    yield ("Ours", loose, "local memory in use under HEEP minus under IRoP"), finite_mean(100 * used)
    if view.theta == PRIMARY:
        yield from _between_keys(view)
    cores = view.value("heep", "cores_used", LOOSE, 1.0)
    yield ("Ours", loose, "cores in use under HEEP"), finite_mean(100 * cores)


PUBLISHED_REDUCTION = 2.5
"""Mean reduction of energy relative to HEEP in the paper, %."""


def _between_keys(view: View) -> Iterator[KeyedRow]:
    """Measure how far the published reduction lies inside the range of HEEP's two sort keys: positive if the key decides."""
    more, less = (view.reduction("energy", "irop", key, LOOSE, 1.0).mean() for key in (HEEP_BY_MODULE, "heep"))
    distance = min(more - PUBLISHED_REDUCTION, PUBLISHED_REDUCTION - less)
    metric = "distance of the published mean reduction of energy from those with either sort key of HEEP"
    yield ("Ours", f"Delta above 0.20, eta 1, theta {view.theta}", metric), Measured(float(distance))


def optimum_witnesses(view: View) -> Iterator[KeyedRow]:
    """Measure the rows of the comparison with OPT that verify causes."""
    small = f"30 x 30, theta {view.theta}"
    alone = above_optimum(view, "irop", "theta")
    yield ("Ours", small, "slowdown of IRoP above OPT, counted as theta alone"), alone
    filled, plain = (above_optimum(view, method, "completion") for method in (FILLED_UP, "irop"))
    yield ("Ours", small, "slowdown of IRoP above OPT, local memory filled up"), filled
    fall = Measured(plain.value - filled.value, note=plain.note)
    yield ("Ours", small, "slowdown of IRoP above OPT minus that with local memory filled up"), fall
    by_order, by_size = (above_optimum(view, method, "energy").value for method in ("irop", LARGEST_FIRST))
    rounded = Measured(by_order - by_size, note=plain.note)
    yield ("Ours", small, "energy of IRoP above OPT minus that with large workloads rounded first"), rounded


def against_memory_time(view: View) -> Iterator[KeyedRow]:
    """Measure how much lower IRoP's completion ratio is than that of CFM as the IRoP paper describes it, for all Deltas."""
    cfm = np.array([view.memory_time[MemoryTimeCase(seed)]["completion"] for seed in view.grid.seeds_of(view.theta)])
    reductions = np.array([100 * (1 - view.value("irop", "completion", t, 0.0) / cfm) for t in view.grid.tolerances])
    metric = "reduction of the completion ratio against CFM by memory times time"
    yield from _extremes("Ours", f"eta 0, theta {view.theta}", metric, reductions, reductions.mean(axis=0))


def by_memory_time(measured: Mapping[Key, Measured]) -> str:
    """Describe IRoP's mean reduction relative to CFM as the IRoP paper describes it; empty if it was not measured."""
    metric = "mean reduction of the completion ratio against CFM by memory times time"
    measurements = [measured.get(("Ours", f"eta 0, theta {theta}", metric)) for theta in THETAS]
    means = sorted(each.value for each in measurements if each is not None)
    return f", and IRoP's mean reduction is {means[0]:.0f} to {means[-1]:.0f} % instead of the published 5 %" if means else ""


def explain(measured: Mapping[Key, Measured]) -> list[str]:
    """Describe what each reading of theta implies, with the measured shares of workloads beyond their accepted slowdown."""
    metric = "workloads beyond their accepted slowdown under"
    shares = [measured.get(("Ours", "theta relative", f"{metric} {name}")) for name in ("CFM", "first fit")]
    beyond = " and ".join(f"{share.value:.0f} %" for share in shares if share is not None)
    return [
        "At the paper's size neither local nor remote memory binds: all memory fits locally on some of the modules. With theta "
        "as printed, CFM and first fit therefore have a sum of exactly 0 at any eta, and no method can have less.",
        "Read as a bound on completion time, theta also penalizes slow modules; CFM and first fit then exceed the accepted "
        f"slowdown of {beyond} of the workloads, because they ignore frequency.",
        "Fixing the shares of local memory in advance (equation 6) costs more than rounding: the bound of F-DWLP is well above "
        "what `place` reaches on DWLP, where a module's remaining memory goes to the workload that gains most.",
    ]


def switches(grid: Grid, runs: IropRuns) -> dict[str, dict[Key, Measured]]:
    """Return switch -> claim -> measurement with that switch alone, for the claims that each switch affects."""
    by_switch: dict[str, dict[Key, Measured]] = {}
    strict = tuple(tolerance for tolerance in grid.tolerances if tolerance <= TENTH)
    for theta in THETAS:
        if theta == PRIMARY:
            heep = View(grid, runs, theta, substitutes={"heep": HEEP_ASCENDING})
            by_switch["HEEP in ascending order"] = dict(_energy_against_heep(heep))
        else:
            heep = View(grid, runs, theta, substitutes={"heep": HEEP_BY_MODULE})
            by_switch.setdefault("HEEP by whole modules", {}).update([*figure_5_heep(heep), *figure_6_heep(heep)])
        at_strict = View(replace(grid, tolerances=(STRICT,)), runs, theta)
        if theta == PRIMARY:
            by_switch["Delta 0.075 alone"] = dict(_reductions(at_strict))
            by_switch["Delta 0.05 alone"] = dict(_reductions(View(replace(grid, tolerances=strict[:1]), runs, theta)))
            filled = View(replace(grid, draws=grid.seeds), runs, theta, substitutes={"irop": FILLED_UP})
            by_switch["local memory filled up"] = dict([*_margins_to_cfm(filled), *figure_6_least(filled)])
    return by_switch
