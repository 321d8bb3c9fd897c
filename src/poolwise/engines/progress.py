"""Progress reporting for long runs: the share of processed events, a few times per second."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import NamedTuple, Protocol

from poolwise.loop import Observer
from poolwise.model import CommitResult, EventBatch, Queue

LONG_S = 2.0
"""Seconds after which a run counts as long, so that its progress and the reason for its engine are reported."""
EVERY_S = 0.2
"""Seconds between two reports."""
LEAST_SHARE = 0.01
"""Minimum completed share of a run for estimating the time left from its pace."""


_MOST_LOG = 50.0
"""Logarithm of the largest ratio by which a run is extrapolated; larger ratios overflow."""


class Obstacle(NamedTuple):
    """Reason why no kernel supports a run, and what would make it supported."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


MISMATCH = Obstacle(
    "a current run holds resources other than those that its job requests", "supported if initial placements match the requests"
)
"""Obstacle to report for initial runs that kernels cannot represent."""


class ProgressListener(Protocol):
    """Interface of objects that receive the progress of a run, without reading and compiling."""

    def begin(self, obstacle: Obstacle | None) -> None:
        """Handle the start of a run: in kernels if `obstacle` is None, else in the reference engine because of the obstacle."""
        ...

    def advance(self, share: float, seconds: float) -> None:
        """Handle progress: the share of events processed so far, in (0, 1], took this many seconds."""
        ...


AGREE = 2.0
"""Largest ratio between two estimates of the time left at which an estimate is shown."""


class RunClock:
    """Estimate of the seconds left of a run; infinity without a basis for an estimate.

    Two extrapolations must agree within `AGREE`: one from the recent pace, and one from the trend of the pace. Passes take
    longer as the queue grows, so a run whose pace still falls has no estimate until its end is near.
    """

    def __init__(self) -> None:
        self._past = deque([(0.0, 0.0)])  # (seconds, share), from half of the seconds so far

    def left(self, share: float, seconds: float) -> float:
        """Return the seconds left after a share of the run took this many seconds; infinity without a basis for an estimate."""
        self._past.append((seconds, share))
        while len(self._past) > 2 and self._past[1][0] <= seconds / 2:
            self._past.popleft()
        then, before = self._past[0]
        if share >= 1:
            return 0.0
        if share < LEAST_SHARE or share <= before:
            return math.inf
        if before <= 0:
            return (1 - share) * seconds / share
        exponent = max(1.0, math.log(seconds / then) / math.log(share / before))  # seconds grow as share ** exponent
        by_pace = (1 - share) * max(seconds / share, (seconds - then) / (share - before))
        if exponent * math.log(1 / share) > _MOST_LOG:
            return math.inf
        by_trend = seconds * ((1 / share) ** exponent - 1)
        low, high = sorted((by_pace, by_trend))
        return math.sqrt(low * high) if high <= AGREE * low else math.inf


class Meter:
    """Observer that counts the events of a run in the reference engine, and then calls another observer.

    Parameters
    ----------
    watch
        Receives the progress.
    jobs
        Jobs of the workload: each arrives and ends.
    then
        Another observer, if there is one.
    """

    def __init__(self, watch: ProgressListener, jobs: int, then: Observer | None = None) -> None:
        self._watch, self._total, self._then = watch, 2 * jobs, then
        self._done, self._begun = 0, time.perf_counter()
        self._last_report = self._begun

    def __call__(self, batch: EventBatch, outcome: CommitResult, queue: Queue) -> None:
        """Count the events of an instant; a rejected job ends at once."""
        self._done += len(batch.events) + (len(outcome.committed) - len(outcome.started))
        if (now := time.perf_counter()) - self._last_report >= EVERY_S:
            self._last_report = now
            self._watch.advance(min(self._done / self._total, 1.0), now - self._begun)
        if self._then is not None:
            self._then(batch, outcome, queue)


class Stride:
    """Number of passes between two reports of a kernel, adapted to take about `EVERY_S`.

    Parameters
    ----------
    watch
        Receives the progress; if it is None, the kernel still pauses, so that Python can handle an interrupt.
    """

    def __init__(self, watch: ProgressListener | None) -> None:
        self._watch = watch
        self._passes, self._growth = (2048, 32) if watch is None else (16, 4)  # a pause costs as much as a few passes
        self._begun = self._last_report = time.perf_counter()

    def next(self, share: float, passes: int) -> int:
        """Report a share of the events; return the pass of the next report."""
        now = time.perf_counter()
        spent, self._last_report = max(now - self._last_report, 1e-6), now
        self._passes = max(1, min(self._growth * self._passes, int(self._passes * EVERY_S / spent)))
        if self._watch is not None and share > 0 and spent > EVERY_S / 8:
            self._watch.advance(min(share, 1.0), now - self._begun)
        return passes + self._passes
