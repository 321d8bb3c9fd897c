"""How far a simulated run has come, in truth and as the scheduler believes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from poolwise.errors import PolicyError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Run, Snapshot
from poolwise.units import NEVER, with_slowdown


class RunPace(NamedTuple):
    """Slowdowns of a run's two phases."""

    fetching: float
    working: float

    @classmethod
    def of(cls, model: PerformanceModel, run: Run, view: Snapshot) -> RunPace:
        """Ask a model; raises PolicyError for a slowdown at which no run could progress."""
        pace = cls(0.0 if run.fetch is None else model.fetch_slowdown(run, view), model.slowdown(run, view))
        for value in pace:
            if not -1.0 < value < math.inf:
                raise PolicyError(f"a performance model returned slowdown {value}; it must be above -1 and finite")
        return pace


FULL = RunPace(0.0, 0.0)
"""Nothing is slowed down."""

STANDING = RunPace(math.inf, math.inf)
"""Nothing is done."""


@dataclass(slots=True)
class Course:
    """What is left of a run: its data are to be fetched, then comes its work.

    Attributes
    ----------
    fetch : reference ns of fetching left at `since`; None once the data are there
    work : reference ns of work left at `since`
    since : ns, when the setup is over, or when the pace last changed
    pace : slowdowns from `since` on
    """

    fetch: float | None
    work: float
    since: int
    pace: RunPace = FULL

    @classmethod
    def begin(cls, model: PerformanceModel, run: Run, view: Snapshot) -> Course:
        """Begin a run now, as a model sees it. Fetching that the run itself does not record counts as setup."""
        since, fetch = view.now + model.setup(run, view), model.fetch(run, view)
        if fetch is not None and run.fetch is None:
            since, fetch = since + fetch.work, None
        return cls(None if fetch is None else float(fetch.work), float(view.work[run.job]), since)

    def copy(self) -> Course:
        """Return another course that stands where this one does."""
        return Course(self.fetch, self.work, self.since, self.pace)

    @property
    def phase_end(self) -> int:
        """Ns at which the fetching ends, or the work where nothing is fetched; `NEVER` while it stands still."""
        if self.pace == STANDING:
            return NEVER
        if self.fetch is None:
            return self.since + with_slowdown(self.work, self.pace.working)
        return self.since + with_slowdown(self.fetch, self.pace.fetching)

    @property
    def end(self) -> int:
        """Ns at which everything is done."""
        if self.fetch is None or self.pace == STANDING:
            return self.phase_end
        return self.phase_end + with_slowdown(self.work, self.pace.working)

    def go_on(self, now: int, pace: RunPace) -> bool:
        """Continue at a pace from now on; returns whether it differs from the pace before."""
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
        """Let the work begin now, if it has not begun."""
        if self.fetch is not None:
            self.fetch, self.since = None, now

    def done(self, work: int, now: int) -> float:
        """Reference ns of the run's `work` that are done by `now`."""
        before = float(work) - self.work
        return before if self.fetch is not None else before + self._elapsed(now) / (1.0 + self.pace.working)

    def _elapsed(self, now: int) -> int:
        return max(now - self.since, 0)


@dataclass(slots=True)
class RunProgress:
    """A run's course in truth and as the scheduler believes; `end` (ns) is that of its phase in truth, -1 while unknown."""

    true: Course
    believed: Course
    end: int = -1

    def fetched(self, now: int) -> None:
        """Let the work begin now."""
        self.true.fetched(now)
        self.believed.fetched(now)
        self.end = -1
