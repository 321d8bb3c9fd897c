"""Results of a search over sizes, as rows and as plain data."""

from __future__ import annotations

import math

import polars as pl

from poolwise.arrays import FloatArray
from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import CandidateRuns, CandidateVerdict
from poolwise.plans.prices import Prices
from poolwise.plans.search import Search, neighbors

ASSUMED = "more of a size never makes a target harder to keep"


def pools_frame(runs: CandidateRuns, cost: FloatArray, found: Search) -> tuple[pl.DataFrame, list[Element]]:
    """Return a frame with one row per judged candidate, by cost, and the candidates in that order."""
    order = sorted(found.verdicts, key=lambda element: (float(cost[element]), element))
    columns: dict[str, list[object]] = {
        size.name: [size.written[element[axis]] for element in order] for axis, size in enumerate(runs.sizes)
    }
    columns["cost_dollars"] = [float(cost[element]) for element in order]
    columns["verdict"] = [found.verdicts[element].state for element in order]
    columns["seeds"] = [found.verdicts[element].seeds for element in order]
    columns["unfinished_jobs"] = [found.verdicts[element].unfinished for element in order]
    for k, target in enumerate(runs.targets):
        name = target.metric if k == [t.metric for t in runs.targets].index(target.metric) else f"{target.metric}_{k + 1}"
        verdicts = [found.verdicts[element] for element in order]
        columns[name] = [v.values[k] for v in verdicts]
        for part in ("mean", "low", "high"):
            end = "" if part == "mean" else f"_{part}"
            columns[f"{name}_margin{end}"] = [getattr(v.margins[k], part) if v.margins else math.nan for v in verdicts]
    return pl.DataFrame(columns), order


def pools_content(runs: CandidateRuns, cost: FloatArray, found: Search) -> Json:
    """Return the search results as plain data, as `poolwise plan --json` prints them."""

    def candidate(element: Element | None) -> Json | None:
        if element is None:
            return None
        verdict = found.verdicts.get(element)
        sizes = {size.key: size.written[k] for size, k in zip(runs.sizes, element, strict=True)}
        content: Json = {"sizes": sizes, "cost_dollars": float(cost[element])}
        return content if verdict is None else content | _verdict(runs, verdict)

    around = [] if found.best is None else neighbors(found.best, cost.shape)
    least, most = runs.certainty.seeds
    return {
        "targets": [str(target) for target in runs.targets],
        "chosen": candidate(found.best),
        "cheaper_but_undecided": candidate(found.open),
        "runner_up": candidate(found.rival),
        "sensitivity": {
            "targets": [
                {"share": m.share, "targets": [str(t) for t in m.targets], "chosen": candidate(m.element)}
                for m in found.sensitivity
            ],
            "steps": [{"size": runs.sizes[axis].key, **(candidate(element) or {})} for axis, element in around],
        },
        "simulations": {
            "runs": len(runs.simulated),
            "candidates": runs.judged,
            "grid_candidates": cost.size,
            "grid_runs_least": cost.size * least,
            "grid_runs_most": cost.size * most,
        },
        "certainty": {"over": runs.certainty.over, "level": runs.certainty.level, "least": least, "most": most},
        "assumption": {
            "text": ASSUMED,
            "pairs": found.pairs,
            "contradictions": [
                {"metric": target.metric, "less": runs.label(x), "more": runs.label(y)} for x, y, target in found.worse
            ],
        },
    }


def _verdict(runs: CandidateRuns, verdict: CandidateVerdict) -> Json:
    measured = [
        {
            "metric": target.metric,
            "value": _number(value),
            **({} if verdict.unfinished else {n: _number(getattr(verdict.margins[k], a)) for n, a in _MARGIN.items()}),
        }
        for k, (target, value) in enumerate(zip(runs.targets, verdict.values, strict=True))
    ]
    return {"verdict": verdict.state, "seeds": verdict.seeds, "unfinished_jobs": verdict.unfinished, "measured": measured}


_MARGIN = {"margin": "mean", "margin_low": "low", "margin_high": "high"}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def at_other_prices(runs: CandidateRuns, prices: Prices, found: Search) -> list[Json]:
    """Return the cheapest candidate at either end of each price, as plain data."""
    return [
        {
            "size": prices.sizes[which].key,
            "price": prices.sizes[which].price[end],
            "sizes": None if e is None else {s.key: s.written[k] for s, k in zip(runs.sizes, e, strict=True)},
        }
        for (which, end), e in zip(prices.ends, found.elsewhere, strict=True)
    ]
