"""Randomly drawn memory use over time: phases of different use, one of which is the peak."""

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
    """Each job has 1 to `phases` phases; it uses the trace's memory in one of them and a part of it in the others.

    All distributions are assumed to be uniform: the number of phases, the points of the work at which they end, the phase with
    the peak, and the use in the others, from `least` of the peak up to the peak. Draws depend on (seed, job id).

    Parameters
    ----------
    seed
        Random seed; a study sets its own.
    phases
        Largest number of phases of a job; 1 for jobs that always use their peak.
    least
        Smallest use in a phase, as a share of the peak.
    overestimate
        Excess of memory requests over the peak: 0.6 is 60 %.
    overestimating
        Share of the users that overestimate; the others request their peak.
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
        requested = with_overestimates(workload, self.seed, self.overestimate, self.overestimating)
        requests = {**workload.requests, "memory": requested} if "memory" in workload.requests else workload.requests
        return replace(workload, requests=requests, memory_use=self.use(workload))

    def use(self, workload: Workload) -> MemoryUse:
        """Draw the memory of each job over its work."""
        job, part = workload.id[:, None], np.arange(self.phases)[None, :]
        count, peak = (uniform(self.seed, f"memory_use.{draw}", workload.id) for draw in ("count", "peak"))
        ends, levels = (uniform(self.seed, f"memory_use.{draw}", job, part) for draw in ("end", "level"))
        offset, work, memory = [0], list[int](), list[int]()
        for k, most in enumerate(workload.memory.tolist()):
            n = 1 + int(count[k] * self.phases)
            begin = np.concatenate([[0.0], np.sort(ends[k, : n - 1])])
            level = self.least + (1.0 - self.least) * levels[k, :n]
            level[int(peak[k] * n)] = 1.0
            at = (begin * int(workload.duration[k])).astype(np.int64)
            used = np.ceil(level * most).astype(np.int64)
            steps, which = np.unique(at, return_inverse=True)  # merge phases that begin in the same ns, with their largest use
            highest = np.zeros(len(steps), dtype=np.int64)
            np.maximum.at(highest, which, used)
            work += steps.tolist()
            memory += highest.tolist()
            offset.append(len(work))
        return MemoryUse(*(np.array(column, dtype=np.int64) for column in (offset, work, memory)))
