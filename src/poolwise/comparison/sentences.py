"""Sentences about runs side by side."""

from __future__ import annotations

import numpy as np

from poolwise.comparison.run_comparison import Comparison, Difference
from poolwise.presentation.format import population_words, spoken_number
from poolwise.units import format_time

GOAL = "mean_bounded_slowdown"
TODAY = (GOAL, "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s", "utilization")
"""What is said of a change against today."""
_JUDGED = {"alike": "not distinguishable", "unknown": "how certain that is, is not known"}


def difference_sentence(found: Comparison, d: Difference) -> str:
    """Say a metric of a run, that of the first, the difference and whether it is certain."""
    description, unit, *_ = found.described[d.metric]
    run = f", {found.labels[d.run]}" if len(found.runs) > 2 else ""
    bounds = [_change(bound, unit) for bound in (d.interval.low, d.interval.high)]
    spread = "" if np.isnan(d.interval.low) else f" [{bounds[0]} to {bounds[1]}]"
    numbers = f"{_said(d.value, unit)} against {_said(d.first, unit)}, {_change(d.interval.mean, unit)}{spread}"
    return f"{description[:1].upper()}{description[1:]}{run}: {numbers}; {_JUDGED.get(d.verdict, d.verdict)}."


def _said(value: float, unit: str) -> str:
    """A value with its unit, a time as people say it."""
    if unit == "s":
        return format_time(value)
    return f"{spoken_number(100 * value)} %" if unit == "fraction" else spoken_number(value)


def _change(value: float, unit: str) -> str:
    """The same with a sign; a share of the whole in percentage points."""
    if unit == "s":
        return f"{'+' if value > 0 else ''}{format_time(value)}"
    return f"{spoken_number(100 * value, '+')} points" if unit == "fraction" else spoken_number(value, "+")


def population_sentence(found: Comparison) -> str:
    """Say on which jobs the runs were measured."""
    counts = (int(found.population(0, seed).sum()) for seed in found.seeds)
    return population_words(counts, max(run.warm_up for run in found.runs), "every run finished")


def today_heading(found: Comparison) -> str:
    """Name what the other runs are compared with, the first."""
    return f"What changes against {found.runs[0].parameters['today']}"


def today_sentences(found: Comparison) -> list[str]:
    """Say what changes against today, metric by metric, and on which jobs."""
    said = [difference_sentence(found, d) for name in TODAY for d in found.differences if d.metric == name]
    return [*said, population_sentence(found)]
