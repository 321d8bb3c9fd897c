"""Performance models: how long a job takes where it is placed."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from poolwise.errors import PolicyError
from poolwise.model import Fetch, JobTable, Machine, Placement, Run, Snapshot
from poolwise.model.rules import FixedSlowdown
from poolwise.model.snapshot import Estimate


class PerformanceModel(Estimate, Protocol):
    """How long a run takes where it is placed. A study has two: the scheduler's estimate and the simulator's truth.

    What a run's work is, a model reads from `view.work`: true durations where it is asked as the truth, requested times
    where it is asked as the estimate.

    The quantity is the slowdown, not the rate: runtime = work + ceil(work * slowdown) is exact to the nanosecond where a
    reciprocal would not be. The rate is 1 / (1 + slowdown); models that are combined multiply their rates and add their
    setups (`performance.combined.Combined`).

    A run lasts for its setup, then for what it fetches, if anything, then for its work. The setup is fixed at the start;
    the pace of the other two follows the surroundings.
    """

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """Models that it is put together from: their rates multiply, their setups add. None: every run takes just its work.

        It speaks for its own class alone (`model_parts`).
        """
        return (self,)

    def setup(self, run: Run, view: Snapshot) -> int:
        """Ns before work begins that no neighbour changes: transfers over links of one's own, attaching."""
        ...

    def fetch(self, run: Run, view: Snapshot) -> Fetch | None:
        """Data that a run which starts now has to bring in over shared links before its work begins; None for none."""
        return None

    def fetch_slowdown(self, run: Run, view: Snapshot) -> float:
        """Extra time per unit of fetching at the present occupancy of `view`, in which the run fetches; > -1."""
        return 0.0

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Extra time per unit of reference work at the present occupancy of `view`, in which the run is included; > -1.

        A run that still fetches is asked about as well: the answer estimates the pace of its work once it begins.
        """
        ...

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Owners whose occupancy changes the slowdown; empty = fixed at the start."""
        ...

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError, and warn, for what a study can know of its jobs beforehand."""
        return

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
        """Slowdowns of some rows of the job table on racks, where nothing else takes time and no neighbour changes them.

        None, the default, if that does not describe the model. It speaks for its own class alone (`fixed_slowdown`).
        """
        return None


def fixed_slowdown(model: PerformanceModel, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
    """Slowdowns that a model states (`PerformanceModel.fixed`); None where its own class states none.

    Raises PolicyError for a slowdown of -1 or less, or one that is no number: with it, no run could progress.
    """
    found = model.fixed(table, rows, machine) if "fixed" in vars(type(model)) else None
    if found is not None and not all(bool(((x > -1) & (x * found.weight > -1) & np.isfinite(x)).all()) for x in found[:2]):
        raise PolicyError(f"{type(model).__name__}.fixed must give finite slowdowns above -1")
    return found
