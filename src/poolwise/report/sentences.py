"""Sentences of a recommendation: all numbers come from the runs, and rules on the numbers select the sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from poolwise.metrics import METRICS
from poolwise.presentation.answer import Certainty
from poolwise.presentation.format import capitalize, format_number
from poolwise.quantities import format_count, format_memory, format_time
from poolwise.report.recommendation import ADDED_WAIT, ENOUGH, Alternative, Recommendation
from poolwise.report.sweep import Sweep

TRADEOFFS = ("throughput_per_100s", "utilization", "p99_bounded_slowdown", "discrimination_s", "discrimination_10pct_s")
"""Metrics that a choice by slowdown may worsen."""
_NAMES = {
    "p99_bounded_slowdown": "99th percentile of the bounded slowdown",
    "discrimination_s": "wait added compared with FCFS without backfilling, summed over jobs",
    "discrimination_10pct_s": "wait added, summed over the most delayed 10 % of all compared jobs",
}
NAMED = 3
"""Maximum number of indistinguishable orders that a sentence names, including the recommended one."""
SAME = 0.005
"""Relative difference below which values count as equal."""


def sampled(shown: Sweep, omitted: int) -> str:
    """State that charts and tables omit some of the series."""
    drawn = len(shown.series)
    return (
        f"Charts and tables show {drawn} of {drawn + omitted:,} combinations: the best one, and others evenly spaced in rank. "
        "The answer is chosen from all combinations, which results.csv lists."
    )


def headline(recommendation: Recommendation, sweep: Sweep) -> str:
    """Return the recommendation in one line."""
    return f"Run {recommendation.series}{sweep.where(recommendation.at)}."


def separation(recommendation: Recommendation, sweep: Sweep) -> str:
    """Describe how the recommended order differs from those that are not distinguishable; "" if there is none."""
    if not recommendation.equals:
        return ""
    names = [recommendation.series, *(rival.alternative for rival in recommendation.equals[: NAMED - 1])]
    more = len(recommendation.equals) + 1 - len(names)
    others = either([*names[1:], *([f"{more} more"] if more else [])])
    text = f"The mean bounded slowdown of {recommendation.series} is not distinguishable from that of {others}"
    added = _values(
        sweep, ADDED_WAIT, [recommendation.series, *(rival.alternative for rival in recommendation.equals)], recommendation.at
    )
    if all(map(math.isfinite, added)) and added[0] < min(added[1:]):
        waits = [f"{_amount(ADDED_WAIT, value)} under {name}" for name, value in zip(names, added, strict=False)]
        return (
            f"{text}. {recommendation.series} adds the least wait compared with FCFS without backfilling, "
            f"in total {_and(waits)}."
        )
    spread = {
        name: values
        for name in TRADEOFFS
        if name in METRICS and _spread(values := _values(sweep, name, names, recommendation.at)) > SAME
    }
    if not spread:
        return f"{text}, and these {sweep.choice}s do not differ in any other metric of this comparison."
    metric = max(spread, key=lambda name: _spread(spread[name]))
    parts = [f"{_amount(metric, value)} under {name}" for name, value in zip(names, spread[metric], strict=True)]
    return f"{text}. The {sweep.choice}s differ most in {_lower(_name(metric))}: {_and(parts)}."


def because(recommendation: Recommendation, sweep: Sweep) -> list[str]:
    """Return the reasons, with the numbers that decided."""
    return [
        *_slowdown(recommendation),
        *_waits(recommendation, sweep),
        *_runner_up(recommendation, sweep),
        *_smaller(recommendation, sweep),
        *_larger(recommendation, sweep),
    ]


def _slowdown(recommendation: Recommendation) -> Iterator[str]:
    """Describe the median, then the mean, which few jobs can dominate, and the share of jobs above the mean."""
    median, above = float(np.median(recommendation.slowdown)), float((recommendation.slowdown > recommendation.value).mean())
    half = "no longer than their runtime" if median < 1 + SAME else f"at most {format_number(median)} times their runtime"
    yield (
        f"From submission to end, half of the jobs take {half} (bounded slowdown). "
        f"The mean is {format_number(recommendation.value)}; {format_number(100 * above)} % of the jobs are above it."
    )


def _waits(recommendation: Recommendation, sweep: Sweep) -> Iterator[str]:
    mean, median = (sweep.value(name, recommendation.series, recommendation.at) for name in ("mean_wait_s", "median_wait_s"))
    if math.isfinite(mean) and math.isfinite(median):
        half = f"wait at most {format_time(median)}" if median else "do not wait"
        yield f"Half of the jobs {half}; the mean wait is {format_time(mean)}."


def _runner_up(recommendation: Recommendation, sweep: Sweep) -> Iterator[str]:
    rival = recommendation.runner_up
    if rival is None or not math.isfinite(rival.ratio):
        return
    apart = "" if rival.certain or rival.interval is None else " The two are not distinguishable on these jobs."
    if rival.ratio < 1:
        yield f"The lowest mean is that of {rival.alternative}, {format_number(rival.value)} ({_more(rival.ratio)}).{apart}"
        return
    value = format_number(rival.value)
    yield f"The next best {sweep.choice}, {rival.alternative}, has {value} ({_more(rival.ratio)}).{apart}"


def _smaller(recommendation: Recommendation, sweep: Sweep) -> Iterator[str]:
    """Explain why the next smaller size is not enough: it rejects more jobs, or even its best order is above the target."""
    at = recommendation.at - 1
    if at < 0:
        if len(sweep.x) > 1:
            yield "It is the smallest size in the study; a smaller one may also be enough."
        return
    rejected, here = recommendation.rejected[at], recommendation.rejected[recommendation.at]
    if rejected > here:
        jobs = format_count(rejected, "job")
        yield f"With the next smaller size, {sweep.size(at)}, {jobs} can never run; with this size, {here:,}."
    if math.isfinite(recommendation.least[at]):
        ratio = recommendation.least[at] / recommendation.least[recommendation.at]
        enough = "which is too much" if recommendation.least[at] > recommendation.target else "which alone would be enough"
        yield (
            f"With {sweep.size(at)}, the best {sweep.choice} has a mean bounded slowdown of "
            f"{format_number(recommendation.least[at])} ({_more(ratio)}), {enough}. A size is enough if it "
            f"rejects no more jobs than any other and its best {sweep.choice} is "
            f"within {100 * ENOUGH:.0f} % of the lowest mean bounded slowdown."
        )


def _larger(recommendation: Recommendation, sweep: Sweep) -> Iterator[str]:
    """Describe the effect of a larger size or, for the largest size, the trend of the slowdown."""
    last = len(sweep.x) - 1
    if last == 0:
        return
    if recommendation.at == last:
        before, here = recommendation.least[-2], recommendation.least[-1]
        if math.isfinite(before) and here < (1 - SAME) * before:
            yield (
                f"The lowest mean slowdown still falls at the largest size of the study, by {_share(1 - here / before)} from "
                f"{sweep.labels[-2]} to {sweep.size(last)}; a larger size may be better."
            )
        else:
            yield "It is the largest size in the study; the effect of a larger one is unknown."
        return
    other = recommendation.sizes[last]
    if other is not None and math.isfinite(other.ratio):
        sure = "" if other.certain else "; the two sizes are not distinguishable on these jobs"
        yield (
            f"The largest size of the study, {sweep.size(last)}, has {format_number(other.value)} under the same "
            f"{sweep.choice} ({_more(other.ratio)}){sure}."
        )
    yield from _rises(recommendation, sweep)


def _rises(recommendation: Recommendation, sweep: Sweep) -> Iterator[str]:
    """Describe where a larger size makes the best order worse; the choice does not assume that larger is better."""
    for at in range(1, len(sweep.x)):
        before, here = recommendation.least[at - 1], recommendation.least[at]
        if math.isfinite(before) and math.isfinite(here) and here > (1 + SAME) * before:
            yield (
                f"Larger is not always better: from {sweep.labels[at - 1]} to {sweep.size(at)}, the lowest mean slowdown "
                f"rises by {_share(here / before - 1)}."
            )


def tradeoffs(recommendation: Recommendation, sweep: Sweep) -> list[str]:
    """Compare the choice with the best order in each of the metrics that it may worsen."""
    sentences = []
    for metric in TRADEOFFS:
        order = sweep.best(metric, recommendation.at, METRICS[metric].better)
        if not order:
            continue
        mine, best = (
            sweep.value(metric, recommendation.series, recommendation.at),
            sweep.value(metric, order[0], recommendation.at),
        )
        name = capitalize(_name(metric))
        if order[0] == recommendation.series or math.isclose(mine, best, rel_tol=SAME):
            sentences.append(f"{name}: {_amount(metric, mine)}; no other {sweep.choice} is better.")
        elif math.isfinite(mine):
            sentences.append(
                f"{name}: {_amount(metric, mine)} compared with {_amount(metric, best)} under {order[0]}{_change(best, mine)}."
            )
    degraded = sweep.value("mean_degradation", recommendation.series, recommendation.at)
    if degraded > 0:
        sentences.append(f"Remote memory lengthens runtimes by {format_number(100 * degraded)} % on average at this size.")
    return sentences


def certainty_sentences(recommendation: Recommendation, sweep: Sweep, seeds: int) -> list[str]:
    """Describe the intervals and the effects that they do not cover."""
    sentences = []
    if (rival := recommendation.runner_up) is not None and rival.interval is not None:
        sentences.append(f"{rival.alternative} at the same size: {_verdict(rival)}")
    for at in sorted({recommendation.at - 1, len(recommendation.sizes) - 1} - {-1}):
        other = recommendation.sizes[at]
        if other is not None and other.interval is not None:
            sentences.append(f"{recommendation.series} with {sweep.size(at)}: {_verdict(other)}")
    if recommendation.jobs < 2:
        return [*sentences, "One job gives no intervals."]
    sentences.append(
        f"The intervals (95 %, paired block bootstrap over {format_count(recommendation.jobs, 'job')} in submission order"
        + (f", from {seeds} seeds" if seeds > 1 else "")
        + ") cover variation between periods like this one. They are too narrow if the machine is congested for longer than a "
        "thirtieth of the period. They do not cover another machine, another mix of users, or jobs that react to remote "
        "memory differently from the performance model."
    )
    return sentences


def certainty(recommendation: Recommendation) -> Certainty:
    """Return the certainty of the choice of the order."""
    rival = recommendation.runner_up
    if rival is None:
        return Certainty("unknown", remark="only one order was simulated")
    if rival.interval is None:
        return Certainty("unknown", remark="one run each, without intervals")
    if math.isnan(rival.interval.low):
        return Certainty("unknown", remark="too few jobs for intervals")
    equals = [tied.alternative for tied in recommendation.equals]
    interval, others = rival.interval, "" if equals else " and all others"
    better = f"{rival.alternative}{others}" if rival.certain else ""
    kind: Literal["better", "alike"] = "alike" if equals else "better"
    bounds = (interval.low, interval.high)
    return Certainty(
        kind, interval.level, interval.n, "jobs", bounds, better_than=better, alike=either(equals) if equals else ""
    )


def _verdict(other: Alternative) -> str:
    assert other.interval is not None
    low, high, mean = other.interval.low, other.interval.high, other.interval.mean
    if low == high == mean == 0:
        return "every job has the same slowdown."
    text = f"{format_number(mean, '+')} in mean bounded slowdown [{format_number(low, '+')}, {format_number(high, '+')}]"
    if math.isnan(low):
        return f"{format_number(mean, '+')} in mean bounded slowdown, without an interval."
    if low > 0:
        return f"{text}: worse; the interval excludes zero."
    if high < 0:
        return f"{text}: better; the interval excludes zero."
    return f"{text}: not distinguishable on these jobs."


def _name(metric: str) -> str:
    return _NAMES.get(metric, METRICS[metric].description)


def _values(sweep: Sweep, metric: str, names: Sequence[str], at: int) -> list[float]:
    return [sweep.value(metric, name, at) for name in names]


def _spread(values: Sequence[float]) -> float:
    """Return largest / smallest value - 1; negative if a value is unknown."""
    if not all(math.isfinite(value) for value in values):
        return -1.0
    low, high = min(values), max(values)
    return math.inf if low <= 0 < high else high / low - 1 if low > 0 else 0.0


def _more(ratio: float) -> str:
    if abs(ratio - 1) < SAME:
        return f"the same within {100 * SAME:g} %"
    if ratio >= 3:
        return f"{format_number(ratio)} times as much"
    return f"{_share(ratio - 1)} more" if ratio > 1 else f"{_share(1 - ratio)} less"


def _share(value: float) -> str:
    """Format a positive share in percent with two digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


def _change(old: float, new: float) -> str:
    """Format a relative change in parentheses; "" if there is nothing to compare with."""
    return "" if old == 0 or not math.isfinite(old) else f" ({_more(new / old)})"


def _amount(metric: str, value: float) -> str:
    unit = METRICS[metric].unit
    if unit == "s":
        return format_time(value)
    if unit == "fraction":
        return f"{format_number(100 * value)} %"
    if unit == "MiB":
        return format_memory(value)
    return f"{format_number(value)} {unit}".strip()


def either(names: Sequence[str]) -> str:
    """Join alternatives with "or"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _lower(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
