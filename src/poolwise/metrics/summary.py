"""All metrics of one run under stable names: the standard metrics of every run, and any metrics requested in addition."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from poolwise import registry
from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.measures import Fairness, MemoryDollars, MemoryMeasure, OfferedLoad, Throughput, Waits
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import TAU_S
from poolwise.metrics.window import Window, after_warm_up
from poolwise.model import Schedule, Workload

STANDARD: Sequence[Measure] = (Waits(), Throughput(), Fairness(), MemoryMeasure(), MemoryDollars())
"""Measures that need only the outcomes; they apply to every run, including saved ones."""


def metrics_of(measures: Iterable[Measure]) -> Mapping[str, Metric]:
    """Return name -> metric over several measures; raise InputError if two measures define a metric of the same name."""
    metrics: dict[str, Metric] = {}
    for measure in measures:
        for name, metric in measure.metrics.items():
            if name in metrics:
                problem = f"two measures define the metric '{name}'"
                raise InputError(problem, field="metrics", remedy=f"rename the metric of {type(measure).__name__}")
            metrics[name] = metric
    return metrics


METRICS: Mapping[str, Metric] = metrics_of(STANDARD)
"""Name -> metric of the standard measures, in the order in which `summarize` returns them; sources are with each function."""


def every_measure(requested: Sequence[Measure] = ()) -> tuple[Measure, ...]:
    """Return all registered measures, the load and the standard ones first, followed by the `requested` ones.

    A requested measure replaces the registered one of its class.
    """
    kinds = {type(measure) for measure in requested}
    first = (OfferedLoad(), *STANDARD)
    registered = [registry.make("metrics", name) for name in registry.names("metrics")]
    further = [measure for measure in registered if type(measure) not in {type(measure_first) for measure_first in first}]
    return tuple(measure for measure in (*first, *further) if type(measure) not in kinds) + tuple(requested)


def measure_run(run: MeasuredRun, measures: Sequence[Measure]) -> dict[str, float]:
    """Compute the metrics of the measures that apply to a run, in the order of the measures and of their `metrics`.

    A metric is NaN where undefined. Raises InputError for a measure whose values do not match its `metrics`.
    """
    metrics_of(measures)
    values: dict[str, float] = {}
    for measure in measures:
        if _applies(measure, run):
            values.update(_values(measure, run))
    return values


def metric_columns(measures: Iterable[Measure], rows: Collection[Iterable[str]]) -> tuple[str, ...]:
    """Return the metric names of several measures, so that all rows of a table have the same columns.

    A metric with `per` appears once for each part that occurs in any row.
    """
    names: list[str] = []
    for name, metric in metrics_of(measures).items():
        parts = dict.fromkeys(part for row in rows for part in row if part.partition(".")[0] == name)
        names += parts if metric.per else [name]
    return tuple(names)


def metrics_named(measures: Iterable[Measure], names: Iterable[str]) -> dict[str, Metric]:
    """Return name -> metric for names that `measure_run` returned; the description of "METRIC.PART" includes the part."""
    metrics = metrics_of(measures)
    named: dict[str, Metric] = {}
    for name in names:
        whole, _, part = name.partition(".")
        metric = metrics[whole]
        named[name] = metric._replace(description=f"{metric.description}: {part}") if part else metric
    return named


def summarize(
    outcomes: Outcomes,
    *,
    warm_up: int,
    population: BoolArray,
    window: Window,
    baseline: Outcomes | None = None,
    memory_baseline: Outcomes | None = None,
    tau_s: float = TAU_S,
    dollars_per_gb: float = DOLLARS_PER_GB,
    measures: Sequence[Measure] = (),
    workload: Callable[[], Workload] | None = None,
    schedule: Callable[[], Schedule] | None = None,
) -> dict[str, float]:
    """Compute every metric of `METRICS`, then those of further measures; NaN where undefined or not applicable.

    `population` selects the jobs, (n_job,), whose waits, slowdowns, fairness and degradation are measured, regardless of the
    window. The first `warm_up` submitted jobs and unfinished jobs are excluded, and `measured_jobs` counts the rest. Jobs that
    did not finish in the `baseline` are excluded from fairness, and `compared_jobs` counts the rest. The other arguments are
    the attributes of `MeasuredRun`. Returns name -> value, the names of `METRICS` first.
    """
    measured = population & after_warm_up(outcomes, warm_up)
    run = MeasuredRun(outcomes, measured, window, warm_up, baseline, memory_baseline, tau_s, dollars_per_gb, workload, schedule)
    chosen = (*STANDARD, *measures)
    values = measure_run(run, chosen)
    return {name: values.get(name, math.nan) for name in metric_columns(chosen, [values])}


_REMOTE = frozenset(("mean_degradation", "share_remote_memory"))
"""Metrics of remote memory, which only machines with memory pools have."""


def hidden_metrics(runs: Sequence[Mapping[str, float]], pools: bool) -> frozenset[str]:
    """Return the metrics that tables of some runs omit, given whether a machine has memory pools.

    These are metrics that are undefined in every run and, without pools, metrics of remote memory that are 0 in every run.
    """
    names = {name for run in runs for name in run}
    values = {name: [run[name] for run in runs if not math.isnan(run.get(name, math.nan))] for name in names}
    return frozenset(name for name in names if not any(values[name]) and (not values[name] or (name in _REMOTE and not pools)))


def _applies(measure: Measure, run: MeasuredRun) -> bool:
    """Return whether a measure applies to a run; a measure class without `applies` always does."""
    applies = getattr(type(measure), "applies", Measure.applies)
    return bool(applies(measure, run))


def _values(measure: Measure, run: MeasuredRun) -> dict[str, float]:
    """Return the values of a measure in the order of its `metrics`, parts of one metric in the order of the measure."""
    values = dict(measure.of(run))
    undeclared = [name for name in values if not _declared(name, measure.metrics)]
    missing = [name for name, metric in measure.metrics.items() if not metric.per and name not in values]
    if undeclared or missing:
        kind = type(measure).__name__
        if undeclared:
            problem = f"{kind} returns '{undeclared[0]}', which its metrics do not declare"
        else:
            problem = f"{kind} declares the metric '{missing[0]}' but does not return it"
        remedy = "return each name of `metrics`; for a metric with `per`, return NAME.PART"
        raise InputError(problem, field="metrics", remedy=remedy)
    order = {name: k for k, name in enumerate(measure.metrics)}
    return {name: float(values[name]) for name in sorted(values, key=lambda name: order[name.partition(".")[0]])}


def _declared(name: str, metrics: Mapping[str, Metric]) -> bool:
    whole, _, part = name.partition(".")
    return whole in metrics and bool(part) == bool(metrics[whole].per)
