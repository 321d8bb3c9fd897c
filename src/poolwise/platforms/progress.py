"""Progress of simulated runs, true and as the scheduler estimates it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from poolwise.errors import PolicyError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Run, Snapshot
from poolwise.quantities import NEVER, with_slowdown


class RunPace(NamedTuple):
    """Slowdowns of the two phases of a run."""

    fetching: float
    working: float

    @classmethod
    def of(cls, model: PerformanceModel, run: Run, snapshot: Snapshot) -> RunPace:
        """Return a model's slowdowns; raise PolicyError for a slowdown with which no run could progress."""
        pace = cls(0.0 if run.fetch is None else model.fetch_slowdown(run, snapshot), model.slowdown(run, snapshot))
        for value in pace:
            if not -1.0 < value < math.inf:
                raise PolicyError(f"a performance model returned slowdown {value}; it must be above -1 and finite")
        return pace


FULL = RunPace(0.0, 0.0)  # pace without slowdown

STALLED = RunPace(math.inf, math.inf)  # pace of a stalled run


@dataclass(slots=True)
class RemainingPhases:
    """Remaining phases of a run, which first fetches its data and then works."""

    fetch: float | None  # reference ns of fetching left at `since`; None once the data are fetched
    work: float  # reference ns of work left at `since`
    since: int  # ns, the end of the setup, or the last change of pace
    pace: RunPace = FULL  # slowdowns from `since` on

    @classmethod
    def begin(cls, model: PerformanceModel, run: Run, snapshot: Snapshot) -> RemainingPhases:
        """Begin a run now under a model. A fetch that the run does not record counts as setup."""
        since, fetch = snapshot.now + model.setup(run, snapshot), model.fetch(run, snapshot)
        if fetch is not None and run.fetch is None:
            since, fetch = since + fetch.work, None
        return cls(None if fetch is None else float(fetch.work), float(snapshot.work[run.job]), since)

    def copy(self) -> RemainingPhases:
        """Return a copy."""
        return RemainingPhases(self.fetch, self.work, self.since, self.pace)

    @property
    def phase_end(self) -> int:
        """Time (ns) at which the current phase ends: the fetch, or the work if nothing is left to fetch.

        The time is `NEVER` while the run is stalled.
        """
        if self.pace == STALLED:
            return NEVER
        if self.fetch is None:
            return self.since + with_slowdown(self.work, self.pace.working)
        return self.since + with_slowdown(self.fetch, self.pace.fetching)

    @property
    def end(self) -> int:
        """Time (ns) at which the run ends."""
        if self.fetch is None or self.pace == STALLED:
            return self.phase_end
        return self.phase_end + with_slowdown(self.work, self.pace.working)

    def set_pace(self, now: int, pace: RunPace) -> bool:
        """Continue at a pace from now on; return whether it differs from the previous pace."""
        if pace == self.pace:
            return False
        if self.fetch is None and pace.working != self.pace.working:
            self.work = max(self.work - self._elapsed(now) / (1.0 + self.pace.working), 0.0)
            self.since = max(self.since, now)
        elif self.fetch is not None and pace.fetching != self.pace.fetching:
            self.fetch = max(self.fetch - self._elapsed(now) / (1.0 + self.pace.fetching), 0.0)
            self.since = max(self.since, now)
        self.pace = pace
        return True

    def fetched(self, now: int) -> None:
        """Begin the work now, if it has not begun."""
        if self.fetch is not None:
            self.fetch, self.since = None, now

    def done(self, work: int, now: int) -> float:
        """Return how much of the run's `work` is done by `now`, in reference ns."""
        before = float(work) - self.work
        return before if self.fetch is not None else before + self._elapsed(now) / (1.0 + self.pace.working)

    def _elapsed(self, now: int) -> int:
        return max(now - self.since, 0)


@dataclass(slots=True)
class RunProgress:
    """True and estimated course of a run; `end` (ns) is the true end of its current phase, -1 while unknown."""

    true: RemainingPhases
    believed: RemainingPhases
    end: int = -1

    def fetched(self, now: int) -> None:
        """Begin the work now."""
        self.true.fetched(now)
        self.believed.fetched(now)
        self.end = -1
