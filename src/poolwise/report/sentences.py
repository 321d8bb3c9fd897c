"""Sentences from an answer: every number comes from the runs, and a rule on the numbers chooses each sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from poolwise.metrics import METRICS
from poolwise.presentation.format import spoken_number
from poolwise.report.answer import ENOUGH, Alternative, Recommendation
from poolwise.report.sweep import Sweep
from poolwise.units import format_memory, format_time

COSTS = ("throughput_per_100s", "utilization", "p99_bounded_slowdown", "discrimination_s", "discrimination_10pct_s")
"""What a choice may cost beside the slowdown it was made by."""
_NAMES = {
    "p99_bounded_slowdown": "99th percentile of the bounded slowdown",
    "discrimination_s": "wait added to jobs that fare worse than under FCFS without backfilling",
    "discrimination_10pct_s": "wait added to the tenth of them that is hit hardest",
}
NAMED = 3
"""Orders that the headline names where they cannot be told apart."""
SAME = 0.005
"""Values nearer to each other than this share are said to be the same."""


def sampled(shown: Sweep, left_out: int) -> str:
    """Say that not every series is drawn."""
    drawn = len(shown.series)
    return (
        f"Charts and tables show {drawn} of {drawn + left_out:,} combinations: the best, and others at even distances in rank. "
        "The answer is chosen from all; results.csv has all."
    )


def headline(found: Recommendation, sweep: Sweep) -> str:
    """The recommendation in one line; orders that the evidence cannot tell apart are all named."""
    names = [found.series, *(rival.alternative for rival in found.equals[: NAMED - 1])]
    return f"Run {either(names)}{sweep.where(found.at)}."


def separation(found: Recommendation, sweep: Sweep) -> str:
    """What separates the choice from the orders that the headline names beside it; empty where it names none."""
    if not found.equals:
        return ""
    names = [found.series, *(rival.alternative for rival in found.equals[: NAMED - 1])]
    more = len(found.equals) + 1 - len(names)
    said = f"The evidence cannot tell their mean bounded slowdowns apart{f' (nor from those of {more} more)' if more else ''}"
    spread = {
        name: values for name in COSTS if name in METRICS and _spread(values := _values(sweep, name, names, found.at)) > SAME
    }
    if not spread:
        return f"{said}, and nothing else that was measured separates them."
    metric = max(spread, key=lambda name: _spread(spread[name]))
    parts = [f"{_amount(metric, value)} under {name}" for name, value in zip(names, spread[metric], strict=True)]
    return f"{said}; what separates them most is the {_lower(_name(metric))}: {_and(parts)}."


def because(found: Recommendation, sweep: Sweep) -> list[str]:
    """Why, with the numbers that decided it."""
    return [*_slowdown(found), *_waits(found, sweep), *_runner_up(found), *_smaller(found, sweep), *_larger(found, sweep)]


def _slowdown(found: Recommendation) -> Iterator[str]:
    """The median before the mean: a mean is made by few jobs, and how few is said."""
    median, above = float(np.median(found.slowdown)), float((found.slowdown > found.value).mean())
    half = "no longer than they run" if median < 1 + SAME else f"at most {spoken_number(median)} times as long as they run"
    yield (
        f"From submission to end, half of the jobs take {half} (bounded slowdown). The mean is {spoken_number(found.value)}; "
        f"{spoken_number(100 * above)} % of the jobs lie above it."
    )


def _waits(found: Recommendation, sweep: Sweep) -> Iterator[str]:
    mean, median = (sweep.value(name, found.series, found.at) for name in ("mean_wait_s", "median_wait_s"))
    if math.isfinite(mean) and math.isfinite(median):
        half = f"wait at most {format_time(median)}" if median else "do not wait"
        yield f"Half of the jobs {half}; the mean wait is {format_time(mean)}."


def _runner_up(found: Recommendation) -> Iterator[str]:
    rival = found.runner_up
    if rival is None or not math.isfinite(rival.ratio):
        return
    apart = "" if rival.certain or rival.interval is None else " The two cannot be told apart on these jobs."
    yield f"The next best order, {rival.alternative}, has {spoken_number(rival.value)} ({_more(rival.ratio)}).{apart}"


def _smaller(found: Recommendation, sweep: Sweep) -> Iterator[str]:
    """Why not the next smaller size: it turns jobs away, or even its best order is beyond the target."""
    at = found.at - 1
    if at < 0:
        if len(sweep.x) > 1:
            yield "It is the smallest size that was tried: a smaller one may be enough too."
        return
    turned_away, here = found.turned_away[at], found.turned_away[found.at]
    if turned_away > here:
        yield f"The next smaller size, {sweep.labels[at]}, can never run {_jobs(turned_away)}; this one, {here:,}."
    if math.isfinite(found.least[at]):
        ratio = found.least[at] / found.least[found.at]
        enough = "too much" if found.least[at] > found.target else "which alone would be near enough"
        yield (
            f"With {sweep.labels[at]}, the best order has a mean bounded slowdown of {spoken_number(found.least[at])} "
            f"({_more(ratio)}), {enough}: a size is enough if it turns away no more jobs than any other and its best "
            f"order is within {100 * ENOUGH:.0f} % of the least."
        )


def _larger(found: Recommendation, sweep: Sweep) -> Iterator[str]:
    """What more would bring, or, where nothing larger was tried, where the slowdown is heading."""
    last = len(sweep.x) - 1
    if last == 0:
        return
    if found.at == last:
        before, here = found.least[-2], found.least[-1]
        if math.isfinite(before) and here < (1 - SAME) * before:
            yield (
                f"The least slowdown still falls at the largest size tried, by {_share(1 - here / before)} from "
                f"{sweep.labels[-2]} to {sweep.labels[-1]}: a larger one may be better yet."
            )
        else:
            yield "It is the largest size that was tried; what a larger one would bring is not known."
        return
    other = found.sizes[last]
    if other is not None and math.isfinite(other.ratio):
        sure = "" if other.certain else "; the two sizes cannot be told apart on these jobs"
        yield (
            f"The largest size tried, {sweep.labels[last]}, has {spoken_number(other.value)} under the same order "
            f"({_more(other.ratio)}){sure}."
        )
    yield from _rises(found, sweep)


def _rises(found: Recommendation, sweep: Sweep) -> Iterator[str]:
    """Say where more of a size makes the best order worse: the choice does not rest on more being better."""
    for at in range(1, len(sweep.x)):
        before, here = found.least[at - 1], found.least[at]
        if math.isfinite(before) and math.isfinite(here) and here > (1 + SAME) * before:
            yield (
                f"More is not better everywhere: from {sweep.labels[at - 1]} to {sweep.labels[at]} the least slowdown rises "
                f"by {_share(here / before - 1)}."
            )


def gives_up(found: Recommendation, sweep: Sweep) -> list[str]:
    """What the choice costs, metric by metric, against the order that is best in each."""
    said = []
    for metric in COSTS:
        order = sweep.best(metric, found.at, METRICS[metric].better)
        if not order:
            continue
        mine, theirs = sweep.value(metric, found.series, found.at), sweep.value(metric, order[0], found.at)
        name = _upper(_name(metric))
        if order[0] == found.series or math.isclose(mine, theirs, rel_tol=SAME):
            said.append(f"{name}: {_amount(metric, mine)}; no order is better here.")
        elif math.isfinite(mine):
            said.append(
                f"{name}: {_amount(metric, mine)} against {_amount(metric, theirs)} under {order[0]}{_change(theirs, mine)}."
            )
    degraded = sweep.value("mean_degradation", found.series, found.at)
    if degraded > 0:
        said.append(f"Remote memory makes the jobs run {spoken_number(100 * degraded)} % longer on average at this size.")
    return said


def how_sure(found: Recommendation, sweep: Sweep, seeds: int) -> list[str]:
    """What the intervals say, and what they do not cover."""
    said = []
    if (rival := found.runner_up) is not None and rival.interval is not None:
        said.append(f"{rival.alternative} at the same size: {_verdict(rival)}")
    for at in sorted({found.at - 1, len(found.sizes) - 1} - {-1}):
        other = found.sizes[at]
        if other is not None and other.interval is not None:
            said.append(f"{found.series} with {sweep.labels[at]}: {_verdict(other)}")
    said.append(
        f"The intervals (95 %, paired block bootstrap over {_jobs(found.jobs)} in the order of submission"
        + (f", from {seeds} seeds" if seeds > 1 else "")
        + ") say how the answer would vary over other stretches like this one; where the machine is congested for longer than "
        "a thirtieth of the stretch they are too narrow. They do not cover a different machine, a different mix of users, or "
        "jobs that react to remote memory otherwise than the performance model says."
    )
    return said


def certainty(found: Recommendation) -> str:
    """How sure the choice of the order is, in one line."""
    rival = found.runner_up
    if rival is None:
        return "only one order was tried"
    if rival.interval is None:
        return "one run each, without intervals"
    equals = [one.alternative for one in found.equals]
    if not rival.certain:
        return f"not told apart from {either(equals)} (95 %)"
    if equals:
        return f"better than {rival.alternative}, not told apart from {either(equals)} (95 %)"
    return f"better than {rival.alternative} and all others: the 95 % intervals exclude zero"


def _verdict(other: Alternative) -> str:
    assert other.interval is not None
    low, high, mean = other.interval.low, other.interval.high, other.interval.mean
    if low == high == mean == 0:
        return "no job fares otherwise."
    text = f"{spoken_number(mean, '+')} in mean bounded slowdown [{spoken_number(low, '+')}, {spoken_number(high, '+')}]"
    if low > 0:
        return f"{text}: worse, the interval excludes zero."
    if high < 0:
        return f"{text}: better, the interval excludes zero."
    return f"{text}: not distinguishable on these jobs."


def _name(metric: str) -> str:
    return _NAMES.get(metric, METRICS[metric].description)


def _values(sweep: Sweep, metric: str, names: Sequence[str], at: int) -> list[float]:
    return [sweep.value(metric, name, at) for name in names]


def _spread(values: Sequence[float]) -> float:
    """Largest value over the smallest, less one; negative where a value is unknown."""
    if not all(math.isfinite(value) for value in values):
        return -1.0
    low, high = min(values), max(values)
    return math.inf if low <= 0 < high else high / low - 1 if low > 0 else 0.0


def _more(ratio: float) -> str:
    if abs(ratio - 1) < SAME:
        return f"the same within {100 * SAME:g} %"
    if ratio >= 3:
        return f"{spoken_number(ratio)} times as much"
    return f"{_share(ratio - 1)} more" if ratio > 1 else f"{_share(1 - ratio)} less"


def _share(value: float) -> str:
    """A positive share in percent, of two digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


def _change(old: float, new: float) -> str:
    """How much more or less, in brackets; nothing where there is nothing to compare with."""
    return "" if old == 0 or not math.isfinite(old) else f" ({_more(new / old)})"


def _amount(metric: str, value: float) -> str:
    unit = METRICS[metric].unit
    if unit == "s":
        return format_time(value)
    if unit == "fraction":
        return f"{spoken_number(100 * value)} %"
    if unit == "MiB":
        return format_memory(value)
    return f"{spoken_number(value)} {unit}".strip()


def either(names: Sequence[str]) -> str:
    """Name one or another."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
