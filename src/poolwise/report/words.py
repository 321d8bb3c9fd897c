"""Sentences from an answer: every number comes from the runs, and a rule on the numbers chooses each sentence."""

from __future__ import annotations

import math

from poolwise.metrics import METRICS
from poolwise.report.answer import ENOUGH, Alternative, Recommendation
from poolwise.report.sweep import Sweep
from poolwise.units import format_memory, format_time


def headline(found: Recommendation, sweep: Sweep) -> str:
    """The recommendation in one line."""
    pool = f" with {sweep.labels[found.at]} of pool per rack" if sweep.x_name else ""
    return f"Run {found.series.upper()}{pool}."


def because(found: Recommendation, sweep: Sweep) -> list[str]:
    """Why, with the numbers that decided it."""
    said = [
        f"The mean bounded slowdown is {_plain(found.value)} there: a job's time from submission to its end is on average "
        f"{_plain(found.value)} times its runtime. Jobs wait {format_time(sweep.value('mean_wait_s', found.series, found.at))} "
        f"on average, half of them at most {format_time(sweep.value('median_wait_s', found.series, found.at))}."
    ]
    if (rival := found.runner_up) is not None and math.isfinite(rival.ratio):
        said.append(
            f"The next best order, {rival.alternative.upper()}, has {_plain(rival.value)} ({_more(rival.ratio)})."
            + ("" if rival.certain else " The two cannot be told apart on this log.")
        )
    for at, other in enumerate(found.sizes):
        if other is None or not math.isfinite(other.ratio):
            continue
        if at == found.at - 1:
            said.append(
                f"The next smaller pool, {sweep.labels[at]}, makes it {_plain(other.value)} ({_more(other.ratio)})"
                + (", too small." if other.certain else "; the two sizes cannot be told apart on this log.")
            )
        elif at == len(found.sizes) - 1:
            said.append(
                f"The largest pool tried, {sweep.labels[at]}, brings {_plain(other.value)} ({_more(other.ratio)}); "
                "a size counts as enough when it rejects no more jobs than any other and the best order is within "
                f"{100 * ENOUGH:.0f} % of the least."
            )
    if len(sweep.x) > 1 and found.at == len(sweep.x) - 1:
        said.append("The slowdown still falls at the largest size tried: the right size may be larger.")
    return said


def gives_up(found: Recommendation, sweep: Sweep) -> list[str]:
    """What the choice costs, metric by metric, against the order that is best in each."""
    said = []
    for metric in ("throughput_per_100s", "utilization", "p99_bounded_slowdown", "discrimination_s", "discrimination_10pct_s"):
        if metric not in METRICS:
            continue
        order = sweep.best(metric, found.at, METRICS[metric].better)
        if not order:
            continue
        mine, theirs = sweep.value(metric, found.series, found.at), sweep.value(metric, order[0], found.at)
        name = METRICS[metric].description
        if order[0] == found.series or math.isclose(mine, theirs, rel_tol=1e-3):
            said.append(f"{_first_up(name)}: nothing; it is the best order here too ({_amount(metric, mine)}).")
        else:
            said.append(
                f"{_first_up(name)}: {_amount(metric, mine)} against {_amount(metric, theirs)} under {order[0].upper()} "
                f"({_change(theirs, mine)})."
            )
    degraded = sweep.value("mean_degradation", found.series, found.at)
    if math.isfinite(degraded):
        said.append(f"Remote memory makes the jobs run {100 * degraded:.2g} % longer on average at this size.")
    return said


def how_sure(found: Recommendation, sweep: Sweep, seeds: int) -> list[str]:
    """What the intervals say, and what they do not cover."""
    said = []
    if (rival := found.runner_up) is not None and rival.interval is not None:
        said.append(f"Against {rival.alternative.upper()} at the same size: {_verdict(rival)}")
    for at in sorted({found.at - 1, len(found.sizes) - 1} - {-1}):
        other = found.sizes[at]
        if other is not None and other.interval is not None:
            said.append(f"Against a pool of {sweep.labels[at]}: {_verdict(other)}")
    said.append(
        f"The intervals (95 %, paired block bootstrap over {found.jobs:,} jobs in the order of submission"
        + (f", from {seeds} seeds" if seeds > 1 else "")
        + ") say how the answer would vary over other stretches like this one; where the machine is congested for longer than "
        "a thirtieth of the stretch they are too narrow. They do not cover a different machine, a different mix of users, or "
        "jobs that react otherwise to remote memory than the measured kernels do."
    )
    return said


def _verdict(other: Alternative) -> str:
    assert other.interval is not None
    low, high = other.interval.low, other.interval.high
    mean = other.interval.mean
    text = f"the mean bounded slowdown differs by {_plain(mean, '+')} [{_plain(low, '+')}, {_plain(high, '+')}]"
    if low > 0:
        return f"{text}: worse, the interval excludes zero."
    if high < 0:
        return f"{text}: better, the interval excludes zero."
    return f"{text}: not distinguishable on this log."


def _more(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.5:
        return "the same within 0.5 %"
    return f"{percent:.0f} % more" if percent > 0 else f"{-percent:.0f} % less"


def _change(old: float, new: float) -> str:
    if old == 0 or not math.isfinite(old):
        return "from zero"
    return f"{100 * (new / old - 1):+.1f} %" if abs(new / old) < 10 else f"{new / old:.0f} times"


def _amount(metric: str, value: float) -> str:
    unit = METRICS[metric].unit
    if unit == "s":
        return format_time(value)
    if unit == "fraction":
        return f"{100 * value:.3g} %"
    if unit == "MiB":
        return format_memory(value)
    return f"{_plain(value)} {unit}".strip()


def _plain(value: float, sign: str = "") -> str:
    """A number without an exponent: three digits, or whole from a thousand on."""
    return format(value, f"{sign},.0f") if abs(value) >= 1000 else format(value, f"{sign}.3g")


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
