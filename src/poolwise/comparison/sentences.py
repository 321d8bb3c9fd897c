"""Sentences that compare runs."""

from __future__ import annotations

import numpy as np

from poolwise.comparison.run_comparison import Comparison, Difference
from poolwise.metrics.intervals import Interval
from poolwise.presentation.format import capitalize, format_number, population_note
from poolwise.presentation.table import unit_of
from poolwise.quantities import format_time

GOAL = "mean_bounded_slowdown"
TODAY = (GOAL, "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s", "utilization")
"""Metrics that are compared with today's configuration."""
_JUDGED = {"alike": "not distinguishable", "unknown": "uncertainty unknown"}


def difference_sentence(comparison: Comparison, d: Difference) -> str:
    """Describe a metric in a run and in the first run, the difference with its interval, and the verdict."""
    description, unit, *_ = comparison.described[d.metric]
    run = f", {comparison.labels[d.run]}" if len(comparison.runs) > 2 else ""
    spread = "" if np.isnan(d.interval.low) else f" [{bounds_text(d.interval, unit)}]"
    numbers = (
        f"{value_text(d.value, unit)} compared with {value_text(d.first, unit)}, {change_text(d.interval.mean, unit)}{spread}"
    )
    return f"{capitalize(description)}{run}: {numbers}; {verdict_text(d)}."


def verdict_text(d: Difference) -> str:
    """Return the verdict on a difference in words."""
    return _JUDGED.get(d.verdict, d.verdict)


def value_text(value: float, unit: str) -> str:
    """Format a value with its unit; a time gets a readable unit."""
    if unit == "s":
        return format_time(value)
    return f"{format_number(100 * value)} %" if unit == "fraction" else f"{format_number(value)} {unit_of(value, unit)}".strip()


def change_text(value: float, unit: str) -> str:
    """Format a change with its sign and unit; a change of a fraction is in percentage points."""
    if unit == "s":
        return f"{'+' if value > 0 else ''}{format_time(value)}"
    return f"{format_number(100 * value, '+')} points" if unit == "fraction" else f"{format_number(value, '+')} {unit}".strip()


def bounds_text(interval: Interval, unit: str) -> str:
    """Format the bounds of a change; times and fractions carry their unit, since the two times may have different units."""
    low, high = (change_text(bound, unit if unit in ("s", "fraction") else "") for bound in (interval.low, interval.high))
    return f"{low} to {high}"


def population_sentence(comparison: Comparison) -> str:
    """State the jobs on which the runs were measured."""
    counts = (int(comparison.population(0, seed).sum()) for seed in comparison.seeds)
    records = [record.run["scheduler"] for run in comparison.runs for record in run.records.values()]
    listed = bool(records) and all(
        isinstance(scheduler, dict) and scheduler.get("kind", "list") == "list" for scheduler in records
    )
    policy = "FCFS without backfilling" if listed else ""
    return population_note(counts, max(run.warm_up for run in comparison.runs), "every run finished", policy)


def today_heading(comparison: Comparison) -> str:
    """Return a heading that names the first run, the reference of the comparison."""
    return f"Changes compared with {comparison.runs[0].parameters['today']}"


def today_sentences(comparison: Comparison) -> list[str]:
    """Describe the changes compared with today, metric by metric, and the measured jobs."""
    sentences = [difference_sentence(comparison, d) for name in TODAY for d in comparison.differences if d.metric == name]
    return [*sentences, population_sentence(comparison)]
