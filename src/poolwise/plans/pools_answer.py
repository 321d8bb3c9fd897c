"""From a search over pool sizes to its answer: sentences, rows, figures, plain data; all are computed from the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from poolwise.arrays import FloatArray
from poolwise.diagnostics import Diagnostics
from poolwise.diagnostics.leave_out import LeftOut
from poolwise.optimize.monotone import Element, below
from poolwise.plans.candidates import CandidateRuns, Verdict
from poolwise.plans.plan import Answer, PlanStatus
from poolwise.plans.pools_card import candidates_table, pools_card
from poolwise.plans.pools_content import ASSUMED, at_other_prices, pools_content, pools_frame
from poolwise.plans.pools_figures import pools_figures
from poolwise.plans.prices import Prices, price_sentences
from poolwise.plans.search import Search, neighbours
from poolwise.plans.sizes import priced
from poolwise.plans.targets import KNOWN, Target
from poolwise.presentation.cost import cost_sentences, cost_table, tornado
from poolwise.presentation.format import spoken_number


def pools_answer(trials: CandidateRuns, prices: Prices, found: Search, left_out: Sequence[LeftOut] = ()) -> Answer:
    """Put the answer together; `left_out` says whether a few jobs decide it."""
    cost = priced(prices.sizes, prices.amounts)
    bill = None if found.best is None else prices.cost(found.best)
    status: PlanStatus = "decided" if found.best is not None and found.open is None else "undecided"
    if found.best is None and found.open is None:
        status = "infeasible"
    swings = None if bill is None else tornado(bill)
    frame, order = pools_frame(trials, cost, found)
    chosen = None if found.best is None else order.index(found.best)
    cells = list(trials.simulated.values())
    shown = trials.largest if found.best is None else found.best
    sanity = Diagnostics.of(trials.store.outcomes(trials.cells(shown)[0]))
    return Answer(
        status=status,
        headline=_headline(trials, cost, found, status),
        because=list(_because(trials, cost, found)),
        sections={
            "What it costs in money": [] if bill is None else [*cost_sentences(bill), *_elsewhere(trials, prices, found)],
            "How sensitive it is": list(_sensitivity(trials, cost, found)),
            "How certain that is": list(_sure(trials, found)),
        },
        notes=list(_notes(trials, found)),
        figures=[*pools_figures(trials, cost, found), *([] if swings is None else [swings])],
        candidates=frame,
        chosen=chosen,
        content={
            "sanity": sanity.to_dict() | {"decisive": [one.to_dict() for one in left_out]},
            **pools_content(trials, cost, found),
            "prices": at_other_prices(trials, prices, found),
        },
        inputs=dict(sorted({Path(cell.trace.path).name: cell.trace.sha256 for cell in cells}.items())),
        seeds=sorted({cell.seed for cell in cells}),
        first=[*sanity.sentences, *(one.text for one in left_out)],
        card=pools_card(trials, prices, found),
        tables=[candidates_table(trials, cost, found), *([] if bill is None else [cost_table(bill)])],
    )


# Sentences


def _headline(trials: CandidateRuns, cost: FloatArray, found: Search, status: PlanStatus) -> str:
    if status == "infeasible":
        return f"Nothing that may be chosen keeps {_targets(trials.targets)}; not even {trials.label(trials.largest)}."
    if found.best is None:
        return f"Undecided: no candidate is shown to keep {_targets(trials.targets)}, and not all are shown to break it."
    words = f"{trials.label(found.best)} for {dollars(cost[found.best])}"
    return f"{words} is enough; whether less is, is undecided." if found.open is not None else f"Take {words}."


def _because(trials: CandidateRuns, cost: FloatArray, found: Search) -> Iterator[str]:
    if found.best is not None:
        yield f"It is the cheapest that keeps {_targets(trials.targets)}: {_measured(trials, found.verdicts[found.best])}."
    else:
        verdict = found.verdicts[trials.largest]
        yield f"The largest candidate: {_measured(trials, verdict)}."
    if found.open is not None:
        said = _measured(trials, found.verdicts[found.open])
        yield f"For {dollars(cost[found.open])}, {trials.label(found.open)} could not be told from the target: {said}."
    if found.rival is not None and found.best is not None:
        more = cost[found.rival] - cost[found.best]
        said = _measured(trials, found.verdicts[found.rival])
        yield f"The runner-up, {trials.label(found.rival)}, costs {dollars(more)} more ({dollars(cost[found.rival])}): {said}."
    elif found.best is not None:
        yield "There is no runner-up: no other way of keeping the targets among the candidates."
    least, most = trials.certainty.seeds
    runs = f"{cost.size * least:,}" if least == most else f"{cost.size * least:,} to {cost.size * most:,}"
    yield (
        f"{len(trials.simulated):,} simulations of {trials.candidates:,} candidates; the full grid has {cost.size:,} "
        f"candidates and takes {runs} simulations."
    )


def _sensitivity(trials: CandidateRuns, cost: FloatArray, found: Search) -> Iterator[str]:
    base = None if found.best is None else cost[found.best]
    for moved in found.sensitivity:
        words = f"Targets {100 * abs(moved.share):g} % {'tighter' if moved.share > 0 else 'looser'}"
        words += f" ({_targets(moved.targets)})"
        if moved.element is None:
            yield f"{words}: no candidate is shown to keep them."
            continue
        if moved.element == found.best:
            yield f"{words}: the answer stays the same."
            continue
        change = "" if base is None else f" ({_signed(cost[moved.element] - base)})"
        yield f"{words}: {trials.label(moved.element)} for {dollars(cost[moved.element])}{change}."
    if found.best is None:
        return
    for axis, element in neighbours(found.best, cost.shape):
        verdict, size = found.verdicts[element], trials.sizes[axis]
        change = _signed(cost[element] - cost[found.best])
        yield f"With {size.phrase(element[axis])} ({change}): {_measured(trials, verdict)}; {verdict.state}."


def _elsewhere(trials: CandidateRuns, prices: Prices, found: Search) -> Iterator[str]:
    labels = ["nothing that was shown to keep the targets" if e is None else trials.label(e) for e in found.elsewhere]
    yield from price_sentences(prices, found, labels)


def _sure(trials: CandidateRuns, found: Search) -> Iterator[str]:
    certainty = trials.certainty
    least, most = certainty.seeds
    level = f"{100 * certainty.level:g} %"
    if certainty.over == "seeds":
        yield (
            f"A verdict is final when the {level} interval of the mean margin over the seeds clears the target; "
            f"from {least} to {most} seeds are spent, each look at level {certainty.look_level:.4g} so that looking again "
            "does not add to the risk. All candidates run on the same seeds. It is a statement on each candidate, not on all, "
            "and takes the means over seeds to be normal: rare bad seeds that no run drew are not in it."
        )
    elif certainty.over == "jobs":
        yield (
            f"One seed; {level} intervals by a block bootstrap over the jobs in the order of submission, paired "
            "where a target is relative. Metrics of the whole run have no such interval: there the value decides."
        )
    else:
        seeds = f"{least} seed{'s' if least > 1 else ''}"
        yield f"Means over {seeds} decide, without intervals: the answer is about these runs only."
    by_assumption = [e for e, v in found.verdicts.items() if v.state == "undecided" and e != found.open and _above(found, e)]
    if by_assumption:
        yield (
            f"Candidates with more than the answer that were undecided by themselves when their seeds were spent: "
            f"{len(by_assumption):,}. That they keep the targets is concluded from the answer doing so with less."
        )
    if not found.worse:
        yield (
            f"It is assumed that {ASSUMED}. Checked on what was simulated: none of {found.pairs:,} pairs of candidates, one of "
            "which has all that the other has, contradicts it. Candidates that were not run were not checked."
        )
        return
    x, y, target = found.worse[0]
    yield (
        f"It is assumed that {ASSUMED}, and that is not so here: {len(found.worse):,} of {found.pairs:,} comparisons "
        f"contradict it, such as the {KNOWN[target.metric].description} with {trials.label(y)}, worse than with "
        f"{trials.label(x)}: a cheaper candidate that was not run may keep the targets."
    )


def _above(found: Search, element: Element) -> bool:
    return found.best is not None and below(found.best, element)


def _notes(trials: CandidateRuns, found: Search) -> Iterator[str]:
    relative = any(target.relative for target in trials.targets)
    who = "the largest candidate and the reference finish" if relative else "the largest candidate finishes"
    yield (
        f"Measured on the jobs after a warm-up of {trials.cells(trials.largest)[0].warm_up:,} that {who}: "
        f"{int(trials.population(0).sum()):,} of the first seed."
    )
    turned_away = {element: v.unfinished for element, v in found.verdicts.items() if v.unfinished}
    if turned_away:
        yield (
            f"Candidates that break the targets since they can never run some jobs that the largest candidate runs: "
            f"{len(turned_away):,} (up to {max(turned_away.values()):,} jobs)."
        )
    largest = [trials.store.facts(cell) or {} for cell in trials.cells(trials.largest)[: trials.certainty.seeds[0]]]
    rejected = max(sum(facts.get("rejected", {}).values()) for facts in largest)
    if rejected:
        yield f"{rejected:,} jobs can never run even on the largest candidate; they are left out of every measure."
    for what, verb in (("excluded", "left out of the trace"), ("repaired", "changed while reading")):
        for reason, count in sorted(largest[0].get(what, {}).items()):
            yield f"{count:,} rows were {verb}: {reason}."
    spread = max((i.high - i.low for v in found.verdicts.values() for i in v.margins), default=0.0)
    if trials.certainty.over == "seeds" and spread == 0:
        yield "The seeds draw nothing in these runs: all of them gave the same values, which are as sure as the trace is."
    yield from sorted({warning for facts in largest for warning in facts.get("warnings", ())})


def _targets(targets: Sequence[Target]) -> str:
    return " and ".join(target.words for target in targets)


def _measured(trials: CandidateRuns, verdict: Verdict) -> str:
    if verdict.unfinished:
        return f"{verdict.unfinished:,} jobs can never run"
    return ", ".join(
        f"{KNOWN[target.metric].description} {target.said(value)}, {_margin(verdict, k)}"
        for k, (target, value) in enumerate(zip(trials.targets, verdict.values, strict=True))
    )


def _margin(verdict: Verdict, k: int) -> str:
    """By how much a target is kept, and the interval of that: below zero it is missed."""
    found = verdict.margins[k]
    if found.mean < 0:
        words = f"beyond the target by {spoken_number(-found.mean)}"
        return words if found.low == found.high else f"{words} [{spoken_number(-found.high)} to {spoken_number(-found.low)}]"
    words = f"inside the target by {spoken_number(found.mean)}"
    return words if found.low == found.high else f"{words} [{spoken_number(found.low)} to {spoken_number(found.high)}]"


def dollars(amount: float) -> str:
    """Money with whole dollars from a hundred on."""
    return f"{amount:,.0f} $" if abs(amount) >= 100 else f"{amount:.4g} $"


def _signed(amount: float) -> str:
    return f"{'+' if amount > 0 else '-'}{dollars(abs(amount))}" if amount else "as much"
