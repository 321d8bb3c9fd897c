"""From the runs of deployments to the answer: the best candidate, why, and what a few units of a kind gain."""

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
from poolwise.presentation.format import in_words, latency_name, sentence_case, spoken_energy, spoken_number
from poolwise.presentation.table import Table
from poolwise.units import format_time

ASKED = "another number of units than asked for"
"""Why combinations are left out that nobody misses."""


def deployment_answer(
    bench: DeploymentTaskType,
    elements: Sequence[Element],
    left_out: Mapping[str, int],
    measured: Sequence[Element],
    runs: Mapping[Element, Sequence[Json]],
    trials: int,
) -> Answer:
    """Put the answer together.

    Parameters
    ----------
    elements, left_out
        All candidates, and reason -> number of those that were not considered.
    measured, runs
        Candidates that were fully simulated, and their runs, one a seed.
    trials
        Runs in all, those of lower rungs included.
    """
    found = measure_deployments(bench, measured, runs)
    keeping, open_ = found.ranked("keeps"), found.ranked("undecided")
    best = keeping[0] if keeping else None
    cheaper = [k for k in open_ if best is None or found.utility[k] < found.utility[best]]
    exhaustive = len(measured) == len(elements)
    status: PlanStatus = "undecided" if cheaper else "infeasible" if best is None else "decided"
    frame = _frame(found)
    content: Json = {
        "latency": f"{bench.section.latency} of the jobs' latency, us",
        "utility": dict(bench.section.utility),
        "chosen": None if best is None else _candidate(found, best),
        "runner_up": _candidate(found, keeping[1]) if len(keeping) > 1 else None,
        "cheaper_but_undecided": _candidate(found, cheaper[0]) if cheaper else None,
        "front": [_candidate(found, k) for k in np.flatnonzero(found.on_front).tolist()],
        "search": {"exhaustive": exhaustive, "candidates": len(elements), "measured": len(measured), "runs": trials},
        "left_out": dict(left_out),
        "eighty_twenty": eighty_twenty(found),
    }
    return Answer(
        status=status,
        headline=_headline(found, best, bool(cheaper)),
        because=list(_because(found, keeping, cheaper)),
        sections={"What few units bring": list(_few(found)), "How it was found": list(_how(content, bench, exhaustive))},
        notes=[f"{count:,} combinations were left out: {reason}." for reason, count in left_out.items() if reason != ASKED],
        figures=deployment_figures(found, best),
        candidates=frame,
        chosen=best,
        content=content,
        inputs=bench.tables.sha256,
        seeds=list(range(bench.section.seeds)),
        card=None if best is None else _card(found, best, keeping[1] if len(keeping) > 1 else None),
    )


# Sentences


def _headline(found: MeasuredDeployments, best: int | None, undecided: bool) -> str:
    if best is None:
        return "Undecided: no deployment is shown to be fast enough." if undecided else "No deployment is fast enough."
    words = f"{found.label(best)}, for {found.means[best, 1]:,.6g}"
    return f"{words}, will do; whether less will, these seeds do not tell." if undecided else f"Buy {words}."


def _card(found: MeasuredDeployments, best: int, rival: int | None) -> Table:
    """The answer at a glance, the runner-up beside it."""
    section = found.bench.section
    shown = [best, *([] if rival is None else [rival])]
    rows = [[f"Units: {unit.type}", *(f"{found.counts[k][u]:,}" for k in shown)] for u, unit in enumerate(section.unit)]
    if len(section.placement) > 1:
        rows.append(["Placement", *map(found.placement, shown)])
    rows.append(["How sure that is", _certainty(found), ""][: 1 + len(shown)])
    rows.append([sentence_case(latency_name(section.latency)), *(format_time(found.means[k, 0] / 1e6) for k in shown)])
    rows.append(["Purchase cost", *(_plain(found.means[k, 1]) for k in shown)])
    rows.append(["Energy", *(spoken_energy(found.means[k, 2]) for k in shown)])
    rows.append(["Units busy", *(f"{100 * found.means[k, 3]:.3g} %" for k in shown)])
    note = f"Means over {section.seeds} seeds, the same for all candidates." if section.seeds > 1 else "One seed."
    return Table("Decision", ["", "recommended", "runner-up"][: 1 + len(shown)], rows, note)


def _certainty(found: MeasuredDeployments) -> str:
    if found.margins is None:
        return "no target was set: the means decide"
    if found.bench.section.seeds == 1:
        return "not known: one seed"
    return f"the 95 % interval of the margin over {found.bench.section.seeds} seeds clears the target"


def _because(found: MeasuredDeployments, keeping: Sequence[int], cheaper: Sequence[int]) -> Iterator[str]:
    if keeping:
        yield f"Of those that are fast enough it has the least {_utility(found)}: {_said(found, keeping[0])}."
    if len(keeping) > 1:
        yield f"The runner-up, {found.label(keeping[1])}: {_said(found, keeping[1])}."
    if cheaper:
        yield f"Better, but not told from the target with these seeds: {found.label(cheaper[0])}: {_said(found, cheaper[0])}."
    fastest = int(np.argmin(found.means[:, 0]))
    yield f"The fastest of all, {found.label(fastest)}: {_said(found, fastest)}."
    yield f"{int(found.on_front.sum()):,} candidates are on the front of latency, purchase cost and energy."


def _utility(found: MeasuredDeployments) -> str:
    weights = found.bench.section.utility.items()
    words = [f"{weight:g} x {in_words(name)}" if weight != 1 else in_words(name) for name, weight in weights]
    return " + ".join(words)


def _said(found: MeasuredDeployments, k: int) -> str:
    latency, cost, energy, utilization, _ = found.means[k].tolist()
    words = f"{latency_name(found.bench.section.latency)} {format_time(latency / 1e6)}{_beside_target(found, k)}"
    return f"{words}, cost {_plain(cost)}, {spoken_energy(energy)}, {100 * utilization:.3g} % busy"


def _beside_target(found: MeasuredDeployments, k: int) -> str:
    """How the latency stands to the target, with the interval over the seeds."""
    target = found.bench.section.target
    if target is None or found.margins is None or (target.within is not None and k == int(np.argmin(found.means[:, 0]))):
        return ""
    margin, sure = found.margins[k], found.bench.section.seeds > 1
    if target.within is not None:
        times = [spoken_number(target.within - value) for value in (margin.mean, margin.high, margin.low)]
        between = f" [{times[1]} to {times[2]}]" if sure else ""
        return f" ({times[0]}{between} times the fastest's; target: at most {target.within:g} times)"
    assert target.at_most is not None  # the section takes one of both
    low, high = (format_time((target.at_most - value) / 1e6) for value in (margin.high, margin.low))
    return f" ({f'[{low} to {high}]; ' if sure else ''}target: at most {format_time(target.at_most / 1e6)})"


def _plain(value: float) -> str:
    """A number without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _how(content: Json, bench: DeploymentTaskType, exhaustive: bool) -> Iterator[str]:
    search, seeds = content["search"], bench.section.seeds
    runs = f"{search['runs']:,} runs"
    if exhaustive:
        yield f"All {search['candidates']:,} candidates were simulated, {runs}: the front is exact for these runs."
    else:
        yield (
            f"{search['measured']:,} of {search['candidates']:,} candidates were fully simulated, {runs} in all: a random "
            "sample halved twice on parts of the jobs, then local moves from the front. It may miss candidates."
        )
    if seeds > 1:
        yield f"Means over {seeds} seeds, the same for all candidates; intervals (95 %) are of the margin over the seeds."


def _few(found: MeasuredDeployments) -> Iterator[str]:
    kind = found.bench.section.unit[-1].type
    for policy, said in (eighty_twenty(found) or {}).items():
        few, share, cost = (said[name] for name in ("gain_of_20_percent", "share_for_80_percent", "cost_for_80_percent"))
        first = "" if few is None else f" The first 20 % of the units as {kind} bring {100 * few:.3g} % of it."
        yield (
            f'With "{in_words(policy)}", 80 % of the gain in latency that {kind} can bring takes {100 * share:.3g} % of the '
            f"units as {kind}, for {cost:,.6g}; {kind} only would cost {said['cost_of_all']:,.6g}.{first}"
        )


# Rows, plain data


def _frame(found: MeasuredDeployments) -> pl.DataFrame:
    section, means = found.bench.section, found.means
    columns: dict[str, object] = {unit.type: [counts[k] for counts in found.counts] for k, unit in enumerate(section.unit)}
    columns["placement"] = [str(section.placement[element[-1]]) for element in found.elements]
    columns |= {name: means[:, k] for k, name in enumerate(MEASURED)}
    columns["utility"] = found.utility
    columns["front"] = found.on_front
    columns["verdict"] = list(found.states)
    return pl.DataFrame(columns)


def _candidate(found: MeasuredDeployments, k: int) -> Json:
    section = found.bench.section
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
