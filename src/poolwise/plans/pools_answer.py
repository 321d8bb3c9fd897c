"""Answer of a search over pool sizes: sentences, rows, figures and plain data, all computed from the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from poolwise.arrays import FloatArray
from poolwise.diagnostics import Diagnostics
from poolwise.diagnostics.leave_out import LeftOut
from poolwise.optimize.monotone import Element, below
from poolwise.plans.candidates import STATE_TEXT, CandidateRuns, CandidateVerdict
from poolwise.plans.plan import Answer, PlanStatus
from poolwise.plans.pools_card import candidates_table, pools_card
from poolwise.plans.pools_content import ASSUMED, at_other_prices, pools_content, pools_frame
from poolwise.plans.pools_figures import pools_figures
from poolwise.plans.prices import Prices, price_sentences
from poolwise.plans.search import Search, neighbors
from poolwise.plans.sizes import priced
from poolwise.plans.targets import KNOWN, Target
from poolwise.presentation.cost import cost_sentences, cost_table, tornado
from poolwise.presentation.format import format_number


def pools_answer(runs: CandidateRuns, prices: Prices, found: Search, left_out: Sequence[LeftOut] = ()) -> Answer:
    """Combine the search results into an answer; `left_out` states whether a few jobs decide it."""
    cost = priced(prices.sizes, prices.amounts)
    bill = None if found.best is None else prices.cost(found.best)
    status: PlanStatus = "decided" if found.best is not None and found.open is None else "undecided"
    if found.best is None and found.open is None:
        status = "infeasible"
    swings = None if bill is None else tornado(bill)
    frame, order = pools_frame(runs, cost, found)
    chosen = None if found.best is None else order.index(found.best)
    cells = list(runs.simulated.values())
    shown = runs.largest if found.best is None else found.best
    diagnostics = Diagnostics.of(runs.store.outcomes(runs.cells(shown)[0]))
    return Answer(
        status=status,
        headline=_headline(runs, cost, found, status),
        because=list(_because(runs, cost, found)),
        sections={
            "Cost": [] if bill is None else [*cost_sentences(bill), *_at_other_prices(runs, prices, found)],
            "Sensitivity": list(_sensitivity(runs, cost, found)),
            "Certainty": list(_certainty(runs, found)),
        },
        notes=list(_notes(runs, found)),
        figures=[*pools_figures(runs, cost, found), *([] if swings is None else [swings])],
        candidates=frame,
        chosen=chosen,
        content={
            "sanity": diagnostics.to_dict() | {"decisive": [one.to_dict() for one in left_out]},
            **pools_content(runs, cost, found),
            "prices": at_other_prices(runs, prices, found),
        },
        inputs=dict(sorted({Path(cell.trace.path).name: cell.trace.sha256 for cell in cells}.items())),
        seeds=sorted({cell.seed for cell in cells}),
        first=[*diagnostics.sentences, *(one.text for one in left_out)],
        card=pools_card(runs, prices, found),
        tables=[candidates_table(runs, cost, found), *([] if bill is None else [cost_table(bill)])],
    )


# Sentences


def _headline(runs: CandidateRuns, cost: FloatArray, found: Search, status: PlanStatus) -> str:
    if status == "infeasible":
        return f"No candidate meets every target ({_targets(runs.targets)}), not even {runs.label(runs.largest)}."
    if found.best is None:
        targets = _targets(runs.targets)
        return f"Undecided: no candidate is shown to meet every target ({targets}), and not all are shown to miss one."
    text = f"{runs.label(found.best)} for {format_dollars(cost[found.best])}"
    return f"{text} is enough; whether less is enough is undecided." if found.open is not None else f"Choose {text}."


def _because(runs: CandidateRuns, cost: FloatArray, found: Search) -> Iterator[str]:
    if found.best is not None:
        yield f"This is the cheapest candidate with {_targets(runs.targets)}: {_measured(runs, found.verdicts[found.best])}."
    else:
        verdict = found.verdicts[runs.largest]
        yield f"The largest candidate: {_measured(runs, verdict)}."
    if found.open is not None:
        measured = _measured(runs, found.verdicts[found.open])
        label, price = runs.label(found.open), format_dollars(cost[found.open])
        yield f"{label}, for {price}, is not distinguishable from the target: {measured}."
    if found.rival is not None and found.best is not None:
        more = cost[found.rival] - cost[found.best]
        measured = _measured(runs, found.verdicts[found.rival])
        price = format_dollars(cost[found.rival])
        yield f"The runner-up, {runs.label(found.rival)}, costs {format_dollars(more)} more ({price}): {measured}."
    elif found.best is not None:
        yield "There is no runner-up: no other combination of sizes meets the targets."
    least, most = runs.certainty.seeds
    grid_runs = f"{cost.size * least:,}" if least == most else f"{cost.size * least:,} to {cost.size * most:,}"
    yield (
        f"The search needed {len(runs.simulated):,} simulations of {runs.judged:,} candidates; the full grid has "
        f"{cost.size:,} candidates and needs {grid_runs} simulations."
    )


def _sensitivity(runs: CandidateRuns, cost: FloatArray, found: Search) -> Iterator[str]:
    base = None if found.best is None else cost[found.best]
    for moved in found.sensitivity:
        text = f"Targets {100 * abs(moved.share):g} % {'tighter' if moved.share > 0 else 'looser'}"
        text += f" ({_targets(moved.targets)})"
        if moved.element is None:
            yield f"{text}: no candidate is shown to meet them."
            continue
        if moved.element == found.best:
            yield f"{text}: the answer stays the same."
            continue
        change = "" if base is None else f" ({_signed(cost[moved.element] - base)})"
        yield f"{text}: {runs.label(moved.element)} for {format_dollars(cost[moved.element])}{change}."
    if found.best is None:
        return
    for axis, element in neighbors(found.best, cost.shape):
        verdict, size = found.verdicts[element], runs.sizes[axis]
        change = _signed(cost[element] - cost[found.best])
        state = STATE_TEXT[verdict.state]
        yield f"With {size.phrase(element[axis])} ({change}): {_measured(runs, verdict)}; {state}."


def _at_other_prices(runs: CandidateRuns, prices: Prices, found: Search) -> Iterator[str]:
    labels = ["no candidate that is shown to meet the targets" if e is None else runs.label(e) for e in found.elsewhere]
    yield from price_sentences(prices, found, labels)


def _certainty(runs: CandidateRuns, found: Search) -> Iterator[str]:
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
            f"One seed; {level} intervals by a block bootstrap over the jobs in submission order, paired if a target is "
            "relative. Metrics of the whole run have no such interval; their value decides."
        )
    else:
        seeds = f"{least} seed{'s' if least > 1 else ''}"
        yield f"Means over {seeds} decide, without intervals: the answer applies to these runs only."
    by_assumption = [e for e, v in found.verdicts.items() if v.state == "undecided" and e != found.open and _above(found, e)]
    if by_assumption:
        yield (
            f"{len(by_assumption):,} candidates that are larger than the answer stayed undecided after their last seed. They "
            "are assumed to meet the targets, because the smaller answer does."
        )
    if not found.worse:
        yield (
            f"The search assumes that {ASSUMED}. None of the {found.pairs:,} pairs of simulated candidates in which one has at "
            "least as much of everything contradicts this. Candidates that were not simulated were not checked."
        )
        return
    x, y, target = found.worse[0]
    yield (
        f"The search assumes that {ASSUMED}. This does not hold here: {len(found.worse):,} of {found.pairs:,} comparisons "
        f"contradict it. For example, {KNOWN[target.metric].description} is worse with {runs.label(y)} than with "
        f"{runs.label(x)}. A cheaper candidate that was not simulated may meet the targets."
    )


def _above(found: Search, element: Element) -> bool:
    return found.best is not None and below(found.best, element)


def _notes(runs: CandidateRuns, found: Search) -> Iterator[str]:
    relative = any(target.relative for target in runs.targets)
    finishers = "the largest candidate and the reference finish" if relative else "the largest candidate finishes"
    yield (
        f"Measured on the jobs after a warm-up of {runs.cells(runs.largest)[0].warm_up:,} that {finishers}: "
        f"{int(runs.population(0).sum()):,} jobs of the first seed."
    )
    rejecting = {element: v.unfinished for element, v in found.verdicts.items() if v.unfinished}
    if rejecting:
        yield (
            f"{len(rejecting):,} candidates miss the targets because they can never run some jobs that the largest candidate "
            f"runs (up to {max(rejecting.values()):,} jobs)."
        )
    largest = [runs.store.facts(cell) or {} for cell in runs.cells(runs.largest)[: runs.certainty.seeds[0]]]
    rejected = max(sum(facts.get("rejected", {}).values()) for facts in largest)
    if rejected:
        yield f"{rejected:,} jobs can never run even on the largest candidate; they are excluded from all metrics."
    for fact, verb in (("excluded", "excluded from the trace"), ("repaired", "repaired while reading")):
        for reason, count in sorted(largest[0].get(fact, {}).items()):
            yield f"{count:,} rows were {verb}: {reason}."
    spread = max((i.high - i.low for v in found.verdicts.values() for i in v.margins), default=0.0)
    if runs.certainty.over == "seeds" and spread == 0:
        yield "These runs do not depend on the seed: all seeds give the same values. Their certainty is that of the trace."
    yield from sorted({warning for facts in largest for warning in facts.get("warnings", ())})


def _targets(targets: Sequence[Target]) -> str:
    return " and ".join(target.text for target in targets)


def _measured(runs: CandidateRuns, verdict: CandidateVerdict) -> str:
    if verdict.unfinished:
        return f"{verdict.unfinished:,} jobs can never run"
    return ", ".join(
        f"{KNOWN[target.metric].description} {target.format_value(value)}, {_margin(verdict, k)}"
        for k, (target, value) in enumerate(zip(runs.targets, verdict.values, strict=True))
    )


def _margin(verdict: CandidateVerdict, k: int) -> str:
    """Describe the margin of a target and its interval; a negative margin misses the target."""
    found = verdict.margins[k]
    if found.mean < 0:
        text = f"beyond the target by {format_number(-found.mean)}"
        return text if found.low == found.high else f"{text} [{format_number(-found.high)} to {format_number(-found.low)}]"
    text = f"inside the target by {format_number(found.mean)}"
    return text if found.low == found.high else f"{text} [{format_number(found.low)} to {format_number(found.high)}]"


def format_dollars(amount: float) -> str:
    """Format an amount of money, from 100 $ in whole dollars."""
    return f"{amount:,.0f} $" if abs(amount) >= 100 else f"{amount:.4g} $"


def _signed(amount: float) -> str:
    return f"{'+' if amount > 0 else '-'}{format_dollars(abs(amount))}" if amount else "same cost"
