"""Performance models: how long a job takes at its placement."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces.user_class import statement_holds
from poolwise.model import Fetch, JobTable, Machine, Placement, Run, Snapshot
from poolwise.model.rules import FixedSlowdown
from poolwise.model.snapshot import Estimate


class PerformanceModel(Estimate, Protocol):
    """Interface of a performance model: how long a run takes at its placement.

    A study has two models: the model of the true runtimes, and the estimate that the scheduler believes. Both read a run's work
    from `snapshot.work`: true durations in the snapshots of the true model, requested times in those of the estimate.

    Models return the slowdown, not the rate, because runtime = work + ceil(work * slowdown) is exact to the nanosecond, while
    dividing by a rate is not. The rate is 1 / (1 + slowdown). Combined models multiply their rates and add their setups
    (`performance.combined.Combined`).

    A run consists of its setup, then the fetch of its data, if any, then its work. The setup time is fixed at the start; the
    pace of the other two phases depends on neighboring runs.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import PerformanceModel
    >>> class Double(PerformanceModel):
    ...     def setup(self, run, snapshot):
    ...         return 0
    ...
    ...     def slowdown(self, run, snapshot):
    ...         return 1.0
    ...
    ...     def touches(self, placement, snapshot):
    ...         return ()
    >>> workload = poolwise.Workload.of("0 s", "1 min")
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), model=Double(), engine="reference")
    >>> run.metrics["makespan_s"]
    120.0
    """

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """Models that the model consists of: their rates multiply, and their setups add up.

        An empty tuple means that a run takes only the time of its work. The statement applies only to the class that makes it
        (`model_parts`).
        """
        return (self,)

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the setup time before the work begins (ns), such as that of attaching a device. Neighbors do not affect it.

        Parameters
        ----------
        run
            The run that starts.
        snapshot
            The state, with the run in it.
        """
        ...

    def fetch(self, run: Run, snapshot: Snapshot) -> Fetch | None:
        """Return data that a starting run transfers over shared links before its work begins; None for none."""
        return None

    def fetch_slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the extra time per unit of fetching in the state `snapshot`, in which the run fetches; greater than -1."""
        return 0.0

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the extra time per unit of reference work at the present occupancy; greater than -1.

        Parameters
        ----------
        run
            A running run. If it still fetches, the result estimates the pace of its later work.
        snapshot
            The state, with the run in it.
        """
        ...

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the owners whose occupancy changes the slowdown; none if it is fixed at the start.

        Parameters
        ----------
        placement
            Placement of a run.
        snapshot
            The state.
        """
        ...

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError, or warn, for problems of the jobs that are known before a run."""
        return

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
        """Return the slowdowns of some rows of the job table on racks, if nothing else takes time and neighbors do not matter.

        The default, None, means that no fixed slowdowns describe the model. A subclass inherits it unless it overrides a method
        (`fixed_slowdown`).
        """
        return None


def fixed_slowdown(model: PerformanceModel, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
    """Return the slowdowns that a model states (`PerformanceModel.fixed`); None if none, or if a subclass overrides a method.

    Raises PolicyError for a slowdown of -1 or less, or NaN, with which no run could progress.
    """
    fixed = model.fixed(table, rows, machine) if statement_holds(type(model), "fixed") else None
    if fixed is not None and not all(bool(((x > -1) & (x * fixed.weight > -1) & np.isfinite(x)).all()) for x in fixed[:2]):
        raise PolicyError(f"{type(model).__name__}.fixed must return finite slowdowns above -1")
    return fixed
