"""Slowdown estimate: how much slower a workload is than with all memory local, from counters of the kernel and the program.

Page-ins cost time that fully local memory would not. If the program reports its progress, the time per unit of progress is more
accurate; page-ins then give the time that the same progress would take without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SlowdownClock = Literal["wall", "cpu"]
_MAX_STALL_SHARE = 0.9
"""Upper bound on the stalled share of the time, because the time of a page-in is known only approximately."""
_MAX_DISAGREEMENT = 3.0
"""Factor by which progress and page-ins may disagree about the time without page-ins before the pace is learned again."""
_NO_STALL_SLOWDOWN = 0.01  # slowdown from page-ins below which the current pace is taken as the pace with all memory local
_WEIGHT = 0.3  # weight of the newest pace in the moving average


@dataclass(frozen=True)
class Counters:
    """Cumulative counters of a workload at an instant."""

    at_s: float  # the instant
    cpu_s: float  # processor time
    major_faults: int  # number of major page faults
    # time in which some process stalled on memory (PSI "some"); None if the kernel does not report it
    stalled_s: float | None = None
    progress: float | None = None  # completed units of work; None if the program does not report them


@dataclass(frozen=True)
class CountedWindow:
    """Differences of counters between two instants: seconds, processor seconds, faults, stall seconds, units of work."""

    seconds: float
    cpu_s: float
    major_faults: int
    stalled_s: float | None
    progress: float | None

    @classmethod
    def between(cls, before: Counters, after: Counters) -> CountedWindow | None:
        """Return the differences; None if a counter decreased, as in a recreated group."""
        parts = [
            after.at_s - before.at_s,
            after.cpu_s - before.cpu_s,
            after.major_faults - before.major_faults,
            _difference(before.stalled_s, after.stalled_s),
            _difference(before.progress, after.progress),
        ]
        if parts[0] == 0 or any(part is not None and part < 0 for part in parts):
            return None
        return cls(*parts)  # type: ignore[arg-type]


@dataclass(frozen=True)
class SlowdownEstimate:
    """Slowdown from "progress", "pressure" (PSI) or "faults"; `page_in_s` is the stall per fault, NaN without faults."""

    slowdown: float
    source: Literal["progress", "pressure", "faults"]
    page_in_s: float


@dataclass(frozen=True)
class LocalPace:
    """Seconds per unit of work with all memory local; None if unknown."""

    unit_s: float | None = None

    def estimate(
        self, window: CountedWindow, clock: SlowdownClock, page_in_s: float
    ) -> tuple[SlowdownEstimate | None, LocalPace]:
        """Return the slowdown in a window, None for an idle workload, and the updated pace.

        With the wall clock, the stall time of PSI is used if it is longer than that of the page-ins.
        """
        time = window.seconds if clock == "wall" else window.cpu_s
        by_faults = window.major_faults * page_in_s
        stalled, source = by_faults, "faults"
        if clock == "wall":
            time = max(time, window.cpu_s)
            if window.stalled_s is not None and window.stalled_s > by_faults:
                stalled, source = window.stalled_s, "pressure"
        if time <= 0:
            return None, self
        stalled = min(stalled, _MAX_STALL_SHARE * time)
        each = stalled / window.major_faults if window.major_faults else float("nan")
        slowdown = stalled / (time - stalled)
        if not window.progress:
            return SlowdownEstimate(slowdown, source, each), self  # type: ignore[arg-type]
        now = time / window.progress
        unstalled = now / (1 + slowdown)
        unit = unstalled if self.unit_s is None else self.unit_s
        if slowdown < _NO_STALL_SLOWDOWN:
            unit = (
                now if not unit / _MAX_DISAGREEMENT < now < unit * _MAX_DISAGREEMENT else (1 - _WEIGHT) * unit + _WEIGHT * now
            )
        elif not unit / _MAX_DISAGREEMENT < unstalled < unit * _MAX_DISAGREEMENT:
            unit = unstalled
        return SlowdownEstimate(max(0.0, now / unit - 1), "progress", each), LocalPace(unit)


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
