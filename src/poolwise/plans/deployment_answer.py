"""Answer of a deployment plan: the best candidate, the reasons, and the gain from a few units of a type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_figures import deployment_figures, eighty_twenty
from poolwise.plans.deployment_measured import MeasuredDeployments, measure_deployments
from poolwise.plans.deployment_tasks import MEASURED, DeploymentTaskType
from poolwise.plans.plan import Answer, PlanStatus
from poolwise.presentation.format import format_energy, format_number, humanize_name, latency_name, sentence_case
from poolwise.presentation.table import Table
from poolwise.units import format_time

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
    """Combine the runs of deployments into an answer.

    Parameters
    ----------
    task_type
        The plan and its tables.
    elements, left_out
        All candidates, and reason -> number of excluded ones.
    measured, runs
        Fully simulated candidates, and their runs, one per seed.
    n_runs
        Total number of runs, including those of lower rungs.
    """
    found = measure_deployments(task_type, measured, runs)
    keeping, open_ = found.ranked("keeps"), found.ranked("undecided")
    best = keeping[0] if keeping else None
    cheaper = [k for k in open_ if best is None or found.utility[k] < found.utility[best]]
    exhaustive = len(measured) == len(elements)
    status: PlanStatus = "undecided" if cheaper else "infeasible" if best is None else "decided"
    frame = _frame(found)
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
        figures=deployment_figures(found, best),
        candidates=frame,
        chosen=best,
        content=content,
        inputs=task_type.tables.sha256,
        seeds=list(range(task_type.section.seeds)),
        card=None if best is None else _card(found, best, keeping[1] if len(keeping) > 1 else None),
    )


# Sentences


def _headline(found: MeasuredDeployments, best: int | None, undecided: bool) -> str:
    if best is None:
        return (
            "Undecided: no deployment is shown to meet the latency target." if undecided else "No deployment meets the target."
        )
    text = f"{found.label(best)}, for {found.means[best, 1]:,.6g}"
    return f"{text}, is enough; whether less is enough is undecided with these seeds." if undecided else f"Buy {text}."


def _card(found: MeasuredDeployments, best: int, rival: int | None) -> Table:
    """Summarize the answer and the runner-up."""
    section = found.task_type.section
    shown = [best, *([] if rival is None else [rival])]
    rows = [[f"Units: {unit.type}", *(f"{found.counts[k][u]:,}" for k in shown)] for u, unit in enumerate(section.unit)]
    if len(section.placement) > 1:
        rows.append(["Placement", *map(found.placement, shown)])
    rows.append(["Certainty", _certainty(found), ""][: 1 + len(shown)])
    latencies = [format_time(found.means[k, 0] / 1e6) for k in shown]
    rows.append([f"{sentence_case(latency_name(section.latency))} of jobs", *latencies])
    rows.append(["Purchase cost", *(_plain_number(found.means[k, 1]) for k in shown)])
    rows.append(["Energy", *(format_energy(found.means[k, 2]) for k in shown)])
    rows.append(["Utilization of units", *(f"{100 * found.means[k, 3]:.3g} %" for k in shown)])
    note = f"Means over {section.seeds} seeds, the same for all candidates." if section.seeds > 1 else "One seed."
    return Table("Decision", ["", "recommended", "runner-up"][: 1 + len(shown)], rows, note)


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
