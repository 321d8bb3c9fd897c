"""Answer of a deployment plan: the best candidate, the reasons, and the gain from a few units of a type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_measured import MeasuredDeployments, measure_deployments
from poolwise.plans.deployment_tasks import MEASURED, DeploymentTaskType
from poolwise.presentation.answer import Answer, AnswerStatus, DecisionCard
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
from poolwise.presentation.table import frame_table
from poolwise.units import format_time

EIGHTY, TWENTY = 0.8, 0.2


def deployment_figures(found: MeasuredDeployments, best: int | None) -> list[Figure]:
    """Draw the gain from a few units, and each candidate's latency by its cost and its energy."""
    figures: list[Figure] = []
    gains = gains_of(found)
    if gains:
        kind = found.task_type.section.unit[-1].type
        x = sorted({share for rows in gains.values() for share, _, _ in rows})
        series = {}
        for policy, rows in gains.items():
            known = {share: 100 * gain for share, gain, _ in rows}
            series[humanize_name(policy)] = [known.get(share, float("nan")) for share in x]
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
    unit, size = latency_unit(float(found.means[:, 0].max()))
    energy, joules = energy_unit(float(found.means[:, 2].max()))
    y_axis = Axis(f"{latency_name(found.task_type.section.latency)} of jobs ({unit})", log=True)
    caption = "One point per candidate; the front is the Pareto front of latency, purchase cost and energy together."
    for name, label, k, scale in (("cost", "purchase cost", 1, 1.0), ("energy", f"energy ({energy})", 2, joules)):
        costs, latencies = found.means[:, k] / scale, found.means[:, 0] / size
        groups = {"on the front": found.on_front, "not on the front": ~found.on_front}
        series_of = {group: (costs[rows].tolist(), latencies[rows].tolist()) for group, rows in groups.items() if rows.any()}
        if best is not None:
            series_of["the answer"] = ([float(costs[best])], [float(latencies[best])])
        title = f"Latency by {label.partition(' (')[0]}"
        figures.append(Scatter(f"front_{name}", title, caption, series=series_of, x_axis=Axis(label), y_axis=y_axis))
    return figures


def gains_of(found: MeasuredDeployments) -> dict[str, list[tuple[float, float, int]]]:
    """Return policy -> (share of the last type among all units, share of the possible latency gain, row), ascending.

    The gain is defined for a fixed number of units of two types: 0 at the fewest units of the last type, 1 at the lowest
    latency. Other plans return {}.
    """
    section = found.task_type.section
    if section.units is None or len(section.unit) != 2:
        return {}
    gains: dict[str, list[tuple[float, float, int]]] = {}
    for p, choice in enumerate(section.placement):
        rows = sorted((k for k in range(len(found.elements)) if found.elements[k][-1] == p), key=lambda k: found.counts[k][1])
        latency = found.means[rows, 0]
        possible = float(latency[0] - latency.min()) if len(rows) else 0.0
        if possible > 0:
            shares = [found.counts[k][1] / section.units for k in rows]
            gains[str(choice)] = [
                (s, float((latency[0] - y) / possible), k) for s, y, k in zip(shares, latency, rows, strict=True)
            ]
    return gains


def eighty_twenty(found: MeasuredDeployments) -> Json | None:
    """Return, per policy, the least share of the last type with 80 % of the gain, and the gain with 20 % of the units."""
    answers: Json = {}
    for policy, rows in gains_of(found).items():
        enough = next((share, k) for share, gain, k in rows if gain >= EIGHTY)
        few = [gain for share, gain, _ in rows if share <= TWENTY + 1e-9]
        cost = found.means[:, 1]
        answers[policy] = {
            "share_for_80_percent": enough[0],
            "cost_for_80_percent": float(cost[enough[1]]),
            "gain_of_20_percent": few[-1] if few else None,
            "cost_of_all": float(cost[rows[-1][2]]),
        }
    return answers or None


OTHER_COUNT = "another number of units than requested"
"""Reason that is not worth a note: most combinations are excluded for it."""


def deployment_answer(
    task_type: DeploymentTaskType,
    elements: Sequence[Element],
    left_out: Mapping[str, int],
    measured: Sequence[Element],
    runs: Mapping[Element, Sequence[Json]],
    n_runs: int,
) -> Answer:
    """Combine the runs of deployments, one per seed for each fully simulated candidate, into an answer.

    `elements` are all candidates, `left_out` maps a reason to the number of excluded ones, and `n_runs` counts all runs,
    including those of lower rungs.
    """
    found = measure_deployments(task_type, measured, runs)
    keeping, open_ = found.ranked("keeps"), found.ranked("undecided")
    best = keeping[0] if keeping else None
    cheaper = [k for k in open_ if best is None or found.utility[k] < found.utility[best]]
    exhaustive = len(measured) == len(elements)
    status: AnswerStatus = "undecided" if cheaper else "infeasible" if best is None else "decided"
    frame, (main, *figures) = _frame(found), deployment_figures(found, best)
    content: Json = {
        "latency": f"{task_type.section.latency} of the jobs' latency, us",
        "utility": dict(task_type.section.utility),
        "chosen": None if best is None else _candidate(found, best),
        "runner_up": _candidate(found, keeping[1]) if len(keeping) > 1 else None,
        "cheaper_but_undecided": _candidate(found, cheaper[0]) if cheaper else None,
        "front": [_candidate(found, k) for k in np.flatnonzero(found.on_front).tolist()],
        "search": {"exhaustive": exhaustive, "candidates": len(elements), "measured": len(measured), "runs": n_runs},
        "left_out": dict(left_out),
        "eighty_twenty": eighty_twenty(found),
    }
    return Answer(
        status=status,
        headline=_headline(found, best, bool(cheaper)),
        because=list(_because(found, keeping, cheaper)),
        sections={"Gain from a few units": list(_few_units(found)), "Method": list(_method(content, task_type, exhaustive))},
        notes=[f"{count:,} combinations were excluded: {why}." for why, count in left_out.items() if why != OTHER_COUNT],
        main=main,
        figures=figures,
        tables=[frame_table(frame, best)],
        candidates=frame,
        chosen=best,
        content=content,
        inputs=task_type.tables.sha256,
        seeds=list(range(task_type.section.seeds)),
        decision=None if best is None else _decision(found, keeping[:2]),
    )


# Sentences


def _headline(found: MeasuredDeployments, best: int | None, undecided: bool) -> str:
    if best is None:
        return (
            "Undecided: no deployment is shown to meet the latency target." if undecided else "No deployment meets the target."
        )
    text = f"{found.label(best)}, for {found.means[best, 1]:,.6g}"
    return f"{text}, is enough; whether less is enough is undecided with these seeds." if undecided else f"Buy {text}."


def _decision(found: MeasuredDeployments, shown: Sequence[int]) -> DecisionCard:
    """Summarize the answer and, if there is one, the runner-up."""
    section, means = found.task_type.section, found.means
    choice = [[f"Units: {unit.type}", *(f"{found.counts[k][u]:,}" for k in shown)] for u, unit in enumerate(section.unit)]
    if len(section.placement) > 1:
        choice.append(["Placement", *map(found.placement, shown)])
    effects = [
        [f"{sentence_case(latency_name(section.latency))} of jobs", *(format_time(means[k, 0] / 1e6) for k in shown)],
        ["Purchase cost", *(_plain_number(means[k, 1]) for k in shown)],
        ["Energy", *(format_energy(means[k, 2]) for k in shown)],
        ["Utilization of units", *(f"{100 * means[k, 3]:.3g} %" for k in shown)],
    ]
    return DecisionCard(choice, effects, _certainty(found), "runner-up" if len(shown) > 1 else "", seeds_note(section.seeds))


def seeds_note(seeds: int) -> str:
    """State over how many seeds the values of candidates are means."""
    return f"Means over {seeds} seeds, the same for all candidates." if seeds > 1 else "One seed."


def _certainty(found: MeasuredDeployments) -> str:
    if found.margins is None:
        return "no target: the means decide"
    if found.task_type.section.seeds == 1:
        return "unknown (one seed)"
    return f"the 95 % interval of the margin over {found.task_type.section.seeds} seeds clears the target"


def _because(found: MeasuredDeployments, keeping: Sequence[int], cheaper: Sequence[int]) -> Iterator[str]:
    if keeping:
        yield f"It has the lowest {_utility(found)} of the deployments that meet the target: {_describe(found, keeping[0])}."
    if len(keeping) > 1:
        yield f"The runner-up, {found.label(keeping[1])}: {_describe(found, keeping[1])}."
    if cheaper:
        label = found.label(cheaper[0])
        yield f"Better, but not distinguishable from the target with these seeds: {label}: {_describe(found, cheaper[0])}."
    fastest = int(np.argmin(found.means[:, 0]))
    yield f"The fastest of all, {found.label(fastest)}: {_describe(found, fastest)}."
    yield f"{int(found.on_front.sum()):,} candidates are on the Pareto front of latency, purchase cost and energy."


def _utility(found: MeasuredDeployments) -> str:
    weights = found.task_type.section.utility.items()
    words = [f"{weight:g} x {humanize_name(name)}" if weight != 1 else humanize_name(name) for name, weight in weights]
    return " + ".join(words)


def _describe(found: MeasuredDeployments, k: int) -> str:
    latency, cost, energy, utilization, _ = found.means[k].tolist()
    text = f"{latency_name(found.task_type.section.latency)} {format_time(latency / 1e6)}{_compared_with_target(found, k)}"
    return f"{text}, cost {_plain_number(cost)}, {format_energy(energy)}, {100 * utilization:.3g} % utilization"


def _compared_with_target(found: MeasuredDeployments, k: int) -> str:
    """Compare the latency with the target, with the interval over the seeds."""
    target = found.task_type.section.target
    if target is None or found.margins is None or (target.within is not None and k == int(np.argmin(found.means[:, 0]))):
        return ""
    margin, sure = found.margins[k], found.task_type.section.seeds > 1
    if target.within is not None:
        times = [format_number(target.within - value) for value in (margin.mean, margin.high, margin.low)]
        between = f" [{times[1]} to {times[2]}]" if sure else ""
        return f" ({times[0]}{between} times the fastest's; target: at most {target.within:g} times)"
    assert target.at_most is not None  # the section requires one of both
    low, high = (format_time((target.at_most - value) / 1e6) for value in (margin.high, margin.low))
    return f" ({f'[{low} to {high}]; ' if sure else ''}target: at most {format_time(target.at_most / 1e6)})"


def _plain_number(value: float) -> str:
    """Format a number without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _method(content: Json, task_type: DeploymentTaskType, exhaustive: bool) -> Iterator[str]:
    search, seeds = content["search"], task_type.section.seeds
    runs = f"{search['runs']:,} runs"
    if exhaustive:
        yield f"All {search['candidates']:,} candidates were simulated ({runs}): the front is exact for these runs."
    else:
        yield (
            f"{search['measured']:,} of {search['candidates']:,} candidates were fully simulated ({runs} in total): successive "
            "halving of a random sample on parts of the jobs, then local moves from the front. The search may miss candidates."
        )
    if seeds > 1:
        yield f"Means over {seeds} seeds, the same for all candidates; 95 % intervals are those of the margin over the seeds."


def _few_units(found: MeasuredDeployments) -> Iterator[str]:
    kind = found.task_type.section.unit[-1].type
    for policy, gain in (eighty_twenty(found) or {}).items():
        few, share, cost = (gain[name] for name in ("gain_of_20_percent", "share_for_80_percent", "cost_for_80_percent"))
        first = "" if few is None else f" With 20 % of the units as {kind}, the gain is {100 * few:.3g} % of the possible gain."
        yield (
            f'With "{humanize_name(policy)}", 80 % of the possible latency gain from {kind} needs {100 * share:.3g} % of the '
            f"units as {kind}, for {cost:,.6g}; only {kind} would cost {gain['cost_of_all']:,.6g}.{first}"
        )


# Rows, plain data


def _frame(found: MeasuredDeployments) -> pl.DataFrame:
    section, means = found.task_type.section, found.means
    columns: dict[str, object] = {unit.type: [counts[k] for counts in found.counts] for k, unit in enumerate(section.unit)}
    columns["placement"] = [str(section.placement[element[-1]]) for element in found.elements]
    columns |= {name: means[:, k] for k, name in enumerate(MEASURED)}
    columns["utility"] = found.utility
    columns["front"] = found.on_front
    columns["verdict"] = list(found.states)
    return pl.DataFrame(columns)


def _candidate(found: MeasuredDeployments, k: int) -> Json:
    section = found.task_type.section
    content: Json = {
        "units": {unit.type: n for unit, n in zip(section.unit, found.counts[k], strict=True)},
        "placement": str(section.placement[found.elements[k][-1]]),
        **dict(zip(MEASURED, found.means[k].tolist(), strict=True)),
        "utility": float(found.utility[k]),
        "verdict": found.states[k],
    }
    if found.margins is not None:
        margin = found.margins[k]
        content |= {"margin": margin.mean, "margin_low": margin.low, "margin_high": margin.high}
    return content
