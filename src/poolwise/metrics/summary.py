"""All metrics of one run under stable names: those that every run gets, and further ones that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.measures.fairness import Fairness
from poolwise.metrics.measures.memory import MemoryDollars, MemoryMeasure
from poolwise.metrics.measures.throughput import Throughput
from poolwise.metrics.measures.waits import Waits
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import TAU_S
from poolwise.metrics.window import Window, after_warm_up
from poolwise.model import Workload

STANDARD: Sequence[Measure] = (Waits(), Throughput(), Fairness(), MemoryMeasure(), MemoryDollars())
"""What every run is measured by."""


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
) -> dict[str, float]:
    """Compute every metric of `METRICS`, then those of further measures; NaN where one is undefined.

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
    workload
        Reads the jobs as they were submitted, for measures that need them.
    """
    measured = population & after_warm_up(outcomes, warm_up)
    run = MeasuredRun(outcomes, measured, window, warm_up, baseline, memory_baseline, tau_s, dollars_per_gb, workload)
    chosen = (*STANDARD, *measures)
    found = {name: value for measure in chosen for name, value in measure.of(run).items()}
    return {name: float(found[name]) for name in metrics_of(chosen)}
