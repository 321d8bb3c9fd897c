"""What a metric is: numbers of one run, from what became of every job and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import TAU_S
from poolwise.metrics.window import Window
from poolwise.model import Workload

Better = Literal["lower", "higher", "neither"]


class Metric(NamedTuple):
    """What a metric says, its unit, and which way is better."""

    description: str
    unit: str
    better: Better


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
    read : reads the workload, where it can be read
    """

    outcomes: Outcomes
    population: BoolArray
    window: Window
    warm_up: int = 0
    baseline: Outcomes | None = None
    memory_baseline: Outcomes | None = None
    tau_s: float = TAU_S
    dollars_per_gb: float = DOLLARS_PER_GB
    read: Callable[[], Workload] | None = None

    @property
    def counted(self) -> BoolArray:
        """(n_job,) jobs of the population that finished."""
        counted: BoolArray = self.population & self.outcomes.finished
        return counted

    @property
    def workload(self) -> Workload:
        """The jobs as they were submitted, row by row those of the outcomes; raises InputError where nobody can read them."""
        if self.read is None:
            raise InputError("a metric needs the workload, which is not known here", remedy="measure the run where it is made")
        return self.read()


class Measure(Protocol):
    """One metric or several that are computed together. Register the class with `@register("metrics", NAME)`.

    Attributes
    ----------
    metrics : name -> what it is, in the order in which tables show them
    """

    metrics: ClassVar[Mapping[str, Metric]]

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute every metric of `metrics`; NaN where one is undefined (no jobs, no baseline, an empty window)."""
        ...
