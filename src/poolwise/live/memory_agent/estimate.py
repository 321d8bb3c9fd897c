"""How much slower a workload is than with all of its memory local, from what the kernel and the program count.

Each page that comes in from swap is time that would not have been spent. Where the program counts its progress itself, time
for a unit of it says more; the pages then say what that time would have been without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SlowdownClock = Literal["wall", "cpu"]
_ALMOST_ALL = 0.9
"""Share of its time that a workload is taken to have waited at most: what a page-in takes is not known that well."""
_APART = 3.0
"""Factor by which progress and pages may disagree about the time without page-ins, before that is learnt anew."""
_FREE_OF_STALLS = 0.01
"""Slowdown by pages below which progress shows the pace with all memory local."""
_WEIGHT = 0.3
"""Weight of the newest among the paces that were seen without stalls."""


@dataclass(frozen=True)
class Counters:
    """What has been counted for a workload until an instant.

    Attributes
    ----------
    at_s : the instant
    cpu_s : processor time
    major_faults : pages that were waited for
    stalled_s : time in which a process of it waited for memory (PSI, "some"); None where the kernel does not say
    progress : units of work done; None where the program does not say
    """

    at_s: float
    cpu_s: float
    major_faults: int
    stalled_s: float | None = None
    progress: float | None = None


@dataclass(frozen=True)
class CountedWindow:
    """What happened between two instants: seconds, processor seconds, faults, seconds of stall, units of work."""

    seconds: float
    cpu_s: float
    major_faults: int
    stalled_s: float | None
    progress: float | None

    @classmethod
    def between(cls, before: Counters, after: Counters) -> CountedWindow | None:
        """What was counted in between; None where a counter has gone back, as in a group that was made again."""
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
    """A slowdown, from "progress", "pressure" (PSI) or "faults"; `page_in_s` is the stall for each fault, NaN without any."""

    slowdown: float
    source: Literal["progress", "pressure", "faults"]
    page_in_s: float


@dataclass(frozen=True)
class LocalPace:
    """Seconds that a unit of work takes with all memory local, as far as that is known."""

    unit_s: float | None = None

    def estimate(
        self, window: CountedWindow, clock: SlowdownClock, page_in_s: float
    ) -> tuple[SlowdownEstimate | None, LocalPace]:
        """Slowdown in a window, and what is known of the pace after it; no slowdown of a workload that did nothing.

        Parameters
        ----------
        clock
            "wall", or "cpu" where page-ins are work of the processor (zram) and other work takes processors away.
        page_in_s
            Seconds that a page-in takes; pressure says it itself on the wall's clock, and the longer time counts.
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
        stalled = min(stalled, _ALMOST_ALL * time)
        each = stalled / window.major_faults if window.major_faults else float("nan")
        slowdown = stalled / (time - stalled)
        if not window.progress:
            return SlowdownEstimate(slowdown, source, each), self  # type: ignore[arg-type]
        now = time / window.progress
        without = now / (1 + slowdown)
        unit = without if self.unit_s is None else self.unit_s
        if slowdown < _FREE_OF_STALLS:
            unit = now if not unit / _APART < now < unit * _APART else (1 - _WEIGHT) * unit + _WEIGHT * now
        elif not unit / _APART < without < unit * _APART:
            unit = without
        return SlowdownEstimate(max(0.0, now / unit - 1), "progress", each), LocalPace(unit)


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
