"""Memory over time, drawn: phases of different use, one of which is the peak."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from poolwise.errors import InputError
from poolwise.model import MemoryUse, Workload
from poolwise.random import uniform
from poolwise.registry import register
from poolwise.traces.memory_use.source import MemoryUseSource, with_overestimates

MOST = 1000


@register("memory_uses", "phases")
@dataclass(frozen=True)
class Phases(MemoryUseSource):
    """Each job has 1 to `phases` phases; in one of them it uses the memory that the trace says, in the others a part of that.

    All of it is invented, and stated here: the number of phases is uniform, so are the places in the work at which they end,
    which of them is the peak, and what the others use, from `least` of the peak to all of it. Draws depend on (seed, job id).

    Parameters
    ----------
    seed
        Seed of the draws; a study gives its own.
    phases
        Most phases of a job; 1 for jobs that use their peak all the time.
    least
        Least use in a phase, as a share of the peak.
    overestimate
        By how much more than their peak users ask for: 0.6 is 60 %.
    overestimating
        Share of the users who do; the others ask for their peak.
    """

    seed: int = 0
    phases: int = 4
    least: float = 0.2
    overestimate: float = 0.0
    overestimating: float = 1.0

    def applied(self, workload: Workload) -> Workload:
        """Draw the phases of each job."""
        if not 1 <= self.phases <= MOST:
            raise InputError(f"phases must be between 1 and {MOST}, not {self.phases}", field="phases", remedy="correct it")
        if not 0 <= self.least <= 1:
            raise InputError(f"least must be between 0 and 1, not {self.least:g}", field="least", remedy="correct it")
        asked = with_overestimates(workload, self.seed, self.overestimate, self.overestimating)
        requests = {**workload.requests, "memory": asked} if "memory" in workload.requests else workload.requests
        return replace(workload, requests=requests, memory_use=self.use(workload))

    def use(self, workload: Workload) -> MemoryUse:
        """Memory over the work of each job."""
        job, part = workload.id[:, None], np.arange(self.phases)[None, :]
        count, peak = (uniform(self.seed, f"memory_use.{what}", workload.id) for what in ("count", "peak"))
        ends, levels = (uniform(self.seed, f"memory_use.{what}", job, part) for what in ("end", "level"))
        offset, work, memory = [0], list[int](), list[int]()
        for k, most in enumerate(workload.memory.tolist()):
            n = 1 + int(count[k] * self.phases)
            begin = np.concatenate([[0.0], np.sort(ends[k, : n - 1])])
            level = self.least + (1.0 - self.least) * levels[k, :n]
            level[int(peak[k] * n)] = 1.0
            at = (begin * int(workload.duration[k])).astype(np.int64)
            used = np.ceil(level * most).astype(np.int64)
            steps, which = np.unique(at, return_inverse=True)  # phases that begin in the same ns are one, with the most of them
            highest = np.zeros(len(steps), dtype=np.int64)
            np.maximum.at(highest, which, used)
            work += steps.tolist()
            memory += highest.tolist()
            offset.append(len(work))
        return MemoryUse(*(np.array(column, dtype=np.int64) for column in (offset, work, memory)))
