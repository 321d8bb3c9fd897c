"""Report parts for studies of shared nodes: stranded resources, and the benefits and costs of other machines.

All values are means over seeds with Student's interval; differences are paired, since all runs of a seed have the same jobs.
With one seed, differences in slowdown have the interval of a block bootstrap over the jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import isnan, nan
from statistics import fmean

from poolwise.arrays import FloatArray
from poolwise.catalog import PREFIX
from poolwise.comparison.fairest import fairest
from poolwise.metrics.intervals import Interval, mean_interval, paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown_local
from poolwise.presentation.figure import Axis, Bars, Figure, Scatter
from poolwise.presentation.format import format_number
from poolwise.presentation.table import Table
from poolwise.quantities import SECOND, format_time
from poolwise.report.recommendation import ADDED_WAIT
from poolwise.report.sentences import NAMED, either
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.resources import Resources, resources

GOAL = "mean_bounded_slowdown_local"
"""Time from submission to end / runtime with local resources, which includes the slowdown by pooling."""

_CAPTION = (
    "Means over seeds with 95 % intervals; with a single seed, differences have 95 % intervals over the jobs{pooling}. The "
    "first combination was chosen by the same runs, so the differences from it are slightly biased in its favor."
)


@dataclass(frozen=True, eq=False)
class CombinationResult:
    """One combination of machine and policies.

    Attributes
    ----------
    label, machine : label of all varied parameters, and of the machine alone ("" for a single machine)
    cells : one per seed, in the order of the seeds
    used : resources used by each cell
    slowdowns : returns the slowdown `GOAL` of the first cell's measured jobs, (n_job,); None if it is unknown
    """

    label: str
    machine: str
    cells: Sequence[CellResult]
    used: Sequence[Resources]
    slowdowns: Callable[[], FloatArray] | None = None

    def behind(self, other: CombinationResult) -> Interval:
        """Return the difference in slowdown from another combination: over the seeds, or over the jobs of one seed."""
        if len(self.cells) == 1 and self.slowdowns is not None and other.slowdowns is not None:
            here, there = self.slowdowns(), other.slowdowns()
            if here.shape == there.shape:
                return paired_block_bootstrap(here - there)
        return difference(self.metric(GOAL), other.metric(GOAL))

    @property
    def policies(self) -> str:
        """Varied parameters except the machine, "" without any."""
        return ", ".join(part for part in self.label.split(", ") if part != self.machine)

    @property
    def description(self) -> str:
        """Policies and machine: "pack-fm on whole-datacenter"."""
        return " on ".join(part for part in (self.policies, self.machine) if part)

    def metric(self, name: str) -> list[float]:
        """Return the values of a metric, one per seed."""
        return [cell.metrics.get(name, nan) for cell in self.cells]

    @property
    def slowdown(self) -> float:
        """Mean of `GOAL` over the seeds."""
        return mean_interval(self.metric(GOAL)).mean

    @property
    def resources(self) -> list[str]:
        """Names of the measured resources."""
        return list(self.used[0].use)

    @property
    def watts(self) -> list[float]:
        """Mean power, W, one value per seed."""
        return [used.watts for used in self.used]

    @property
    def dollars(self) -> float:
        """Price of the machine, $."""
        return self.used[0].dollars

    def stranded(self, resource: str) -> list[float]:
        """Return the share of a resource that is idle although waiting jobs request it, one value per seed."""
        return [used.use[resource].stranded if resource in used.use else 0.0 for used in self.used]


def standings(result: StudyResult, sweep: Sweep) -> list[CombinationResult]:
    """Return all combinations, best first; empty if a run has no resource measurements, or if sizes are varied.

    Among the policies that no others on the best machine are shown to beat, those that add the least wait come first.
    """
    combinations = []
    for series in sweep.series if len(sweep.x) == 1 else ():
        cells = sweep.cells[series, 0]
        used = [resources(result, cell) for cell in cells]
        measured = [combination for combination in used if combination is not None]
        if len(measured) < len(cells):
            return []
        machine = str(cells[0].parameters.get("machine", "")).removeprefix(PREFIX)
        combinations.append(CombinationResult(series, machine, cells, measured, cache(partial(_slowdowns, result, cells[0]))))
    ranked = sorted(
        (combination for combination in combinations if not isnan(combination.slowdown)),
        key=lambda combination: combination.slowdown,
    )
    if not ranked:
        return []
    here = [combination for combination in ranked if combination.machine == ranked[0].machine]
    first = fairest(here, lambda combination: fmean(combination.metric(ADDED_WAIT)), CombinationResult.behind)
    return [first, *(combination for combination in ranked if combination is not first)]


def _slowdowns(result: StudyResult, cell: CellResult) -> FloatArray:
    outcomes = result.outcomes(cell)
    return bounded_slowdown_local(outcomes, result.study.measure.tau / SECOND)[result.population(cell)]


def equals(ranked: Sequence[CombinationResult]) -> list[CombinationResult]:
    """Return the combinations whose mean slowdown is not distinguishable from that of the best; empty without intervals."""
    return [combination for combination in ranked[1:] if combination.behind(ranked[0]).low <= 0]


def lead(ranked: Sequence[CombinationResult]) -> str:
    """Return the recommendation in one line."""
    return f"Run {ranked[0].description}."


def because(ranked: Sequence[CombinationResult]) -> list[str]:
    """Describe the slowdown of the recommendation, its certainty, and the best combinations on other machines."""
    best, alike = ranked[0], equals(ranked)
    seeds = len(best.cells)
    certain = any(combination.behind(best).n > 1 for combination in ranked[1:])
    spread = f" Intervals (95 %) are over {seeds} seeds." if seeds > 1 else ""
    spread = " Intervals (95 %) are over the jobs, from a block bootstrap." if certain and seeds == 1 else spread
    sentences = [
        f"The mean bounded slowdown is {format_interval(mean_interval(best.metric(GOAL)))}: time from submission to end over "
        f"the runtime with local resources.{spread}"
    ]
    if len(ranked) > 1:
        more = [f"{len(alike) - NAMED + 1} more"] if len(alike) >= NAMED else []
        verdict = "the certainty of the order is unknown with one seed"
        if certain:
            verdict = "the recommended one differs significantly from all others"
        if alike:
            others = either([*(combination.description for combination in alike[: NAMED - 1]), *more])
            verdict = f"the slowdown of the recommended one is not distinguishable from that of {others}"
        sentences.append(f"{len(ranked)} combinations were simulated; {verdict}.")
    rivals = [combination for combination in ranked[1:] if combination.machine == best.machine][:1]
    rivals += [top for name, top in _best_by_machine(ranked).items() if name != best.machine]
    for rival in rivals:
        behind = rival.behind(best)
        verdict = "" if behind.n < 2 else "; the interval excludes zero" if behind.low > 0 else "; not distinguishable"
        role = "Next on the same machine" if rival.machine == best.machine else f"Best on {rival.machine}"
        sentences.append(f"{role}: {rival.policies or rival.label}, with {format_interval(behind)} more{verdict}.")
    return sentences


def sections(ranked: Sequence[CombinationResult], first: str, pooled: bool = True) -> dict[str, list[str]]:
    """Describe stranded resources on each machine, and costs compared with the `first` one, each under its best policies.

    Longer runtimes are costs only if resources are `pooled`.
    """
    tops = _best_by_machine(ranked)
    stranded = [
        f"{name or 'The machine'} under its best policies ({top.policies or 'as written'}): "
        + ", ".join(f"{resource} {_percent(mean_interval(top.stranded(resource)))}" for resource in top.resources)
        + "."
        for name, top in tops.items()
    ]
    stranded.append("A resource is stranded while it is free and waiting jobs request at least as much of it.")
    sentences = {"Stranded resources": stranded}
    base = tops.get(first)
    others = [top for name, top in tops.items() if name != first]
    if base is not None and others:
        sentences["Returns and costs of other machines"] = [line for top in others for line in _costs(base, top, pooled)]
    return sentences


def _costs(base: CombinationResult, other: CombinationResult, pooled: bool) -> list[str]:
    """Describe the differences of a machine from the first one."""
    slower = other.behind(base)
    longer = difference(other.metric("mean_degradation"), base.metric("mean_degradation"))
    watts = difference(other.watts, base.watts)
    runtimes = f", runtimes {_percent(longer, '+')} relative to local resources" if pooled else ""
    sentences = [
        f"{other.description} compared with {base.description}: mean bounded slowdown {format_interval(slower, '+')}{runtimes}."
    ]
    if other.dollars == other.dollars and base.dollars == base.dollars:
        more = other.dollars - base.dollars
        sentences.append(f"Purchase price: {more:+,.0f} $ ({100 * more / base.dollars:+.0f} %).")
    if watts.mean == watts.mean:
        share = 100 * watts.mean / mean_interval(base.watts).mean
        sentences.append(
            f"Mean power: {format_interval(watts, '+')} W ({share:+.0f} %), for each machine over its own measured time."
        )
    rejected = [max(sum(cell.rejected.values()) for cell in side.cells) for side in (base, other)]
    if rejected[0] != rejected[1]:
        sentences.append(
            f"Jobs that can never run: {rejected[1]} instead of {rejected[0]}; slowdowns exclude them on both machines."
        )
    return sentences


def table(ranked: Sequence[CombinationResult], pooled: bool = True) -> Table:
    """Return a table of every combination, best first; power and price have columns only if they are known.

    Longer runtimes have a column only if resources are `pooled`.
    """
    amounts = {
        "mean power (W)": [mean_interval(combination.watts).mean for combination in ranked],
        "price ($)": [combination.dollars for combination in ranked],
    }
    amount_columns = {name: values for name, values in amounts.items() if not all(map(isnan, values))}
    rows = []
    for k, combination in enumerate(ranked):
        behind = "" if combination is ranked[0] else format_interval(combination.behind(ranked[0]), "+")
        worst = max(combination.resources, key=lambda name: mean_interval(combination.stranded(name)).mean)
        rows.append(
            [
                combination.label,
                format_interval(mean_interval(combination.metric(GOAL))),
                behind,
                format_time(mean_interval(combination.metric("mean_wait_s")).mean),
                *([f"{100 * mean_interval(combination.metric('mean_degradation')).mean:.1f}"] if pooled else []),
                f"{worst} {_percent(mean_interval(combination.stranded(worst)))}",
                *(_amount(values[k]) for values in amount_columns.values()),
            ]
        )
    columns = [
        "combination",
        "mean bounded slowdown",
        "difference from the first",
        "mean wait",
        *(["longer runtimes (%)"] if pooled else []),
        "most stranded resource",
        *amount_columns,
    ]
    caption = _CAPTION.format(pooling="; the slowdown includes the cost of pooling" if pooled else "")
    return Table("Machines and policies", columns, rows, caption, chosen=0)


def _amount(value: float) -> str:
    return "unknown" if isnan(value) else f"{value:,.0f}"


def by_tables(result: StudyResult, ranked: Sequence[CombinationResult]) -> Table | None:
    """Return watts and dollars of each machine's best combination under every power table and price list.

    Returns None if there is one of each.
    """
    rows = []
    for top in _best_by_machine(ranked).values():
        cells_by_label: dict[str, list[CellResult]] = {}
        keys = {cell.key for cell in top.cells}
        for cell in result.cells:
            if cell.key in keys:
                chosen = [(path, value) for path, value in cell.parameters.items() if path.startswith(("power", "prices"))]
                label = ", ".join(f"{path} {str(value).removeprefix(PREFIX)}" for path, value in chosen)
                cells_by_label.setdefault(label, []).append(cell)
        if len(cells_by_label) < 2:
            return None
        for label, cells in cells_by_label.items():
            watts = format_interval(mean_interval([cell.watts for cell in cells]))
            rows.append([top.label, label, watts, _amount(cells[0].dollars)])
    caption = "The same runs, measured with each table: power tables and price lists do not affect the schedule."
    return Table("Power and price by table", ["combination", "tables", "mean power (W)", "price ($)"], rows, caption, text=True)


def figures(ranked: Sequence[CombinationResult]) -> list[Figure]:
    """Return stranded resources of each machine under its best policies, and power by slowdown of all combinations."""
    tops = _best_by_machine(ranked)
    names = ranked[0].resources
    bars = Bars(
        "stranded",
        "Stranded resources",
        "Share of each resource that is free while waiting jobs request at least as much, under the best policies of each "
        "machine.",
        groups=names,
        series={
            machine or "all": [100 * mean_interval(top.stranded(name)).mean for name in names] for machine, top in tops.items()
        },
        y_axis=Axis("stranded share (%)"),
    )
    if any(watts != watts for combination in ranked for watts in combination.watts):
        return [bars]
    points = {
        name: [(mean_interval(o.metric(GOAL)), mean_interval([w / 1000 for w in o.watts])) for o in ranked if o.machine == name]
        for name in tops
    }
    low = min(power.mean for pairs in points.values() for _, power in pairs)
    scatter = Scatter(
        "slowdown_power",
        "Power by slowdown",
        "One point per combination, with 95 % intervals over the seeds; left is faster, lower uses less power.",
        series={name or "all": ([x.mean for x, _ in pairs], [y.mean for _, y in pairs]) for name, pairs in points.items()},
        spread={name or "all": _bounds(pairs) for name, pairs in points.items() if pairs[0][0].n > 1},
        x_axis=Axis("mean bounded slowdown"),
        y_axis=Axis("mean power (kW)", limits=(0.8 * low, None)),
    )
    return [bars, scatter]


def difference(series: Sequence[float], other: Sequence[float]) -> Interval:
    """Return the paired difference over the seeds."""
    return mean_interval([a - b for a, b in zip(series, other, strict=True)])


def _bounds(pairs: Sequence[tuple[Interval, Interval]]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the bounds of each slowdown, then of each power."""
    slow, power = zip(*pairs, strict=True)
    return [x.low for x in slow], [x.high for x in slow], [y.low for y in power], [y.high for y in power]


def _best_by_machine(ranked: Sequence[CombinationResult]) -> dict[str, CombinationResult]:
    best: dict[str, CombinationResult] = {}
    for combination in ranked:
        best.setdefault(combination.machine, combination)
    return best


def format_interval(value: Interval, sign: str = "") -> str:
    """Format a mean with its 95 % interval."""
    return _interval(value, lambda x: format_number(x, sign))


def _percent(value: Interval, sign: str = "") -> str:
    return _interval(value, lambda x: format_number(round(100 * x, 1) + 0.0, sign)) + " %"


def _interval(value: Interval, write: Callable[[float], str]) -> str:
    return f"{write(value.mean)} [{write(value.low)}, {write(value.high)}]" if value.n > 1 else write(value.mean)
