"""Repeated runs of the same jobs under different schedulers, as a search needs them, in arrays that are built once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.list_scheduling.repeats import RackRepeats
from poolwise.engines.simulate import simulate
from poolwise.interfaces import Scheduler
from poolwise.units import NEVER


class StartsAndEnds(NamedTuple):
    """Starts and ends (ns) of jobs, (n_job,) each; `NEVER` for jobs that do not run."""

    start: IntArray
    end: IntArray


@dataclass
class Repeats:
    """A run that is repeated under different schedulers, with the results of `simulate`.

    Parameters
    ----------
    spec
        Specification of the run with its first scheduler.
    """

    spec: RunSpec
    _racks: list[RackRepeats] = field(default_factory=list)

    def under(self, scheduler: Scheduler) -> StartsAndEnds:
        """Run under a scheduler, in the arrays of an earlier run if they match."""
        racks = next((racks for racks in self._racks if racks.accepts(scheduler)), None)
        if racks is None:
            spec = replace(self.spec, scheduler=scheduler)
            steady = not spec.disturbances and spec.machine.failures is None and spec.initial is None
            if steady and list_scheduling.unsupported(spec) is None:
                racks = RackRepeats(spec)
                if racks.accepts(scheduler):
                    self._racks.append(racks)
        if racks is not None and racks.accepts(scheduler):
            return self._times(*racks.run(scheduler))
        return self._simulated(scheduler)

    def _simulated(self, scheduler: Scheduler) -> StartsAndEnds:
        spec = self.spec
        schedule = simulate(
            spec.machine,
            spec.workload,
            scheduler,
            truth=spec.truth,
            estimate=spec.estimate,
            seed=spec.seed,
            disturbances=spec.disturbances,
            requeue=spec.requeue,
            pass_per_event=spec.pass_per_event,
            initial=spec.initial,
        ).schedule
        return self._times(schedule.job, schedule.start, schedule.end)

    def _times(self, job: IntArray, start: IntArray, end: IntArray) -> StartsAndEnds:
        """Return starts and ends by job; for a requeued job, the first start and the last end."""
        n = len(self.spec.workload)
        starts, ends = np.full(n, NEVER), np.full(n, NEVER)
        starts[job[::-1]], ends[job] = start[::-1], end
        return StartsAndEnds(starts, ends)
