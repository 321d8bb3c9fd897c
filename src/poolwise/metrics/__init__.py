"""Metrics: numbers computed from a schedule, each with its formula and source.

Most metrics are computed from `Outcomes`, a table with one row per job; some need the whole schedule. A measure of the
registry group "metrics" computes one or more metrics of a `MeasuredRun`; `summary` combines the measures of a run.
"""

from poolwise.metrics.intervals import Interval, mean_interval, paired_block_bootstrap
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.outcomes import Outcomes, Status
from poolwise.metrics.summary import METRICS, metrics_of, summarize
from poolwise.metrics.window import Window, common_population, paper_population

__all__ = [
    "METRICS",
    "Interval",
    "Measure",
    "MeasuredRun",
    "Metric",
    "Outcomes",
    "Status",
    "Window",
    "common_population",
    "mean_interval",
    "metrics_of",
    "paired_block_bootstrap",
    "paper_population",
    "summarize",
]
