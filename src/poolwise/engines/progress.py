"""Who runs something long is told how far it is: the share of its events that are over, a few times a second."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

from poolwise.loop import Observer
from poolwise.model import CommitResult, EventBatch, Queue

LONG_S = 2.0
"""Seconds of a run that deserve a word: why it takes so long, and how far it is."""
EVERY_S = 0.2
"""Seconds between two reports."""


class Obstacle(NamedTuple):
    """Why no kernel runs something, and what would have to change for one to run it."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


UNLIKE = Obstacle("a run at work holds something else than it asks for", "placed as it asks, it has a kernel")
"""Where a run goes on from others that kernels cannot count with."""


class Watch(Protocol):
    """A listener that is told how far a run is. Reading and compiling do not count."""

    def begin(self, obstacle: Obstacle | None) -> None:
        """A run begins: in kernels (None), or on the reference engine since no kernel can."""
        ...

    def advance(self, share: float, seconds: float) -> None:
        """A share of its events, above 0 and up to 1, took so many seconds."""
        ...


class Meter:
    """Counts the events of a run on the reference engine; as an observer it passes on what it sees to another.

    Parameters
    ----------
    watch
        Who is told.
    jobs
        Jobs of the workload: each arrives and ends.
    then
        Another observer, if there is one.
    """

    def __init__(self, watch: Watch, jobs: int, then: Observer | None = None) -> None:
        self._watch, self._total, self._then = watch, 2 * jobs, then
        self._done, self._begun = 0, time.perf_counter()
        self._told = self._begun

    def __call__(self, batch: EventBatch, outcome: CommitResult, queue: Queue) -> None:
        """Count the events of an instant; a rejected job ends at once."""
        self._done += len(batch.events) + (len(outcome.committed) - len(outcome.started))
        if (now := time.perf_counter()) - self._told >= EVERY_S:
            self._told = now
            self._watch.advance(min(self._done / self._total, 1.0), now - self._begun)
        if self._then is not None:
            self._then(batch, outcome, queue)


class Stride:
    """After how many passes a kernel next reports: as many as take about `EVERY_S`.

    Parameters
    ----------
    watch
        Who is told; if None nobody, and a kernel pauses so that an interruption is heard.
    """

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self._passes, self._growth = (2048, 32) if watch is None else (16, 4)  # a pause costs as much as some passes
        self._begun = self._told = time.perf_counter()

    def next(self, share: float, passes: int) -> int:
        """Report a share of the events; returns the pass at which to report again."""
        now = time.perf_counter()
        spent, self._told = max(now - self._told, 1e-6), now
        self._passes = max(1, min(self._growth * self._passes, int(self._passes * EVERY_S / spent)))
        if self._watch is not None and share > 0 and spent > EVERY_S / 8:
            self._watch.advance(min(share, 1.0), now - self._begun)
        return passes + self._passes
