"""Sentences about runs side by side."""

from __future__ import annotations

import numpy as np

from poolwise.compare.runs import Comparison, Difference
from poolwise.exhibits.table import cell_text

GOAL = "mean_bounded_slowdown"
TODAY = (GOAL, "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s", "utilization")
"""What is said of a change against today."""


def difference_sentence(found: Comparison, d: Difference) -> str:
    """Say a metric of a run, that of the first, the difference and whether it is certain."""
    description, unit, *_ = found.described[d.metric]
    numbers = f"{cell_text(d.value, unit)} against {cell_text(d.first, unit)}"
    spread = "" if np.isnan(d.interval.low) else f" [{d.interval.low:+.3g}, {d.interval.high:+.3g}]"
    return f"{description}, {found.labels[d.run]}: {numbers}, {d.interval.mean:+.3g}{spread}: {d.verdict}."


def population_sentence(found: Comparison) -> str:
    """Say on which jobs the runs were measured."""
    counts = sorted({int(found.population(0, seed).sum()) for seed in found.seeds})
    return f"Measured on the {' or '.join(f'{n:,}' for n in counts)} jobs after the warm-up that every run finished."


def today_heading(found: Comparison) -> str:
    """Name what the other runs are compared with, the first."""
    return f"What changes against {found.runs[0].parameters['today']}"


def today_sentences(found: Comparison) -> list[str]:
    """Say what changes against today, metric by metric, and on which jobs."""
    said = [difference_sentence(found, d) for name in TODAY for d in found.differences if d.metric == name]
    return [*said, population_sentence(found)]
