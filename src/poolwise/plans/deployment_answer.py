"""Answer of a deployment plan: the best candidate, the reasons, and the gain from a few units of a type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from poolwise.arrays import BoolArray, FloatArray
from poolwise.comparison.ranking import CandidateRanking, State
from poolwise.hashing import Json
from poolwise.metrics import Interval, mean_interval
from poolwise.optimize.front import front
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_file import DeploymentSection
from poolwise.plans.front_search import FrontSearch
from poolwise.plans.prices import bill
from poolwise.plans.sizes import Size
from poolwise.plans.units import MeasuredUnits, UnitStudy, microseconds, placement_name, seeds_note
from poolwise.presentation.answer import Answer, Certainty, DecisionCard
from poolwise.presentation.cost import format_dollars
from poolwise.presentation.figure import Axis, Curves, Figure, Scatter
from poolwise.presentation.format import (
    energy_unit,
    format_energy,
    format_number,
    humanize_name,
    latency_name,
    latency_unit,
    sentence_case,
)

OBJECTIVES = ("latency_us", "purchase_cost", "energy_j")
"""Objectives of the Pareto front; lower is better."""
MEASURED = (*OBJECTIVES, "utilization", "jobs")
OTHER_COUNT = "a different number of units than requested"
"""Reason for exclusion that needs no note, because it applies to most combinations."""
EIGHTY, TWENTY = 0.8, 0.2


@dataclass(frozen=True, eq=False)
class MeasuredDeployments(MeasuredUnits):
    """Deployments ordered by cost, then latency, then energy; the columns of `values` are those of `MEASURED`.

    Attributes
    ----------
    section, sizes : [plan], and its numbers of units
    on_front : (n,) candidates on the Pareto front
    states : keeps, breaks or undecided, one per candidate
    margins : margin of the latency, one per candidate, in us or multiples of the fastest candidate; None without a target
    utility : (n,) weighted sum of the objectives
    """

    section: DeploymentSection
    sizes: Sequence[Size]
    on_front: BoolArray
    states: tuple[State, ...]
    margins: tuple[Interval, ...] | None
    utility: FloatArray

    @classmethod
    def of(
        cls, section: DeploymentSection, sizes: Sequence[Size], records: Mapping[Element, Sequence[Json]]
    ) -> MeasuredDeployments:
        """Collect the measurements of each candidate from its records, one per seed."""
        values = np.array([[[run[name] for name in MEASURED] for run in each] for each in records.values()], dtype=np.float64)
        means, measured = values.mean(axis=1), list(records)
        order = sorted(range(len(measured)), key=lambda k: (means[k, 1], means[k, 0], means[k, 2], measured[k]))
        values, means = values[order], means[order]
        weights = np.array([{str(n): weight for n, weight in section.utility.items()}.get(name, 0.0) for name in OBJECTIVES])
        elements = tuple(measured[k] for k in order)
        states, margins = _judge(section, values)
        utility = means[:, :3] @ weights
        return cls(elements, values, section, sizes, front(means[:, :3]), states, margins, utility)

    def counts(self, k: int) -> list[int]:
        """Return the number of units of each type of a candidate."""
        return [int(size.amount[place]) for size, place in zip(self.sizes, self.elements[k], strict=False)]

    def ranking(self) -> CandidateRanking[int]:
        """Rank the candidates by utility."""
        ranked = sorted(
            range(len(self.elements)), key=lambda k: (float(self.utility[k]), *self.means[k, :3].tolist(), self.elements[k])
        )
        return CandidateRanking.of(ranked, lambda k: self.states[k], lambda k: float(self.utility[k]))

    def label(self, k: int) -> str:
        """Return the units of a candidate, and its placement if the plan has several."""
        units = " and ".join(f"{n:,} {unit.type}" for unit, n in zip(self.section.unit, self.counts(k), strict=True) if n)
        placed = (
            f' with placement "{placement_name(self.section, self.elements[k])}"' if len(self.section.placement) > 1 else ""
        )
        return f"{units}{placed}"


def _judge(section: DeploymentSection, values: FloatArray) -> tuple[tuple[State, ...], tuple[Interval, ...] | None]:
    """Judge whether the mean latency of each candidate over the seeds meets the target.

    Margins are us below the bound. For a target relative to the fastest candidate, they are multiples of its latency with the
    same seed, because the achievable latency differs more between seeds than between candidates.
    """
    target = section.target
    if target is None:
        return tuple("keeps" for _ in values), None
    latency = values[:, :, 0]
    if target.within is not None:
        margin = target.within - latency / latency[np.argmin(latency.mean(axis=1))]
    else:
        assert target.at_most is not None  # the section requires one of both
        margin = target.at_most - latency
    margins = []
    for row in margin:
        interval = mean_interval(row)
        margins.append(
            interval if interval.n > 1 else Interval(interval.mean, interval.mean, interval.mean, interval.level, interval.n)
        )
    states: tuple[State, ...] = tuple("keeps" if m.low >= 0 else "breaks" if m.high < 0 else "undecided" for m in margins)
    return states, tuple(margins)


def deployment_figures(measured: MeasuredDeployments, best: int | None) -> list[Figure]:
    """Draw the gain from a few units, and each candidate's latency by its cost and its energy."""
    figures: list[Figure] = []
    gains = gains_of(measured)
    if gains:
        kind = measured.section.unit[-1].type
        x = sorted({share for rows in gains.values() for share, _, _ in rows})
        series = {}
        for policy, rows in gains.items():
            gain_at = {share: 100 * gain for share, gain, _ in rows}
            series[humanize_name(policy)] = [gain_at.get(share, float("nan")) for share in x]
        figures.append(
            Curves(
                "few_units",
                f"Latency gain by share of {kind}",
                f"Share of the possible latency gain between the fewest {kind} and the best number of them. The 80-20 rule "
                "would place 80 % of the gain at 20 % of the units.",
                x=[100 * share for share in x],
                series={**series, "80 % of the gain": [80.0] * len(x)},
                x_axis=Axis(f"{kind} among the units (%)"),
                y_axis=Axis("share of the latency gain (%)"),
                highlight=100 * TWENTY,
            )
        )
    unit, size = latency_unit(float(measured.means[:, 0].max()))
    energy, joules = energy_unit(float(measured.means[:, 2].max()))
    y_axis = Axis(f"{latency_name(measured.section.latency)} of jobs ({unit})", log=True)
    caption = "One point per candidate; the front is the Pareto front of latency, purchase cost and energy together."
    for name, label, k, scale in (("cost", "purchase cost ($)", 1, 1.0), ("energy", f"energy ({energy})", 2, joules)):
        costs, latencies = measured.means[:, k] / scale, measured.means[:, 0] / size
        groups = {"on the front": measured.on_front, "not on the front": ~measured.on_front}
        series_of = {group: (costs[rows].tolist(), latencies[rows].tolist()) for group, rows in groups.items() if rows.any()}
        if best is not None:
            series_of["the answer"] = ([float(costs[best])], [float(latencies[best])])
        title = f"Latency by {label.partition(' (')[0]}"
        figures.append(Scatter(f"front_{name}", title, caption, series=series_of, x_axis=Axis(label), y_axis=y_axis))
    return figures


def gains_of(measured: MeasuredDeployments) -> dict[str, list[tuple[float, float, int]]]:
    """Return policy -> rows (share of the last type among all units, share of the possible latency gain, row), ascending.

    The gain is defined for a fixed number of units of two types: 0 at the fewest units of the last type, 1 at the lowest
    latency. Other plans return {}.
    """
    section = measured.section
    if section.units is None or len(section.unit) != 2:
        return {}
    gains: dict[str, list[tuple[float, float, int]]] = {}
    for p, choice in enumerate(section.placement):
        rows = sorted(
            (k for k in range(len(measured.elements)) if measured.elements[k][-1] == p), key=lambda k: measured.counts(k)[1]
        )
        latency = measured.means[rows, 0]
        possible = float(latency[0] - latency.min()) if len(rows) else 0.0
        if possible > 0:
            shares = [measured.counts(k)[1] / section.units for k in rows]
            gains[str(choice)] = [
                (s, float((latency[0] - y) / possible), k) for s, y, k in zip(shares, latency, rows, strict=True)
            ]
    return gains


def eighty_twenty(measured: MeasuredDeployments) -> Json | None:
    """Return, per policy, the least share of the last type that gives 80 % of the gain, and the gain with 20 % of the units."""
    answers: Json = {}
    for policy, rows in gains_of(measured).items():
        enough = next((share, k) for share, gain, k in rows if gain >= EIGHTY)
        few = [gain for share, gain, _ in rows if share <= TWENTY + 1e-9]
        cost = measured.means[:, 1]
        answers[policy] = {
            "share_for_80_percent": enough[0],
            "cost_for_80_percent": float(cost[enough[1]]),
            "gain_of_20_percent": few[-1] if few else None,
            "cost_of_all": float(cost[rows[-1][2]]),
        }
    return answers or None


def deployment_answer(
    section: DeploymentSection,
    study: UnitStudy,
    sizes: Sequence[Size],
    elements: Sequence[Element],
    left_out: Mapping[str, int],
    search: FrontSearch,
) -> Answer:
    """Combine the records of a search into an answer.

    `elements` are all candidates, and `left_out` maps a reason to the number of excluded ones.
    """
    measured = MeasuredDeployments.of(section, sizes, search.records)
    ranking = measured.ranking()
    best, exhaustive = ranking.best, len(search.records) == len(elements)
    content: Json = {
        "latency": f"{section.latency} of the jobs' latency, us",
        "purchase_cost": "purchase cost of all units, $",
        "utility": dict(section.utility),
        "front": [_candidate(measured, k) for k in np.flatnonzero(measured.on_front).tolist()],
        "search": {
            "exhaustive": exhaustive,
            "candidates": len(elements),
            "measured": len(search.records),
            "runs": search.n_runs,
        },
        "left_out": dict(left_out),
        "eighty_twenty": eighty_twenty(measured),
    }
    return ranking.answer(
        range(len(measured.elements)),
        _frame(measured),
        partial(_candidate, measured),
        content,
        deployment_figures(measured, best),
        headline=_headline(measured, ranking),
        because=list(_because(measured, ranking)),
        sections={
            "Gain from a few units": list(_few_units(measured)),
            "Method": list(_method(content, section.seeds, exhaustive)),
        },
        notes=[f"{count:,} combinations were excluded: {why}." for why, count in left_out.items() if why != OTHER_COUNT],
        inputs=study.inputs(keys=False),
        seeds=list(range(section.seeds)),
        decision=None if best is None else _decision(measured, [k for k in (best, ranking.runner_up) if k is not None]),
        cost=None if best is None else bill(sizes, measured.counts(best)),
    )


# Sentences


def _headline(measured: MeasuredDeployments, ranking: CandidateRanking[int]) -> str:
    if ranking.status == "infeasible":
        return "No deployment meets the target."
    if ranking.best is None:
        return "Undecided: no deployment is shown to meet the latency target."
    text = f"{measured.label(ranking.best)}, for {format_dollars(measured.means[ranking.best, 1])}"
    if ranking.undecided is not None:
        return f"{text}, is enough; these seeds do not decide whether less is enough."
    return f"Buy {text}."


def _decision(measured: MeasuredDeployments, shown: Sequence[int]) -> DecisionCard:
    """Summarize the answer and, if there is one, the runner-up."""
    section, means = measured.section, measured.means
    choice = [[f"Units: {unit.type}", *(f"{measured.counts(k)[u]:,}" for k in shown)] for u, unit in enumerate(section.unit)]
    if len(section.placement) > 1:
        choice.append(["Placement", *(placement_name(section, measured.elements[k]) for k in shown)])
    effects = [
        [sentence_case(f"{latency_name(section.latency)} of jobs"), *(microseconds(means[k, 0]) for k in shown)],
        ["Purchase cost", *(format_dollars(means[k, 1]) for k in shown)],
        ["Energy", *(format_energy(means[k, 2]) for k in shown)],
        ["Utilization of units", *(f"{100 * means[k, 3]:.3g} %" for k in shown)],
    ]
    reference = "runner-up" if len(shown) > 1 else ""
    return DecisionCard(choice, effects, _certainty(measured, shown[0]), reference, seeds_note(section.seeds))


def _certainty(measured: MeasuredDeployments, best: int) -> Certainty:
    seeds = measured.section.seeds
    if measured.margins is None:
        return Certainty("unknown", samples=seeds, over="seeds", remark="no target: the means decide")
    if seeds == 1:
        return Certainty("unknown", samples=1, over="seeds", remark="unknown (one seed)")
    margin = measured.margins[best]
    return Certainty("meets", margin.level, seeds, "seeds", (margin.low, margin.high))


def _because(measured: MeasuredDeployments, ranking: CandidateRanking[int]) -> Iterator[str]:
    best, rival = ranking.best, ranking.runner_up
    if best is not None:
        yield f"It has the lowest {_utility(measured)} of the deployments that meet the target: {_describe(measured, best)}."
    if rival is not None:
        yield f"The runner-up, {measured.label(rival)}: {_describe(measured, rival)}."
    if ranking.undecided is not None:
        yield _undecided(measured, ranking.undecided, best)
    fastest = int(np.argmin(measured.means[:, 0]))
    yield f"The fastest of all, {measured.label(fastest)}: {_describe(measured, fastest)}."
    yield f"{int(measured.on_front.sum()):,} candidates are on the Pareto front of latency, purchase cost and energy."


def _undecided(measured: MeasuredDeployments, k: int, best: int | None) -> str:
    """Compare a candidate of undecided verdict with the answer, by utility and latency, and then with the target."""
    text = f"{measured.label(k)} is not shown to meet or to miss the target with these seeds: {_describe(measured, k)}."
    if best is None:
        return text
    latency = mean_interval(measured.values[k, :, 0] - measured.values[best, :, 0])
    slower = (
        "but slower" if latency.low > 0 else "and faster" if latency.high < 0 else "and not distinguishable from it in latency"
    )
    better = f"Cheaper than the answer by {format_dollars(measured.means[best, 1] - measured.means[k, 1])}"
    if set(measured.section.utility) != {"purchase_cost"}:
        values = f"{format_number(measured.utility[k])} instead of {format_number(measured.utility[best])}"
        better = f"With a lower {_utility(measured)} than the answer ({values})"
    return f"{better}, {slower}: {text}"


def _utility(measured: MeasuredDeployments) -> str:
    weights = measured.section.utility.items()
    words = [f"{weight:g} x {humanize_name(name)}" if weight != 1 else humanize_name(name) for name, weight in weights]
    return " + ".join(words)


def _describe(measured: MeasuredDeployments, k: int) -> str:
    latency, cost, energy, utilization, _ = measured.means[k].tolist()
    text = f"{latency_name(measured.section.latency)} {microseconds(latency)}{_compared_with_target(measured, k)}"
    return f"{text}, cost {format_dollars(cost)}, {format_energy(energy)}, {100 * utilization:.3g} % utilization"


def _compared_with_target(measured: MeasuredDeployments, k: int) -> str:
    """Compare the latency with the target, with the interval over the seeds."""
    target = measured.section.target
    if target is None or measured.margins is None or (target.within is not None and k == int(np.argmin(measured.means[:, 0]))):
        return ""
    margin, sure = measured.margins[k], measured.section.seeds > 1
    if target.within is not None:
        times = [format_number(target.within - value) for value in (margin.mean, margin.high, margin.low)]
        between = f" [{times[1]} to {times[2]}]" if sure else ""
        return f" ({times[0]}{between} times the fastest's; target: at most {target.within:g} times)"
    assert target.at_most is not None  # the section requires one of both
    low, high = (microseconds(target.at_most - value) for value in (margin.high, margin.low))
    return f" ({f'[{low} to {high}]; ' if sure else ''}target: at most {microseconds(target.at_most)})"


def _method(content: Json, seeds: int, exhaustive: bool) -> Iterator[str]:
    search = content["search"]
    runs = f"{search['runs']:,} runs"
    if exhaustive:
        yield f"All {search['candidates']:,} candidates were simulated ({runs}): the front is exact for these runs."
    else:
        yield (
            f"{search['measured']:,} of {search['candidates']:,} candidates were fully simulated ({runs} in total): successive "
            "halving of a random sample on parts of the jobs, then local moves from the front. The search may miss candidates."
        )
    if seeds > 1:
        yield f"Means over {seeds} seeds, the same for all candidates; the 95 % intervals of the margins are over the seeds."


def _few_units(measured: MeasuredDeployments) -> Iterator[str]:
    kind = measured.section.unit[-1].type
    for policy, gain in (eighty_twenty(measured) or {}).items():
        few, share, cost = (gain[name] for name in ("gain_of_20_percent", "share_for_80_percent", "cost_for_80_percent"))
        first = "" if few is None else f" If 20 % of the units are {kind}, the gain is {100 * few:.3g} % of the possible gain."
        yield (
            f'With "{humanize_name(policy)}", 80 % of the possible latency gain from {kind} needs {100 * share:.3g} % of the '
            f"units as {kind}, for {format_dollars(cost)}; only {kind} would cost {format_dollars(gain['cost_of_all'])}.{first}"
        )


# Rows, plain data


def _frame(measured: MeasuredDeployments) -> pl.DataFrame:
    section, means = measured.section, measured.means
    columns: dict[str, object] = {
        unit.type: [measured.counts(k)[u] for k in range(len(measured.elements))] for u, unit in enumerate(section.unit)
    }
    columns["placement"] = [str(section.placement[element[-1]]) for element in measured.elements]
    columns |= {name: means[:, k] for k, name in enumerate(MEASURED)}
    columns["utility"] = measured.utility
    columns["front"] = measured.on_front
    columns["verdict"] = list(measured.states)
    return pl.DataFrame(columns)


def _candidate(measured: MeasuredDeployments, k: int) -> Json:
    section = measured.section
    content: Json = {
        "units": {unit.type: n for unit, n in zip(section.unit, measured.counts(k), strict=True)},
        "placement": str(section.placement[measured.elements[k][-1]]),
        **dict(zip(MEASURED, measured.means[k].tolist(), strict=True)),
        "utility": float(measured.utility[k]),
        "verdict": measured.states[k],
    }
    if measured.margins is not None:
        margin = measured.margins[k]
        content |= {"margin": margin.mean, "margin_low": margin.low, "margin_high": margin.high}
    return content
