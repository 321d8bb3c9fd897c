"""From a search over pool sizes to its answer: sentences, rows, figures, plain data; all are computed from the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from poolwise.arrays import FloatArray
from poolwise.exhibits.spoken import spoken_number
from poolwise.identity import Json
from poolwise.optimize.monotone import Element, below
from poolwise.plans.plan import Answer, PlanStatus
from poolwise.plans.pools_figures import pools_figures
from poolwise.plans.search import Search, neighbours
from poolwise.plans.targets import KNOWN, Target
from poolwise.plans.trials import Trials, Verdict
from poolwise.sanity import Sanity
from poolwise.sanity.leave_out import LeftOut

ASSUMED = "more of a size never makes a target harder to keep"


def pools_answer(trials: Trials, cost: FloatArray, found: Search, left_out: Sequence[LeftOut] = ()) -> Answer:
    """Put the answer together; `left_out` says whether a few jobs decide it."""
    status: PlanStatus = "decided" if found.best is not None and found.open is None else "undecided"
    if found.best is None and found.open is None:
        status = "infeasible"
    frame, order = _frame(trials, cost, found)
    chosen = None if found.best is None else order.index(found.best)
    cells = list(trials.simulated.values())
    shown = trials.largest if found.best is None else found.best
    sanity = Sanity.of(trials.store.outcomes(trials.cells(shown)[0]))
    return Answer(
        status=status,
        headline=_headline(trials, cost, found, status),
        because=list(_because(trials, cost, found)),
        sections={
            "How sensitive it is": list(_sensitivity(trials, cost, found)),
            "How certain that is": list(_sure(trials, found)),
        },
        notes=list(_notes(trials, found)),
        figures=pools_figures(trials, cost, found),
        candidates=frame,
        chosen=chosen,
        content={
            "sanity": sanity.to_dict() | {"decisive": [one.to_dict() for one in left_out]},
            **_content(trials, cost, found),
        },
        inputs=dict(sorted({Path(cell.trace.path).name: cell.trace.sha256 for cell in cells}.items())),
        seeds=sorted({cell.seed for cell in cells}),
        first=[*sanity.sentences, *(one.text for one in left_out)],
    )


# Sentences


def _headline(trials: Trials, cost: FloatArray, found: Search, status: PlanStatus) -> str:
    if status == "infeasible":
        return f"Nothing that may be chosen keeps {_targets(trials.targets)}; not even {trials.label(trials.largest)}."
    if found.best is None:
        return f"Undecided: no candidate is shown to keep {_targets(trials.targets)}, and not all are shown to break it."
    words = f"{trials.label(found.best)} for {dollars(cost[found.best])}"
    return f"Undecided below {words}: it is enough, cheaper may be." if found.open is not None else f"Take {words}."


def _because(trials: Trials, cost: FloatArray, found: Search) -> Iterator[str]:
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


def _sensitivity(trials: Trials, cost: FloatArray, found: Search) -> Iterator[str]:
    base = None if found.best is None else cost[found.best]
    for moved in found.sensitivity:
        words = f"Targets {abs(moved.share):.0%} {'tighter' if moved.share > 0 else 'looser'}"
        words += f" ({_targets(moved.targets)})"
        if moved.element is None:
            yield f"{words}: no candidate is shown to keep them."
            continue
        change = "" if base is None else f" ({_signed(cost[moved.element] - base)})"
        yield f"{words}: {trials.label(moved.element)} for {dollars(cost[moved.element])}{change}."
    if found.best is None:
        return
    for axis, element in neighbours(found.best, cost.shape):
        verdict, size = found.verdicts[element], trials.sizes[axis]
        change = _signed(cost[element] - cost[found.best])
        yield f"With {size.phrase(element[axis])} ({change}): {_measured(trials, verdict)}; {verdict.state}."


def _sure(trials: Trials, found: Search) -> Iterator[str]:
    certainty = trials.certainty
    least, most = certainty.seeds
    if certainty.over == "seeds":
        yield (
            f"A verdict is final when the {certainty.level:.0%} interval of the mean margin over the seeds clears the target; "
            f"from {least} to {most} seeds are spent, each look at level {certainty.look_level:.4g} so that looking again "
            "does not add to the risk. All candidates run on the same seeds. It is a statement on each candidate, not on all, "
            "and takes the means over seeds to be normal: rare bad seeds that no run drew are not in it."
        )
    elif certainty.over == "jobs":
        yield (
            f"One seed; {certainty.level:.0%} intervals by a block bootstrap over the jobs in the order of submission, paired "
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


def _notes(trials: Trials, found: Search) -> Iterator[str]:
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


def _measured(trials: Trials, verdict: Verdict) -> str:
    if verdict.unfinished:
        return f"{verdict.unfinished:,} jobs can never run"
    return ", ".join(
        f"{KNOWN[target.metric].description} {spoken_number(value)}, {_margin(verdict, k)}"
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
    return f"{'+' if amount >= 0 else '-'}{dollars(abs(amount))}"


# Rows and plain data


def _frame(trials: Trials, cost: FloatArray, found: Search) -> tuple[pl.DataFrame, list[Element]]:
    """One row a judged candidate, by cost."""
    order = sorted(found.verdicts, key=lambda element: (float(cost[element]), element))
    columns: dict[str, list[object]] = {
        size.name: [size.written[element[axis]] for element in order] for axis, size in enumerate(trials.sizes)
    }
    columns["cost_dollars"] = [float(cost[element]) for element in order]
    columns["verdict"] = [found.verdicts[element].state for element in order]
    columns["seeds"] = [found.verdicts[element].seeds for element in order]
    columns["unfinished_jobs"] = [found.verdicts[element].unfinished for element in order]
    for k, target in enumerate(trials.targets):
        name = target.metric if k == [t.metric for t in trials.targets].index(target.metric) else f"{target.metric}_{k + 1}"
        verdicts = [found.verdicts[element] for element in order]
        columns[name] = [v.values[k] for v in verdicts]
        for what in ("mean", "low", "high"):
            end = "" if what == "mean" else f"_{what}"
            columns[f"{name}_margin{end}"] = [getattr(v.margins[k], what) if v.margins else math.nan for v in verdicts]
    return pl.DataFrame(columns), order


def _content(trials: Trials, cost: FloatArray, found: Search) -> Json:
    def candidate(element: Element | None) -> Json | None:
        if element is None:
            return None
        verdict = found.verdicts.get(element)
        sizes = {size.key: size.written[k] for size, k in zip(trials.sizes, element, strict=True)}
        content: Json = {"sizes": sizes, "cost_dollars": float(cost[element])}
        return content if verdict is None else content | _verdict(trials, verdict)

    around = [] if found.best is None else neighbours(found.best, cost.shape)
    least, most = trials.certainty.seeds
    return {
        "targets": [str(target) for target in trials.targets],
        "chosen": candidate(found.best),
        "cheaper_but_undecided": candidate(found.open),
        "runner_up": candidate(found.rival),
        "sensitivity": {
            "targets": [
                {"share": m.share, "targets": [str(t) for t in m.targets], "chosen": candidate(m.element)}
                for m in found.sensitivity
            ],
            "steps": [{"size": trials.sizes[axis].key, **(candidate(element) or {})} for axis, element in around],
        },
        "simulations": {
            "runs": len(trials.simulated),
            "candidates": trials.candidates,
            "grid_candidates": cost.size,
            "grid_runs_least": cost.size * least,
            "grid_runs_most": cost.size * most,
        },
        "certainty": {"over": trials.certainty.over, "level": trials.certainty.level, "least": least, "most": most},
        "assumption": {
            "text": ASSUMED,
            "pairs": found.pairs,
            "contradictions": [
                {"metric": target.metric, "less": trials.label(x), "more": trials.label(y)} for x, y, target in found.worse
            ],
        },
    }


def _verdict(trials: Trials, verdict: Verdict) -> Json:
    measured = [
        {
            "metric": target.metric,
            "value": _number(value),
            **({} if verdict.unfinished else {n: _number(getattr(verdict.margins[k], a)) for n, a in _MARGIN.items()}),
        }
        for k, (target, value) in enumerate(zip(trials.targets, verdict.values, strict=True))
    ]
    return {"verdict": verdict.state, "seeds": verdict.seeds, "unfinished_jobs": verdict.unfinished, "measured": measured}


_MARGIN = {"margin": "mean", "margin_low": "low", "margin_high": "high"}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
