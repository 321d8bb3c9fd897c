"""What a study of shared nodes shows to a buyer of the machine: what is stranded, what another machine returns and costs.

Everything is a mean over the seeds with Student's interval; differences are paired: all runs of a seed have the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from poolwise.catalog import PREFIX
from poolwise.metrics.intervals import Interval, mean_interval
from poolwise.presentation.figure import Axis, Bars, Figure, Scatter
from poolwise.presentation.format import spoken_number
from poolwise.report.page import PageSection, PageTable, TableRow
from poolwise.report.sentences import NAMED, either
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.resources import Resources, resources
from poolwise.units import format_time

GOAL = "mean_bounded_slowdown_local"
"""Time from submission to end over the time that a job takes with everything beside it: what pooling costs is in it."""

_CAPTION = (
    "Means over seeds [95 %]; the slowdown counts what pooling costs. The best was chosen by these very runs, so that the "
    "differences to it are somewhat too favourable to it."
)


@dataclass(frozen=True, eq=False)
class Standing:
    """One combination of machine and policies.

    Attributes
    ----------
    label, machine : of all that was varied, and of the machine alone ("" where there is one)
    cells : one a seed, in the order of the seeds
    used : what each of them used
    """

    label: str
    machine: str
    cells: Sequence[CellResult]
    used: Sequence[Resources]

    @property
    def policies(self) -> str:
        """What was varied beside the machine, "" where nothing was."""
        return ", ".join(part for part in self.label.split(", ") if part != self.machine)

    @property
    def said(self) -> str:
        """Policies and machine in words: "pack-fm on whole-datacenter"."""
        return " on ".join(part for part in (self.policies, self.machine) if part)

    def metric(self, name: str) -> list[float]:
        """A metric, one value a seed."""
        return [cell.metrics[name] for cell in self.cells]

    @property
    def slowdown(self) -> float:
        """Mean of the goal."""
        return mean_interval(self.metric(GOAL)).mean

    @property
    def watts(self) -> list[float]:
        """One value a seed."""
        return [used.watts for used in self.used]

    @property
    def dollars(self) -> float:
        """Price of the machine."""
        return self.used[0].dollars

    def stranded(self, resource: str) -> list[float]:
        """Share of a resource that is idle although waiting jobs ask for it, one value a seed."""
        return [used.use[resource].stranded if resource in used.use else 0.0 for used in self.used]


def standings(result: StudyResult, sweep: Sweep) -> list[Standing]:
    """All combinations, best first; empty where resources were not measured in every run, or sizes are varied."""
    found = []
    for series in sweep.series if len(sweep.x) == 1 else ():
        cells = sweep.cells[series, 0]
        used = [resources(result, cell) for cell in cells]
        known = [one for one in used if one is not None]
        if len(known) < len(cells):
            return []
        machine = str(cells[0].parameters.get("machine", "")).removeprefix(PREFIX)
        found.append(Standing(series, machine, cells, known))
    return sorted((one for one in found if one.slowdown == one.slowdown), key=lambda one: one.slowdown)


def equals(ranked: Sequence[Standing]) -> list[Standing]:
    """Others whose mean slowdown the seeds cannot tell from that of the best; none where there is one seed."""
    best = ranked[0].metric(GOAL)
    return [one for one in ranked[1:] if len(best) > 1 and difference(one.metric(GOAL), best).low <= 0]


def lead(ranked: Sequence[Standing]) -> str:
    """The recommendation in one line; combinations that the seeds cannot tell apart are all named."""
    names = [one.said for one in (ranked[0], *equals(ranked)[: NAMED - 1])]
    return f"Run {either(names)}."


def because(ranked: Sequence[Standing]) -> list[str]:
    """How good it is, how sure that is, and how far its machine is from the others."""
    best, alike = ranked[0], equals(ranked)
    seeds = len(best.cells)
    spread = f" Intervals are of 95 %, over {seeds} seeds." if seeds > 1 else ""
    said = [
        f"The mean bounded slowdown is {_shown(mean_interval(best.metric(GOAL)))}: time from submission to end over the time "
        f"that a job takes with everything beside it.{spread}"
    ]
    if len(ranked) > 1:
        more = f" (nor from those of {len(alike) - NAMED + 1} more)" if len(alike) >= NAMED else ""
        verdict = "with one seed each: how sure the order is, is not known"
        if seeds > 1:
            verdict = "and the seeds tell this one from all others"
        if alike:
            verdict = f"and the seeds cannot tell the slowdowns of those in the headline apart{more}"
        said.append(f"{len(ranked)} combinations were run, {verdict}.")
    rivals = [one for one in ranked[1:] if one.machine == best.machine][:1]
    rivals += [next(one for one in ranked if one.machine == name) for name in _machines(ranked) if name != best.machine]
    for rival in rivals:
        behind = difference(rival.metric(GOAL), best.metric(GOAL))
        verdict = _verdict(behind)
        role = "Next on the same machine" if rival.machine == best.machine else f"Best on {rival.machine}"
        said.append(f"{role}: {rival.policies or rival.label}, with {_shown(behind)} more{verdict}.")
    return said


def _verdict(behind: Interval) -> str:
    if behind.n < 2:
        return ""
    return "; the interval excludes zero" if behind.low > 0 else "; the two cannot be told apart"


def sections(ranked: Sequence[Standing], first: str) -> list[PageSection]:
    """What is stranded on each machine, and what another one than the `first` costs; each under its best policies."""
    tops = {name: next(one for one in ranked if one.machine == name) for name in _machines(ranked)}
    stranded = [
        f"{name or 'The machine'} under its best policies ({top.policies or 'as written'}): "
        + ", ".join(f"{resource} {_percent(mean_interval(top.stranded(resource)))}" for resource in _resources(top))
        + "."
        for name, top in tops.items()
    ]
    stranded.append("Stranded is what is free while waiting jobs ask for as much of it; what nobody asks for is not counted.")
    found = [PageSection("What is stranded", stranded)]
    base = tops.get(first)
    others = [top for name, top in tops.items() if name != first]
    if base is not None and others:
        found.append(
            PageSection("What another machine returns and costs", [line for top in others for line in _costs(base, top)])
        )
    return found


def _costs(base: Standing, other: Standing) -> list[str]:
    """Differences of a machine to the first one."""
    slower = difference(other.metric(GOAL), base.metric(GOAL))
    longer = difference(other.metric("mean_degradation"), base.metric("mean_degradation"))
    watts = difference(other.watts, base.watts)
    said = [
        f"{other.said} against {base.said}: mean bounded slowdown {_shown(slower, '+')}, "
        f"runs longer by {_percent(longer, '+')} of the time with everything beside them."
    ]
    if other.dollars == other.dollars and base.dollars == base.dollars:
        more = other.dollars - base.dollars
        said.append(f"To buy: {more:+,.0f} $ ({100 * more / base.dollars:+.0f} %).")
    if watts.mean == watts.mean:
        share = 100 * watts.mean / mean_interval(base.watts).mean
        said.append(f"Power: {_shown(watts, '+')} W ({share:+.0f} %), each over its own measured time.")
    lost = [max(sum(cell.rejected.values()) for cell in one.cells) for one in (base, other)]
    if lost[0] != lost[1]:
        said.append(f"Jobs that can never run: {lost[1]} instead of {lost[0]}; slowdowns leave them out on both.")
    return said


def table(ranked: Sequence[Standing]) -> PageTable:
    """Every combination, best first."""
    rows = []
    for one in ranked:
        behind = "" if one is ranked[0] else _shown(difference(one.metric(GOAL), ranked[0].metric(GOAL)), "+")
        worst = max(_resources(one), key=lambda name: mean_interval(one.stranded(name)).mean)
        cells = [
            one.label,
            _shown(mean_interval(one.metric(GOAL))),
            behind,
            format_time(mean_interval(one.metric("mean_wait_s")).mean),
            f"{100 * mean_interval(one.metric('mean_degradation')).mean:.1f}",
            f"{worst} {_percent(mean_interval(one.stranded(worst)))}",
            f"{mean_interval(one.watts).mean:,.0f}",
            f"{one.dollars:,.0f}",
        ]
        rows.append(TableRow(cells, "chosen" if one is ranked[0] else ""))
    header = ["", "mean bounded slowdown", "more than the best", "mean wait", "longer runs (%)", "most stranded", "W", "$"]
    return PageTable("Machines and policies", header, rows, _CAPTION)


def by_tables(result: StudyResult, ranked: Sequence[Standing]) -> PageTable | None:
    """The best combination on each machine by every power table and price list of the study; None where there is one each."""
    rows = []
    for top in (next(one for one in ranked if one.machine == name) for name in _machines(ranked)):
        found: dict[str, list[CellResult]] = {}
        keys = {cell.key for cell in top.cells}
        for cell in result.cells:
            if cell.key in keys:
                found.setdefault(_tables(cell), []).append(cell)
        if len(found) < 2:
            return None
        for label, cells in found.items():
            watts = _shown(mean_interval([cell.watts for cell in cells]))
            rows.append(TableRow([top.label, label, watts, f"{cells[0].dollars:,.0f}"]))
    caption = "The same runs, measured with each table: what is varied of watts and prices changes no schedule."
    return PageTable("Watts and dollars by each table", ["", "tables", "W", "$"], rows, caption, text=True)


def _tables(cell: CellResult) -> str:
    """What a cell takes of power tables and price lists, as the study wrote it."""
    chosen = [(path, value) for path, value in cell.parameters.items() if path.partition(".")[0] in ("power", "prices")]
    return ", ".join(f"{path} {str(value).removeprefix(PREFIX)}" for path, value in chosen)


def figures(ranked: Sequence[Standing]) -> list[Figure]:
    """What is stranded on each machine under its best policies, and slowdown against power of all combinations."""
    tops = {name: next(one for one in ranked if one.machine == name) for name in _machines(ranked)}
    names = _resources(ranked[0])
    bars = Bars(
        "stranded",
        "What is idle although jobs wait for it",
        "Share of each resource that is free while waiting jobs ask for as much, under the best policies of each machine.",
        groups=names,
        series={machine or "all": [_share(top, name) for name in names] for machine, top in tops.items()},
        y_axis=Axis("stranded (%)"),
    )
    if any(watts != watts for one in ranked for watts in one.watts):
        return [bars]
    points = {
        name: [(mean_interval(o.metric(GOAL)), mean_interval([w / 1000 for w in o.watts])) for o in ranked if o.machine == name]
        for name in tops
    }
    low = min(power.mean for pairs in points.values() for _, power in pairs)
    scatter = Scatter(
        "slowdown_power",
        "Slowdown against power",
        "Each combination once, with 95 % intervals over the seeds; to the left is faster, below draws less.",
        series={name or "all": ([x.mean for x, _ in pairs], [y.mean for _, y in pairs]) for name, pairs in points.items()},
        spread={name or "all": _bounds(pairs) for name, pairs in points.items() if pairs[0][0].n > 1},
        x_axis=Axis("mean bounded slowdown"),
        y_axis=Axis("mean power (kW)", limits=(0.8 * low, None)),
    )
    return [bars, scatter]


def difference(one: Sequence[float], other: Sequence[float]) -> Interval:
    """Paired difference over the seeds."""
    return mean_interval([a - b for a, b in zip(one, other, strict=True)])


def _bounds(pairs: Sequence[tuple[Interval, Interval]]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Low and high of each slowdown, then of each power."""
    slow, power = zip(*pairs, strict=True)
    return [x.low for x in slow], [x.high for x in slow], [y.low for y in power], [y.high for y in power]


def _share(one: Standing, resource: str) -> float:
    """Percent of a resource that is stranded."""
    return 100 * mean_interval(one.stranded(resource)).mean


def _machines(ranked: Sequence[Standing]) -> list[str]:
    return list(dict.fromkeys(one.machine for one in ranked))


def _resources(one: Standing) -> list[str]:
    return list(one.used[0].use)


def _shown(value: Interval, sign: str = "") -> str:
    return _interval(value, lambda x: spoken_number(x, sign))


def _percent(value: Interval, sign: str = "") -> str:
    return _interval(value, lambda x: spoken_number(round(100 * x, 1) + 0.0, sign)) + " %"


def _interval(value: Interval, write: Callable[[float], str]) -> str:
    return f"{write(value.mean)} [{write(value.low)}, {write(value.high)}]" if value.n > 1 else write(value.mean)
