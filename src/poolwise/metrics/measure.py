"""The interface of metrics, and the run that they measure: outcomes of all jobs, baselines and, if available, the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Protocol

from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import TAU_S
from poolwise.metrics.window import Window, after_warm_up
from poolwise.model import Machine, Schedule, Workload

Better = Literal["lower", "higher", "neither"]


class Metric(NamedTuple):
    """Description of a metric, its unit, and its preferred direction.

    A metric with `per` has one number for each part, called METRIC.PART, such as "resource_used.memory"; the parts depend on
    the run.

    Attributes
    ----------
    description : a few words, as tables show them
    unit : "s", "jobs", "fraction", ...; "" without one
    better : "lower", "higher" or "neither"
    per : kind of part that has a separate number, such as "resource" or "pool"; "" for a single number

    Examples
    --------
    >>> import poolwise
    >>> poolwise.METRICS["mean_wait_s"].unit
    's'
    >>> poolwise.Metric("jobs that wait too long", "jobs", "lower").better
    'lower'
    """

    description: str
    unit: str
    better: Better
    per: str = ""


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One run and the data needed to measure it.

    Attributes
    ----------
    outcomes : outcome of every job
    population : (n_job,) measured jobs, without the warm-up
    window : time window of throughput and utilization, which count all jobs
    warm_up : number of jobs, the first submitted, that are not measured
    baseline : the same jobs under FCFS without backfilling with the same memory configuration
    memory_baseline : the same jobs under the same scheduler on the reference machine for memory dollars
    tau_s : bound of the bounded slowdown, seconds
    dollars_per_gb : price of memory
    read_workload, read_schedule : functions that read the workload, and the schedule with its machine; None if unavailable
    """

    outcomes: Outcomes
    population: BoolArray
    window: Window
    warm_up: int = 0
    baseline: Outcomes | None = None
    memory_baseline: Outcomes | None = None
    tau_s: float = TAU_S
    dollars_per_gb: float = DOLLARS_PER_GB
    read_workload: Callable[[], Workload] | None = None
    read_schedule: Callable[[], Schedule] | None = None

    @classmethod
    def of(cls, schedule: Schedule, baseline: Schedule | None = None, warm_up: int = 0) -> MeasuredRun:
        """Measure a run: without a warm-up all finished jobs, from the first submission to the last end."""
        outcomes = Outcomes.of(schedule)
        return cls(
            outcomes,
            schedule.done & after_warm_up(outcomes, warm_up),
            Window.of(outcomes, warm_up) if warm_up else Window.whole(outcomes),
            warm_up,
            baseline=None if baseline is None else Outcomes.of(baseline),
            read_schedule=lambda: schedule,
        )

    @property
    def counted(self) -> BoolArray:
        """(n_job,) jobs of the population that finished."""
        counted: BoolArray = self.population & self.outcomes.finished
        return counted

    @cached_property
    def workload(self) -> Workload:
        """The jobs as submitted, in the row order of the outcomes; raises InputError if they are not available."""
        if self.read_workload is not None:
            return self.read_workload()
        if self.read_schedule is not None:
            return self.schedule.workload
        raise InputError(
            "a metric needs the workload, which is not available here", remedy="measure the run when it is simulated"
        )

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule with its placements. If only the outcomes of a run were saved, the run is simulated again.

        Raises InputError if that is impossible.
        """
        if self.read_schedule is None:
            remedy = "measure the run when it is simulated"
            raise InputError("a metric needs the schedule, which is not available here", remedy=remedy)
        return self.read_schedule()

    @property
    def machine(self) -> Machine:
        """The machine of the run; raises InputError if the schedule is not available."""
        return self.schedule.machine


class Measure(Protocol):
    """Interface of a measure: one metric or several that are computed together.

    A class in your own file needs no registration; `@register("metrics", NAME)` gives it a name.

    Attributes
    ----------
    metrics : name -> description of the metric, in the order in which tables show them

    Examples
    --------
    >>> import numpy as np, poolwise
    >>> class LongestWait(poolwise.Measure):
    ...     metrics = {"longest_wait_s": poolwise.Metric("longest wait", "s", "lower")}
    ...
    ...     def of(self, run):
    ...         waits = (run.outcomes.start - run.outcomes.submit)[run.counted]
    ...         return {"longest_wait_s": float(waits.max(initial=0)) / 1e9}
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), metrics=[LongestWait()], engine="reference")
    >>> run.metrics["longest_wait_s"]
    60.0
    """

    metrics: ClassVar[Mapping[str, Metric]]

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the metrics are meaningful for a run; otherwise its summary omits them."""
        return True

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute every metric of `metrics`; NaN where undefined (no jobs, no baseline, an empty window)."""
        ...
