"""Figures of a search over sizes: each target against the size or the price, with what was decided of each candidate."""

from __future__ import annotations

import math

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import CandidateRuns
from poolwise.plans.search import Search
from poolwise.plans.targets import KNOWN, Target
from poolwise.presentation.figure import Axis, Curves, Figure, Scatter

_STATES = {"keeps": "keeps the target", "breaks": "breaks it", "undecided": "undecided"}


def pools_figures(trials: CandidateRuns, cost: FloatArray, found: Search) -> list[Figure]:
    """Each target against the cost: a curve along one size, points where there are several."""
    shown: list[Figure] = []
    for k, target in enumerate(trials.targets):
        elements = sorted((e for e, v in found.verdicts.items() if not v.unfinished), key=lambda e: (float(cost[e]), e))
        if len(elements) < 2:
            continue
        draw = _curve if cost.ndim == 1 else _points
        shown.append(draw(trials, cost, found, elements, k, f"target{k + 1}_{target.metric}"))
    return shown


def _curve(trials: CandidateRuns, cost: FloatArray, found: Search, elements: list[Element], k: int, name: str) -> Figure:
    target, size = trials.targets[k], trials.sizes[0]
    verdicts = [found.verdicts[e] for e in elements]
    margins = [v.margins[k] for v in verdicts]
    bound = [v.values[k] + target.sign * v.margins[k].mean for v in verdicts]
    bands = [sorted((b - target.sign * m.low, b - target.sign * m.high)) for b, m in zip(bound, margins, strict=True)]
    percentile = _of_shares(trials, target)
    x = [float(size.amount[e[0]]) for e in elements]
    states = {
        _STATES[state]: [v.values[k] if v.state == state else math.nan for v in verdicts]
        for state in _STATES
        if any(v.state == state for v in verdicts)
    }
    return Curves(
        name,
        f"{_upper(KNOWN[target.metric].description)} against {size.words.noun}",
        f"Each candidate that was simulated, with the interval of its verdict; the target is a {target.words}. The dotted "
        "line marks the answer.",
        x=x,
        series={"simulated": [v.values[k] for v in verdicts]} | ({} if percentile else {"target": bound}),
        marks=states,
        x_axis=Axis(size.words.noun, ticks=dict(zip(x, (str(size.written[e[0]]) for e in elements), strict=True))),
        y_axis=Axis(_label(target)),
        interval={} if percentile else {"simulated": ([b[0] for b in bands], [b[1] for b in bands])},
        highlight=None if found.best is None else float(size.amount[found.best[0]]),
    )


def _points(trials: CandidateRuns, cost: FloatArray, found: Search, elements: list[Element], k: int, name: str) -> Figure:
    target = trials.targets[k]
    groups: dict[str, list[Element]] = {}
    for element in elements:
        state = "the answer" if element == found.best else found.verdicts[element].state
        groups.setdefault(state, []).append(element)
    at = found.verdicts[found.best if found.best in elements else elements[-1]]
    percentile = _of_shares(trials, target)
    names = [state for state in ("keeps", "breaks", "undecided", "the answer") if state in groups]
    return Scatter(
        name,
        f"{_upper(KNOWN[target.metric].description)} against the price",
        f"Each candidate that was simulated. The dashed line is the target, a {target.words}"
        + (", as the reference had it under the seeds of the answer." if target.relative else "."),
        series={
            state: ([float(cost[e]) for e in groups[state]], [found.verdicts[e].values[k] for e in groups[state]])
            for state in names
        },
        said={state: [_said(trials, cost, found, target, e) for e in groups[state]] for state in names},
        x_axis=Axis("price ($)"),
        y_axis=Axis(_label(target), log=_wide(found, elements, k)),
        target=None if percentile else (at.values[k] + target.sign * at.margins[k].mean, "target"),
    )


def _said(trials: CandidateRuns, cost: FloatArray, found: Search, target: Target, element: Element) -> str:
    verdict = found.verdicts[element]
    value = target.said(verdict.values[trials.targets.index(target)])
    return f"{trials.label(element)}: {cost[element]:,.0f} $, {value}; {_STATES[verdict.state]}"


def _of_shares(trials: CandidateRuns, target: Target) -> bool:
    """Whether margins are shares of the jobs, not values of the metric."""
    return trials.certainty.over == "jobs" and not target.metric.startswith("mean")


def _wide(found: Search, elements: list[Element], k: int) -> bool:
    """Whether values span so much that only a logarithmic axis shows them."""
    values = np.array([found.verdicts[e].values[k] for e in elements])
    return bool(values.min() > 0 and values.max() > 20 * values.min())


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _label(target: Target) -> str:
    """Name of the metric, with its unit where that says something: descriptions are too long for an axis."""
    unit = KNOWN[target.metric].unit
    name = target.metric.removesuffix("_s").removesuffix("_pct").replace("_", " ")
    return f"{name} ({unit})" if unit else name
