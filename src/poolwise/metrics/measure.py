"""What a metric is: numbers of one run, from what became of every job, what it is compared with, and what held what when."""

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
from poolwise.metrics.window import Window
from poolwise.model import Machine, Schedule, Workload

Better = Literal["lower", "higher", "neither"]


class Metric(NamedTuple):
    """What a metric says, its unit, and which way is better.

    Where `per` says "resource", "unit type" or the like, there is one number for each of these, called METRIC.PART, such as
    "resource_used.memory"; which parts there are depends on the run.
    """

    description: str
    unit: str
    better: Better
    per: str = ""


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One run, and what it is measured on.

    Attributes
    ----------
    outcomes : what became of every job
    population : (n_job,) jobs that are measured, the warm-up left out
    window : for throughput and utilisation, to which all jobs contribute
    warm_up : the first so many submitted jobs are not measured
    baseline : the same jobs under FCFS without backfilling with the same memory configuration
    memory_baseline : the same jobs under the same scheduler on the machine that memory dollars are compared with
    tau_s : bound of the bounded slowdown, seconds
    dollars_per_gb : price of memory
    read_workload, read_schedule : read the workload, and the schedule with its machine, where that can be done
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
    def of(cls, schedule: Schedule, baseline: Schedule | None = None) -> MeasuredRun:
        """Measure a whole run: all jobs that finished, from the first submission to the last end."""
        outcomes = Outcomes.of(schedule)
        return cls(
            outcomes,
            schedule.done,
            Window.whole(outcomes),
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
        """The jobs as they were submitted, row by row those of the outcomes; raises InputError where nobody can read them."""
        if self.read_workload is not None:
            return self.read_workload()
        if self.read_schedule is not None:
            return self.schedule.workload
        raise InputError("a metric needs the workload, which is not known here", remedy="measure the run where it is made")

    @cached_property
    def schedule(self) -> Schedule:
        """What was placed where and when. A run whose outcomes alone were kept is simulated again for it.

        Raises InputError where that cannot be done.
        """
        if self.read_schedule is None:
            remedy = "measure the run where it is made"
            raise InputError("a metric needs the schedule, which is not known here", remedy=remedy)
        return self.read_schedule()

    @property
    def machine(self) -> Machine:
        """What the run was on; errors as `schedule`."""
        return self.schedule.machine


class Measure(Protocol):
    """One metric or several that are computed together. Register the class with `@register("metrics", NAME)`.

    Attributes
    ----------
    metrics : name -> what it is, in the order in which tables show them
    """

    metrics: ClassVar[Mapping[str, Metric]]

    def applies(self, run: MeasuredRun) -> bool:
        """Whether the metrics mean anything in such a run; where not, they are left out of its summary."""
        return True

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute every metric of `metrics`; NaN where one is undefined (no jobs, no baseline, an empty window)."""
        ...
