"""Measures of benefit and discrimination compared with FCFS without backfilling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.metrics import fairness
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register

_EXTREMES = (10, 20)


def _extreme() -> Iterator[tuple[str, Metric]]:
    for x in _EXTREMES:
        yield f"discrimination_{x}pct_s", Metric(f"wait added to the {x} % most delayed jobs", "s", "lower")
        yield (
            f"marginal_discrimination_{x}pct_s",
            Metric(f"wait added to the {x} % most delayed jobs minus wait saved by the {x} % most favored jobs", "s", "lower"),
        )


@register("metrics", "fairness")
@dataclass(frozen=True)
class Fairness(Measure):
    """Job waits compared with FCFS without backfilling; jobs that did not finish under that baseline are excluded."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "compared_jobs": Metric("jobs compared with FCFS without backfilling", "jobs", "neither"),
        "benefit_s": Metric("benefit: total wait saved by jobs that wait less", "s", "higher"),
        "discrimination_s": Metric("discrimination: total wait added to jobs that wait longer", "s", "lower"),
        "marginal_discrimination_s": Metric("discrimination minus benefit", "s", "lower"),
        **dict(_extreme()),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics; NaN without a baseline."""
        baseline = run.baseline
        if baseline is None or not (compared := run.counted & baseline.finished).any():
            none = dict.fromkeys(self.metrics, np.nan)
            return none if baseline is None else {**none, "compared_jobs": 0.0}
        b = fairness.waiting_benefit_s(run.outcomes, baseline)[compared]
        found = {
            "compared_jobs": float(len(b)),
            "benefit_s": fairness.benefit(b),
            "discrimination_s": fairness.discrimination(b),
            "marginal_discrimination_s": fairness.marginal_discrimination(b),
        }
        for x in _EXTREMES:
            found[f"discrimination_{x}pct_s"] = fairness.extreme_discrimination(b, x)
            found[f"marginal_discrimination_{x}pct_s"] = fairness.extreme_marginal_discrimination(b, x)
        return found
