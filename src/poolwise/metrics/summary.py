"""All metrics of one run under stable names: those that every run gets, and further ones that are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from poolwise import registry
from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.measures.fairness import Fairness
from poolwise.metrics.measures.memory import MemoryDollars, MemoryMeasure
from poolwise.metrics.measures.throughput import OfferedLoad, Throughput
from poolwise.metrics.measures.waits import Waits
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import TAU_S
from poolwise.metrics.window import Window, after_warm_up
from poolwise.model import Schedule, Workload

STANDARD: Sequence[Measure] = (Waits(), Throughput(), Fairness(), MemoryMeasure(), MemoryDollars())
"""What outcomes alone are enough for: every run is measured by these, a kept one too."""


def metrics_of(measures: Iterable[Measure]) -> Mapping[str, Metric]:
    """Name -> metric, of several measures; raises InputError where two have a metric of one name."""
    found: dict[str, Metric] = {}
    for measure in measures:
        for name, metric in measure.metrics.items():
            if name in found:
                problem = f"the metric '{name}' is measured twice"
                raise InputError(problem, field="metrics", remedy=f"name the one of {type(measure).__name__} otherwise")
            found[name] = metric
    return found


METRICS: Mapping[str, Metric] = metrics_of(STANDARD)
"""Name -> what it is; the names that `summarise` returns first, in its order. Sources stand with the functions of each."""


def every_measure(asked: Sequence[Measure] = ()) -> tuple[Measure, ...]:
    """Every measure that is registered, the load and the standard ones first, then what is asked for beside them.

    One that is registered and asked for with settings of its own stands once, as asked for.
    """
    kinds = {type(measure) for measure in asked}
    first = (OfferedLoad(), *STANDARD)
    registered = [registry.make("metrics", name) for name in registry.names("metrics")]
    further = [measure for measure in registered if type(measure) not in {type(known) for known in first}]
    return tuple(measure for measure in (*first, *further) if type(measure) not in kinds) + tuple(asked)


def measure_run(run: MeasuredRun, measures: Sequence[Measure]) -> dict[str, float]:
    """Compute the metrics of those measures that apply to a run, in the order of the measures and of their `metrics`.

    NaN where a metric is undefined. Raises InputError for a measure that gives other metrics than it names.
    """
    metrics_of(measures)
    found: dict[str, float] = {}
    for measure in measures:
        if _applies(measure, run):
            found.update(_values(measure, run))
    return found


def metric_columns(measures: Iterable[Measure], rows: Collection[Iterable[str]]) -> tuple[str, ...]:
    """Names of all metrics of some measures, so that the rows of a table have the same columns.

    A metric that is `per` something stands once for each part that any of the rows has.
    """
    names: list[str] = []
    for name, metric in metrics_of(measures).items():
        parts = dict.fromkeys(part for row in rows for part in row if part.partition(".")[0] == name)
        names += parts if metric.per else [name]
    return tuple(names)


def metrics_named(measures: Iterable[Measure], names: Iterable[str]) -> dict[str, Metric]:
    """Name -> what it is, for names that `measure_run` returned; a part of a metric says of what it is."""
    metrics = metrics_of(measures)
    found: dict[str, Metric] = {}
    for name in names:
        whole, _, part = name.partition(".")
        metric = metrics[whole]
        found[name] = metric._replace(description=f"{metric.description}: {part}") if part else metric
    return found


def summarise(
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
    """Compute every metric of `METRICS`, then those of further measures; NaN where one is undefined or does not apply.

    Parameters
    ----------
    warm_up
        The first submitted jobs up to this number are not measured, whatever the population is.
    population
        (n_job,) jobs whose waits, slowdowns, fairness and degradation are measured: `paper_population`,
        `common_population` or any other choice. Those that did not finish are left out; `measured_jobs` says how many stay.
    window
        For throughput and utilisation, to which all jobs contribute.
    baseline
        The same jobs under FCFS without backfilling with the same memory configuration; those of the population that did not
        finish there are left out of the fairness metrics, `compared_jobs` says how many stay.
    memory_baseline
        The same jobs under the same scheduler on the machine whose throughput per memory dollar is the measure (the paper:
        512 GB in every node, no pools), over a window of its own.
    tau_s
        Bound of the bounded slowdown, seconds.
    dollars_per_gb
        Price of memory.
    measures
        Measures beside the standard ones, such as `find("metrics", "deadlines")()` or one of your own.
    workload, schedule
        Read the jobs as they were submitted, and the schedule, for measures that need them.
    """
    measured = population & after_warm_up(outcomes, warm_up)
    run = MeasuredRun(outcomes, measured, window, warm_up, baseline, memory_baseline, tau_s, dollars_per_gb, workload, schedule)
    chosen = (*STANDARD, *measures)
    found = measure_run(run, chosen)
    return {name: found.get(name, math.nan) for name in metric_columns(chosen, [found])}


def _applies(measure: Measure, run: MeasuredRun) -> bool:
    """Whether a measure says that it applies; one that has the two other members of a `Measure` and no more always does."""
    ask = getattr(type(measure), "applies", Measure.applies)
    return bool(ask(measure, run))


def _values(measure: Measure, run: MeasuredRun) -> dict[str, float]:
    """What a measure computes, in the order of its `metrics`; parts of one metric in the order in which they are given."""
    given = dict(measure.of(run))
    wrong = [name for name in given if not _named(name, measure.metrics)]
    missing = [name for name, metric in measure.metrics.items() if not metric.per and name not in given]
    if wrong or missing:
        name, says = (wrong[0], "gives and does not name in") if wrong else (missing[0], "does not give and names in")
        remedy = "give each of `metrics` by its name, one that is `per` something as NAME.PART"
        problem = f"'{name}' is what {type(measure).__name__} {says} its metrics"
        raise InputError(problem, field="metrics", remedy=remedy)
    order = {name: k for k, name in enumerate(measure.metrics)}
    return {name: float(given[name]) for name in sorted(given, key=lambda name: order[name.partition(".")[0]])}


def _named(name: str, metrics: Mapping[str, Metric]) -> bool:
    whole, _, part = name.partition(".")
    return whole in metrics and bool(part) == bool(metrics[whole].per)
