"""Answer of a search over pool sizes: sentences, decision card and tables, all computed from the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from poolwise.arrays import FloatArray
from poolwise.comparison.ranking import CandidateRanking
from poolwise.comparison.waits import PairedWaits
from poolwise.diagnostics.leave_out import LeftOut
from poolwise.errors import InputError
from poolwise.files.factory import warm_up_policy
from poolwise.optimize.monotone import Element, below
from poolwise.plans.candidates import STATE_TEXT, CandidateRuns, CandidateVerdict
from poolwise.plans.pools_content import (
    ASSUMED,
    at_other_prices,
    candidate_content,
    has_share_margins,
    pools_content,
    pools_figures,
    pools_frame,
)
from poolwise.plans.prices import Prices, price_sentences
from poolwise.plans.search import Search, neighbors
from poolwise.plans.sizes import Size, priced
from poolwise.plans.targets import KNOWN, Target
from poolwise.presentation.answer import Answer, AnswerStatus, Certainty, DecisionCard
from poolwise.presentation.cost import cost_sentences, format_dollars, money_rows
from poolwise.presentation.format import capitalize, format_number, order_name, rows_note, warm_up_note
from poolwise.presentation.table import Table
from poolwise.quantities import format_count, parse
from poolwise.studies.cells import Cell
from poolwise.studies.diagnostics import diagnostics_of


def pools_decision(runs: CandidateRuns, prices: Prices, search: Search) -> DecisionCard | None:
    """Return the recommended sizes, certainty, rejected jobs and cost, compared with today; None without an answer.

    Today must have been simulated with the seeds of the answer.
    """
    best = search.best
    if best is None:
        return None
    verdict, today = search.verdicts[best], runs.today(best)
    choice = [
        [capitalize(size.words.noun), str(size.written[k]), "" if today is None else _value_today(runs, today, size)]
        for size, k in zip(runs.sizes, best, strict=True)
    ]
    choice.append(["Queue order", _order(runs.cells(best)[0]), "" if today is None else _order(today)])
    for k, target in enumerate(runs.targets):
        bound = target.text.removeprefix(f"{KNOWN[target.metric].description} of ")
        current = "" if today is None else _metric_today(runs, best, verdict.seeds, target)
        label = f"{capitalize(KNOWN[target.metric].description)} (target: {bound})"
        choice.append([label, target.format_value(verdict.values[k]), current])
    waits = PairedWaits.of(runs.paired(best, verdict.seeds))
    effects = [*money_rows(prices.cost(best), "Cost of the sized parts"), *waits.rows()]
    name = "" if today is None else str(today.parameters["today"])
    note = _measured_on(runs, verdict, name, len(waits.recommended))
    return DecisionCard(choice, effects, _certainty_of(runs, search, verdict), name, note)


def candidates_table(runs: CandidateRuns, cost: FloatArray, search: Search) -> Table:
    """Return a table of every judged candidate, the cheapest first."""
    order = sorted(search.verdicts, key=lambda element: (float(cost[element]), element))
    columns = [*(size.words.noun for size in runs.sizes), "cost", "verdict", "seeds", "jobs that can never run"]
    columns += [name for t in runs.targets for name in (KNOWN[t.metric].description, "margin to the target")]
    rows = [
        [
            *(str(size.written[k]) for size, k in zip(runs.sizes, element, strict=True)),
            format_dollars(cost[element]),
            STATE_TEXT[verdict.state],
            str(verdict.seeds),
            f"{verdict.unfinished:,}",
            *_measured_cells(runs, verdict),
        ]
        for element, verdict in ((element, search.verdicts[element]) for element in order)
    ]
    level = f" [{100 * runs.certainty.level:g} % over {runs.certainty.over}]" if runs.certainty.over != "nothing" else ""
    note = f"All simulated candidates; the answer is in bold. A negative margin{level} misses the target."
    return Table("Candidates", columns, rows, note, None if search.best is None else order.index(search.best))


def _measured_cells(runs: CandidateRuns, verdict: CandidateVerdict) -> list[str]:
    if verdict.unfinished:
        return ["-", "-"] * len(runs.targets)
    cells = []
    for target, value, margin in zip(runs.targets, verdict.values, verdict.margins, strict=True):
        cells += [target.format_value(value), _interval_text(runs, target, (margin.mean, margin.low, margin.high), ", ")]
    return cells


def _certainty_of(runs: CandidateRuns, search: Search, verdict: CandidateVerdict) -> Certainty:
    over, without = runs.certainty.over, [margin.low == margin.high for margin in verdict.margins]
    remarks = [] if search.open is None else ["whether less is enough is undecided"]
    if over == "nothing" or (over == "jobs" and all(without)):
        remark = "; ".join(["the means decide, without intervals", *remarks])
        return Certainty("unknown", samples=verdict.seeds, over="seeds", remark=remark)
    if over == "jobs" and any(without):
        remarks.insert(0, "metrics without an interval are decided by their value")
    least = min(verdict.margins, key=lambda margin: margin.low)
    samples = verdict.seeds if over == "seeds" else least.n
    return Certainty("meets", runs.certainty.level, samples, over, (least.low, least.high), remark="; ".join(remarks))


def _warm_up(runs: CandidateRuns) -> str:
    cell = runs.cells(runs.largest)[0]
    return warm_up_note(cell.warm_up, warm_up_policy([cell.scheduler]))


def _measured_on(runs: CandidateRuns, verdict: CandidateVerdict, name: str, jobs: int) -> str:
    relative = any(target.relative for target in runs.targets)
    finishers = "the largest candidate and the reference finish" if relative else "the largest candidate finishes"
    seeds = f"with {verdict.seeds} seeds" if verdict.seeds > 1 else "with one seed"
    count = int(runs.population(0).sum())
    jobs_of_first = f"{format_count(count, 'job')} of the first seed"
    text = f"Targets are measured on the jobs that {finishers}, {_warm_up(runs)}, {seeds}: {jobs_of_first}"
    if name:
        return f"{text}. Waits cover the {jobs:,} of these jobs, over all seeds, that also finish today."
    return f"{text}. The plan has no [today]; add one to compare the answer with your current system."


def _metric_today(runs: CandidateRuns, element: Element, seeds: int, target: Target) -> str:
    """Format the value of a target's metric on today's machine, which is comparable only if it runs the same jobs."""
    value = runs.value_today(element, target.metric, seeds)
    return "not comparable (other jobs)" if value is None else target.format_value(value)


def _value_today(runs: CandidateRuns, today: Cell, size: Size) -> str:
    """Format the value of a size in today's machine, in the unit of its price."""
    document = runs.document.with_tables(machine=today.machine_tables)
    try:
        return f"{parse(document.get(size.key), size.dimension) / size.per_unit:,.6g} {size.unit}".strip()
    except (InputError, ValueError):
        return "none"


def _order(cell: Cell) -> str:
    return order_name(str(cell.scheduler.order or cell.scheduler.kind))


def pools_answer(runs: CandidateRuns, prices: Prices, search: Search, left_out: Sequence[LeftOut] = ()) -> Answer:
    """Combine the search results into an answer; `left_out` states whether a few jobs decide it."""
    cost = priced(prices.sizes, prices.amounts)
    bill = None if search.best is None else prices.cost(search.best)
    ranking = CandidateRanking(search.best, search.rival, search.open)
    frame, order = pools_frame(runs, cost, search)
    cells = list(runs.simulated.values())
    shown = runs.largest if search.best is None else search.best
    diagnostics = diagnostics_of(runs.cells(shown)[0], runs.store.outcomes(runs.cells(shown)[0]))
    return ranking.answer(
        order,
        frame,
        partial(candidate_content, runs, cost, search),
        {
            "sanity": diagnostics.to_dict() | {"decisive": [check.to_dict() for check in left_out]},
            **pools_content(runs, cost, search),
            "prices": at_other_prices(runs, prices, search),
        },
        pools_figures(runs, cost, search),
        headline=_headline(runs, cost, search, ranking.status),
        because=list(_because(runs, cost, search)),
        sections={
            "Cost": [] if bill is None else [*cost_sentences(bill), *price_sentences(prices, search, runs.label)],
            "Sensitivity": list(_sensitivity(runs, cost, search)),
            "Certainty": list(_certainty(runs, search)),
        },
        notes=list(_notes(runs, search)),
        cost=bill,
        inputs=dict(sorted({Path(cell.workload.path).name: cell.workload.sha256 for cell in cells}.items())),
        seeds=sorted({cell.seed for cell in cells}),
        first=[*diagnostics.sentences, *(check.text for check in left_out)],
        decision=pools_decision(runs, prices, search),
        tables=[candidates_table(runs, cost, search)],
    )


# Sentences


def _headline(runs: CandidateRuns, cost: FloatArray, search: Search, status: AnswerStatus) -> str:
    if status == "infeasible":
        return f"No candidate meets every target ({_targets(runs.targets)}), not even {runs.label(runs.largest)}."
    if search.best is None:
        targets = _targets(runs.targets)
        return f"Undecided: no candidate is shown to meet every target ({targets}), and not all are shown to miss one."
    text = f"{runs.label(search.best)} for {format_dollars(cost[search.best])}"
    return f"{text} is enough; whether less is enough is undecided." if search.open is not None else f"Choose {text}."


def _because(runs: CandidateRuns, cost: FloatArray, search: Search) -> Iterator[str]:
    if search.best is not None:
        yield f"This is the cheapest candidate with {_targets(runs.targets)}: {_measured(runs, search.verdicts[search.best])}."
    else:
        verdict = search.verdicts[runs.largest]
        yield f"The largest candidate: {_measured(runs, verdict)}."
    if search.open is not None:
        measured = _measured(runs, search.verdicts[search.open])
        label, price = runs.label(search.open), format_dollars(cost[search.open])
        yield f"{label}, for {price}, is not distinguishable from the target: {measured}."
    if search.rival is not None and search.best is not None:
        more = cost[search.rival] - cost[search.best]
        measured = _measured(runs, search.verdicts[search.rival])
        price = format_dollars(cost[search.rival])
        yield f"The runner-up, {runs.label(search.rival)}, costs {format_dollars(more)} more ({price}): {measured}."
    elif search.best is not None:
        yield _larger(runs, cost, search, search.best)
    least, most = runs.certainty.seeds
    grid_runs = f"{cost.size * least:,}" if least == most else f"{cost.size * least:,} to {cost.size * most:,}"
    simulations, candidates = format_count(len(runs.simulated), "simulation"), format_count(runs.judged, "candidate")
    yield (
        f"The search needed {simulations} of {candidates}; the full grid has "
        f"{format_count(cost.size, 'candidate')} and needs {grid_runs} simulations."
    )


def _larger(runs: CandidateRuns, cost: FloatArray, search: Search, best: Element) -> str:
    """Name the cheapest other candidate that meets the targets, for the case that all of these are larger than the best."""
    others = [element for element, verdict in search.verdicts.items() if verdict.state == "keeps" and element != best]
    if not others:
        return "There is no runner-up: no other simulated combination of sizes is shown to meet the targets."
    other = min(others, key=lambda element: (cost[element], element))
    more, price = format_dollars(cost[other] - cost[best]), format_dollars(cost[other])
    return (
        "There is no runner-up: every other combination that meets the targets has at least as much of everything. The "
        f"cheapest simulated one, {runs.label(other)}, costs {more} more ({price}): {_measured(runs, search.verdicts[other])}."
    )


def _sensitivity(runs: CandidateRuns, cost: FloatArray, search: Search) -> Iterator[str]:
    base = None if search.best is None else cost[search.best]
    for moved in search.sensitivity:
        text = f"Targets {100 * abs(moved.share):g} % {'tighter' if moved.share > 0 else 'looser'}"
        text += f" ({_targets(moved.targets)})"
        if moved.element is None:
            yield f"{text}: no candidate is shown to meet them."
            continue
        if moved.element == search.best:
            yield f"{text}: the answer stays the same."
            continue
        change = "" if base is None else f" ({_signed(cost[moved.element] - base)})"
        yield f"{text}: {runs.label(moved.element)} for {format_dollars(cost[moved.element])}{change}."
    if search.best is None:
        return
    for axis, element in neighbors(search.best, cost.shape):
        verdict, size = search.verdicts[element], runs.sizes[axis]
        change = _signed(cost[element] - cost[search.best])
        state = STATE_TEXT[verdict.state]
        yield f"With {size.phrase(element[axis])} ({change}): {_measured(runs, verdict)}; {state}."


def _certainty(runs: CandidateRuns, search: Search) -> Iterator[str]:
    certainty = runs.certainty
    least, most = certainty.seeds
    level = f"{100 * certainty.level:g} %"
    if certainty.over == "seeds":
        yield (
            f"A verdict is final when the {level} interval of the mean margin over the seeds clears the target. Each candidate "
            f"runs on {least} to {most} seeds, the same for all candidates. Each test uses level {certainty.look_level:.4g}, "
            "so that repeated tests do not increase the risk of error. The level applies to each candidate, not to all of them "
            "together. Means over seeds are assumed to be normally distributed; rare bad seeds that were not drawn are not "
            "covered."
        )
    elif certainty.over == "jobs":
        yield (
            f"One seed; {level} intervals from a block bootstrap over the jobs in submission order, paired if a target is "
            "relative. Metrics of the whole run have no such interval; their value decides."
        )
    else:
        seeds = f"{least} seed{'s' if least > 1 else ''}"
        yield f"Means over {seeds} decide, without intervals: the answer applies to these runs only."
    open_ = [e for e, v in search.verdicts.items() if v.state == "undecided" and e != search.open]
    by_assumption = [e for e in open_ if search.best is not None and below(search.best, e)]
    if by_assumption:
        yield (
            f"{len(by_assumption):,} candidates that are larger than the answer stayed undecided after their last seed. They "
            "are assumed to meet the targets, because the smaller answer does."
        )
    if not search.worse:
        yield (
            f"The search assumes that {ASSUMED}. None of the {search.pairs:,} pairs of simulated candidates in which one has "
            "at least as much of everything contradicts this. Candidates that were not simulated were not checked."
        )
        return
    x, y, target = search.worse[0]
    yield (
        f"The search assumes that {ASSUMED}. This does not hold here: {len(search.worse):,} of {search.pairs:,} comparisons "
        f"contradict it. For example, {KNOWN[target.metric].description} is worse with {runs.label(y)} than with "
        f"{runs.label(x)}. A cheaper candidate that was not simulated may meet the targets."
    )


def _notes(runs: CandidateRuns, search: Search) -> Iterator[str]:
    relative = any(target.relative for target in runs.targets)
    finishers = "the largest candidate and the reference finish" if relative else "the largest candidate finishes"
    yield (
        f"Measured on the jobs that {finishers}, {_warm_up(runs)}: "
        f"{format_count(int(runs.population(0).sum()), 'job')} of the first seed."
    )
    rejecting = {element: v.unfinished for element, v in search.verdicts.items() if v.unfinished}
    if rejecting:
        verb, on = ("misses", "it") if len(rejecting) == 1 else ("miss", "them")
        yield (
            f"{format_count(len(rejecting), 'candidate')} {verb} the targets because some jobs that the largest candidate runs "
            f"can never run on {on} (up to {format_count(max(rejecting.values()), 'job')})."
        )
    largest = [runs.store.facts(cell) or {} for cell in runs.cells(runs.largest)[: runs.certainty.seeds[0]]]
    rejected = max(sum(facts.get("rejected", {}).values()) for facts in largest)
    if rejected:
        jobs, verb = format_count(rejected, "job"), "is" if rejected == 1 else "are"
        yield f"{jobs} can never run even on the largest candidate and {verb} excluded from all metrics."
    for fact, verb in (("excluded", "excluded from the trace"), ("repaired", "repaired while reading")):
        for reason, count in sorted(largest[0].get(fact, {}).items()):
            yield rows_note(count, verb, reason)
    spread = max((i.high - i.low for v in search.verdicts.values() for i in v.margins), default=0.0)
    if runs.certainty.over == "seeds" and spread == 0:
        yield "These runs do not depend on the seed: all seeds give the same values. Their certainty is that of the trace."
    yield from sorted({warning for facts in largest for warning in facts.get("warnings", ())})


def _targets(targets: Sequence[Target]) -> str:
    return " and ".join(target.text for target in targets)


def _measured(runs: CandidateRuns, verdict: CandidateVerdict) -> str:
    if verdict.unfinished:
        return f"{format_count(verdict.unfinished, 'job')} can never run"
    return ", ".join(
        f"{KNOWN[target.metric].description} {target.format_value(value)}, {_margin(runs, verdict, k)}"
        for k, (target, value) in enumerate(zip(runs.targets, verdict.values, strict=True))
    )


def _margin(runs: CandidateRuns, verdict: CandidateVerdict, k: int) -> str:
    """Describe the margin of a target and its interval; a negative margin misses the target."""
    margin, target = verdict.margins[k], runs.targets[k]
    if margin.mean < 0:
        return f"beyond the target by {_interval_text(runs, target, (-margin.mean, -margin.high, -margin.low))}"
    return f"inside the target by {_interval_text(runs, target, (margin.mean, margin.low, margin.high))}"


def _interval_text(runs: CandidateRuns, target: Target, values: tuple[float, float, float], to: str = " to ") -> str:
    """Format a margin and its interval with their unit."""
    mean, low, high = (_format_margin(runs, target, value) for value in values)
    return mean if values[1] == values[2] else f"{mean} [{low}{to}{high}]"


def _format_margin(runs: CandidateRuns, target: Target, value: float) -> str:
    """Format a margin with the unit of the metric, or as a share of jobs if intervals over jobs use such margins."""
    sign = "-" if value < 0 else ""
    if has_share_margins(runs, target):
        return f"{sign}{format_number(100 * abs(value))} % of the jobs"
    return f"{sign}{target.format_value(abs(value))}"


def _signed(amount: float) -> str:
    return f"{'+' if amount > 0 else '-'}{format_dollars(abs(amount))}" if amount else "same cost"
