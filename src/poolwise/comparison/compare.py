"""Comparison of runs that are in memory, in files, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from poolwise.api import SimulatedRun
from poolwise.api.simulation import scheduler_text
from poolwise.comparison.run_comparison import ComparedOver, Comparison
from poolwise.comparison.saved_run import SavedRun, read_runs
from poolwise.comparison.today import prepend_today
from poolwise.files.component import Component
from poolwise.model import Schedule, Workload


@dataclass(frozen=True, eq=False)
class RunInMemory(SavedRun):
    """A simulated run in the form of a saved one; it has its workload and schedule, so nothing is simulated again."""

    run: SimulatedRun | None = None

    @classmethod
    def of(cls, run: SimulatedRun) -> RunInMemory:
        """Name a run by its scheduler and its machine, which become part of its label where they differ."""
        parameters = {"machine": run.machine.name}
        if run.scheduler is not None:
            parameters["scheduler"] = scheduler_text(run.scheduler)
        return cls(parameters, Path(run.workload.name), {0: run.outcomes}, 0, False, {}, {}, run)

    def workload(self, seed: int) -> Workload:
        """Return the workload of the run."""
        return self._run.workload

    def schedule(self, seed: int) -> Schedule:
        """Return the schedule of the run."""
        return self._run.schedule

    @property
    def _run(self) -> SimulatedRun:
        assert self.run is not None
        return self.run


def compare(*runs: SimulatedRun | str | Path, over: ComparedOver | None = None, metrics: Sequence[str] = ()) -> Comparison:
    """Compare two or more runs of the same jobs, the others with the first.

    Parameters
    ----------
    runs
        Runs that `simulate` returned, or references to runs in files: a folder of `poolwise run`, FOLDER:PATH=VALUE,... for
        some of its runs, or a file that `poolwise simulate --schedule` wrote. The same run may be given twice.
    over
        Over what confidence intervals are: "seeds" or "jobs". By default the seeds, if all runs share three or more.
    metrics
        Names of metrics in addition to the standard ones and those that the runs were measured by.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        There are fewer than two runs, they are of different jobs, or one cannot be read.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s", "0 s"], ["30 min", "1 min", "2 min"])
    >>> fcfs, sjf = (
    ...     poolwise.simulate(workload, poolwise.Machine.flat(1), order=order, engine="reference") for order in ("fcfs", "sjf")
    ... )
    >>> found = poolwise.compare(fcfs, sjf)
    >>> [d.value < d.first for d in found.differences if d.metric == "mean_wait_s"]
    [True]
    """
    found: list[SavedRun] = []
    for run in runs:
        found += [RunInMemory.of(run)] if isinstance(run, SimulatedRun) else read_runs(str(run))
    if found and not isinstance(found[0], RunInMemory):
        found = prepend_today(found)
    return Comparison.of(found, over, [Component(name=name).resolve_paths(Path()) for name in metrics])
