"""One run again and again under other schedulers, such as a search asks for: what does not change is laid out once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.list_scheduling.repeats import RackRepeats
from poolwise.engines.simulate import simulate
from poolwise.interfaces import Scheduler
from poolwise.units import NEVER


class StartsAndEnds(NamedTuple):
    """When jobs (n_job,) start and end, ns; `NEVER` for those that do not run."""

    start: IntArray
    end: IntArray


@dataclass
class Repeats:
    """A run that is made again and again under other schedulers, with the result of `simulate`.

    Parameters
    ----------
    parts
        The run; its scheduler is the first.
    """

    parts: Parts
    _racks: list[RackRepeats] = field(default_factory=list)

    def under(self, scheduler: Scheduler) -> StartsAndEnds:
        """Run under a scheduler; in the arrays of an earlier run where they suit it."""
        racks = next((racks for racks in self._racks if racks.takes(scheduler)), None)
        if racks is None:
            parts = replace(self.parts, scheduler=scheduler)
            steady = not parts.disturbances and parts.machine.failures is None and parts.initial is None
            if steady and list_scheduling.unsupported(parts) is None:
                racks = RackRepeats(parts)
                if racks.takes(scheduler):
                    self._racks.append(racks)
        if racks is not None and racks.takes(scheduler):
            return self._times(*racks.run(scheduler))
        return self._simulated(scheduler)

    def _simulated(self, scheduler: Scheduler) -> StartsAndEnds:
        parts = self.parts
        schedule = simulate(
            parts.machine,
            parts.workload,
            scheduler,
            truth=parts.truth,
            estimate=parts.estimate,
            seed=parts.seed,
            disturbances=parts.disturbances,
            requeue=parts.requeue,
            pass_per_event=parts.pass_per_event,
            initial=parts.initial,
        ).schedule
        return self._times(schedule.job, schedule.start, schedule.end)

    def _times(self, job: IntArray, start: IntArray, end: IntArray) -> StartsAndEnds:
        """Starts and ends job by job; of a job that runs again, the first start and the last end."""
        n = len(self.parts.workload)
        starts, ends = np.full(n, NEVER), np.full(n, NEVER)
        starts[job[::-1]], ends[job] = start[::-1], end
        return StartsAndEnds(starts, ends)
