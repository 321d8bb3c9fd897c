"""Metrics: numbers computed from a schedule, each with its formula and source.

Most start from `Outcomes`, one row a job; some from the whole schedule. A measure of the registry group "metrics" computes one
metric or several of a `MeasuredRun`; `summary` puts the measures of a run together.
"""

from poolwise.metrics.intervals import Interval, mean_interval, paired_block_bootstrap
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.outcomes import Outcomes, Status
from poolwise.metrics.summary import METRICS, metrics_of, summarise
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
    "summarise",
]
