"""Results of a search over sizes, as rows, plain data and figures."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from poolwise.arrays import FloatArray
from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import CandidateRuns, CandidateVerdict
from poolwise.plans.prices import Prices
from poolwise.plans.search import Search, neighbors
from poolwise.plans.targets import KNOWN, Target, is_percentile
from poolwise.presentation.figure import Axis, Curves, Figure, Scatter
from poolwise.presentation.format import capitalize

ASSUMED = "a larger size never makes a target harder to meet"


def pools_frame(runs: CandidateRuns, cost: FloatArray, search: Search) -> tuple[pl.DataFrame, list[Element]]:
    """Return a frame with one row per judged candidate, by cost, and the candidates in that order."""
    order = sorted(search.verdicts, key=lambda element: (float(cost[element]), element))
    columns: dict[str, list[object]] = {
        size.name: [size.written[element[axis]] for element in order] for axis, size in enumerate(runs.sizes)
    }
    columns["cost_dollars"] = [float(cost[element]) for element in order]
    columns["verdict"] = [search.verdicts[element].state for element in order]
    columns["seeds"] = [search.verdicts[element].seeds for element in order]
    columns["unfinished_jobs"] = [search.verdicts[element].unfinished for element in order]
    for k, target in enumerate(runs.targets):
        name = target.metric if k == [t.metric for t in runs.targets].index(target.metric) else f"{target.metric}_{k + 1}"
        verdicts = [search.verdicts[element] for element in order]
        columns[name] = [v.values[k] for v in verdicts]
        for part in ("mean", "low", "high"):
            end = "" if part == "mean" else f"_{part}"
            columns[f"{name}_margin{end}"] = [getattr(v.margins[k], part) if v.margins else math.nan for v in verdicts]
    return pl.DataFrame(columns), order


def candidate_content(runs: CandidateRuns, cost: FloatArray, search: Search, element: Element) -> Json:
    """Return a candidate as plain data."""
    verdict = search.verdicts.get(element)
    content: Json = {"sizes": runs.sizes_of(element), "cost_dollars": float(cost[element])}
    return content if verdict is None else content | _verdict(runs, verdict)


def pools_content(runs: CandidateRuns, cost: FloatArray, search: Search) -> Json:
    """Return the search results as plain data, as `poolwise plan --json` prints them in addition to the ranking."""

    def candidate(element: Element | None) -> Json | None:
        return None if element is None else candidate_content(runs, cost, search, element)

    around = [] if search.best is None else neighbors(search.best, cost.shape)
    least, most = runs.certainty.seeds
    return {
        "targets": [str(target) for target in runs.targets],
        "sensitivity": {
            "targets": [
                {"share": m.share, "targets": [str(t) for t in m.targets], "chosen": candidate(m.element)}
                for m in search.sensitivity
            ],
            "steps": [{"size": runs.sizes[axis].key, **(candidate(element) or {})} for axis, element in around],
        },
        "simulations": {
            "runs": len(runs.simulated),
            "candidates": runs.judged,
            "grid_candidates": cost.size,
            "grid_runs_min": cost.size * least,
            "grid_runs_max": cost.size * most,
        },
        "certainty": {"over": runs.certainty.over, "level": runs.certainty.level, "min": least, "max": most},
        "assumption": {
            "text": ASSUMED,
            "pairs": search.pairs,
            "contradictions": [
                {"metric": target.metric, "less": runs.label(x), "more": runs.label(y)} for x, y, target in search.worse
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


def at_other_prices(runs: CandidateRuns, prices: Prices, search: Search) -> list[Json]:
    """Return the cheapest candidate at either end of each price range, as plain data."""
    return [
        {
            "size": prices.sizes[which].key,
            "price": prices.sizes[which].price[end],
            "sizes": None if e is None else runs.sizes_of(e),
        }
        for (which, end), e in zip(prices.ends, search.elsewhere, strict=True)
    ]


_STATES = {"keeps": "meets the target", "breaks": "misses the target", "undecided": "undecided"}


def pools_figures(runs: CandidateRuns, cost: FloatArray, search: Search) -> list[Figure]:
    """Return one figure per target: a curve over the size if there is only one, else points over the cost."""
    figures: list[Figure] = []
    for k, target in enumerate(runs.targets):
        elements = sorted((e for e, v in search.verdicts.items() if not v.unfinished), key=lambda e: (float(cost[e]), e))
        if len(elements) < 2:
            continue
        draw = _curve if cost.ndim == 1 else _points
        figures.append(draw(runs, cost, search, elements, k, f"target{k + 1}_{target.metric}"))
    return figures


def _curve(runs: CandidateRuns, cost: FloatArray, search: Search, elements: list[Element], k: int, name: str) -> Figure:
    target, size = runs.targets[k], runs.sizes[0]
    verdicts = [search.verdicts[e] for e in elements]
    margins = [v.margins[k] for v in verdicts]
    bound = [v.values[k] + target.sign * v.margins[k].mean for v in verdicts]
    bands = [sorted((b - target.sign * m.low, b - target.sign * m.high)) for b, m in zip(bound, margins, strict=True)]
    percentile = has_share_margins(runs, target)
    x = [float(size.amount[e[0]]) for e in elements]
    states = {
        _STATES[state]: [v.values[k] if v.state == state else math.nan for v in verdicts]
        for state in _STATES
        if any(v.state == state for v in verdicts)
    }
    return Curves(
        name,
        f"{capitalize(KNOWN[target.metric].description)} by {size.words.noun}",
        f"All simulated candidates, with the interval of each verdict; the target is a {target.text}. The dotted line marks "
        "the answer.",
        x=x,
        series={"simulated": [v.values[k] for v in verdicts]} | ({} if percentile else {"target": bound}),
        marks=states,
        x_axis=Axis(size.words.noun, ticks=dict(zip(x, (str(size.written[e[0]]) for e in elements), strict=True))),
        y_axis=Axis(_label(target)),
        interval={} if percentile else {"simulated": ([b[0] for b in bands], [b[1] for b in bands])},
        highlight=None if search.best is None else float(size.amount[search.best[0]]),
    )


def _points(runs: CandidateRuns, cost: FloatArray, search: Search, elements: list[Element], k: int, name: str) -> Figure:
    target = runs.targets[k]
    groups: dict[str, list[Element]] = {}
    for element in elements:
        state = "the answer" if element == search.best else search.verdicts[element].state
        groups.setdefault(state, []).append(element)
    at = search.verdicts[search.best if search.best in elements else elements[-1]]
    percentile = has_share_margins(runs, target)
    names = [state for state in ("keeps", "breaks", "undecided", "the answer") if state in groups]
    return Scatter(
        name,
        f"{capitalize(KNOWN[target.metric].description)} by cost",
        f"All simulated candidates. The dashed line is the target, a {target.text}"
        + (", with the reference's value under the seeds of the answer." if target.relative else "."),
        series={
            state: ([float(cost[e]) for e in groups[state]], [search.verdicts[e].values[k] for e in groups[state]])
            for state in names
        },
        descriptions={state: [_describe_point(runs, cost, search, target, e) for e in groups[state]] for state in names},
        x_axis=Axis("cost of the candidate ($)"),
        y_axis=Axis(_label(target), log=_spans_decades(search, elements, k)),
        target=None if percentile else (at.values[k] + target.sign * at.margins[k].mean, "target"),
    )


def _describe_point(runs: CandidateRuns, cost: FloatArray, search: Search, target: Target, element: Element) -> str:
    verdict = search.verdicts[element]
    value = target.format_value(verdict.values[runs.targets.index(target)])
    return f"{runs.label(element)}: {cost[element]:,.0f} $, {value}; {_STATES[verdict.state]}"


def has_share_margins(runs: CandidateRuns, target: Target) -> bool:
    """Return whether margins are shares of jobs, not values of the metric."""
    return runs.certainty.over == "jobs" and is_percentile(target)


def _spans_decades(search: Search, elements: list[Element], k: int) -> bool:
    """Return whether the values span a range that needs a logarithmic axis."""
    values = np.array([search.verdicts[e].values[k] for e in elements])
    return bool(values.min() > 0 and values.max() > 20 * values.min())


def _label(target: Target) -> str:
    """Return the metric's name with its unit; descriptions are too long for an axis."""
    unit = KNOWN[target.metric].unit
    name = target.metric.removesuffix("_s").removesuffix("_pct").replace("_", " ")
    return f"{name} ({unit})" if unit else name
