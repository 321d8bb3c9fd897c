"""Slowdown curve of a workload as a function of local memory: observed slowdowns, and a prior for the rest.

Source: Sefati et al., IRoP, section II-B: P^m is piecewise linear in the remote share, a quarter of the memory stays local, and
a workload without a profile is assumed to tolerate nothing until the agent has observed it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from poolwise.performance.profiles import Profile

MIB = 2**20
DEFAULT_SLOPE = 4.0
"""Slowdown per share of remote memory without a profile: 3 at 75 %, like K-means, the steepest curve of Figure 2."""
STALLED_SLOWDOWN = 1000.0  # slowdown recorded for a limit at which the workload stalled, or which the kernel could not enforce
_RESOLUTION = 0.02  # share of a workload's memory below which differences are neither tried nor distinguished
_PHASE_FACTOR = 2.0  # factor by which the slowdown at one limit must change to indicate a new phase
_NOISE = 0.1  # slowdown differences that do not indicate a change
_PHASE_GROWTH = 0.1  # relative change of a workload's memory that indicates a new phase


@dataclass(frozen=True)
class SlowdownSample:
    """Slowdown observed with `local` bytes of local memory, most recently at time `at` (s)."""

    local: int
    slowdown: float
    at: float


@dataclass(frozen=True)
class SlowdownCurve:
    """Slowdown as a function of local memory, in the current phase of a workload."""

    total: int  # bytes that the workload would hold without a limit
    samples: tuple[SlowdownSample, ...] = ()  # observed slowdowns, by ascending memory and descending slowdown
    profile: Profile | None = None  # prior for unobserved amounts; None for `DEFAULT_SLOPE`
    phase: int = 0  # number of earlier phases
    contradicted: bool = False  # whether the last observation contradicts an earlier sample at the same amount of memory

    @property
    def step(self) -> int:
        """Smallest relevant difference in memory (bytes)."""
        return max(MIB, int(_RESOLUTION * self.total))

    @property
    def unknown(self) -> bool:
        """True if there is neither a profile nor a sample."""
        return self.profile is None and not self.samples

    def at(self, local: int) -> float:
        """Return the slowdown with `local` bytes: interpolated between samples, extrapolated below them along the prior."""
        if local >= self.total:
            return 0.0
        points = self._points
        lowest = points[0]
        if local <= lowest.local:
            return lowest.slowdown + max(0.0, self._prior(local) - self._prior(lowest.local))
        above = next(k for k, point in enumerate(points) if point.local >= local)
        low, high = points[above - 1], points[above]
        return low.slowdown + (high.slowdown - low.slowdown) * (local - low.local) / (high.local - low.local)

    def needed(self, slowdown: float) -> int:
        """Return the fewest bytes estimated to keep the slowdown within a limit; all bytes if fewer do not suffice.

        If no sample was insufficient, the result is at least one step below the smallest sufficient sample; otherwise it is at
        most midway between the two. These steps explore the curve.
        """
        points = self._points
        first = next((k for k, point in enumerate(points) if point.slowdown <= slowdown), None)
        if first is None:
            return self.total
        enough = points[first]
        if first == 0:
            return max(0, min(self._prior_bytes(enough, slowdown), enough.local - self.step))
        short = points[first - 1]
        share = (slowdown - enough.slowdown) / (short.slowdown - enough.slowdown)
        needed = math.ceil(enough.local - share * (enough.local - short.local))
        needed = max(min(needed, (enough.local + short.local) // 2), short.local + self.step)
        return enough.local if enough.local - needed < self.step else needed

    def with_total(self, total: int) -> SlowdownCurve:
        """Return the curve for a new total; a large change starts a new phase."""
        if abs(total - self.total) > _PHASE_GROWTH * self.total:
            return SlowdownCurve(total, (), self.profile, self.phase + 1)
        return replace(self, total=total)

    def add_sample(self, now: float, local: int, slowdown: float, *, sure: bool = False) -> SlowdownCurve:
        """Return the curve with an observation; samples at other amounts are clipped so that the curve stays monotone.

        A contradiction with the sample at the same amount is ignored once; the second one starts a new phase without earlier
        samples. Set `sure` for observations that are not estimates.
        """
        if local >= self.total:
            return self
        existing = next((point for point in self.samples if abs(point.local - local) < self.step / 2), None)
        others = [point for point in self.samples if point is not existing and point.local < self.total]
        phase = self.phase
        if existing is not None and not sure:
            if existing.slowdown / _PHASE_FACTOR - _NOISE <= slowdown <= existing.slowdown * _PHASE_FACTOR + _NOISE:
                slowdown = (existing.slowdown + slowdown) / 2
            elif not self.contradicted:
                return replace(self, contradicted=True)
            else:
                others, phase = [], phase + 1
        for k, point in enumerate(others):  # less memory is never faster
            clip = min if point.local > local else max
            others[k] = replace(point, slowdown=clip(point.slowdown, slowdown))
        samples = sorted([*others, SlowdownSample(local, slowdown, now)], key=lambda point: point.local)
        return SlowdownCurve(self.total, tuple(samples), self.profile, phase)

    def without_older(self, before: float) -> SlowdownCurve:
        """Return the curve without samples that were last observed before a time (s)."""
        return replace(self, samples=tuple(point for point in self.samples if point.at >= before))

    @cached_property
    def _points(self) -> list[SlowdownSample]:
        return [*(point for point in self.samples if point.local < self.total), SlowdownSample(self.total, 0.0, 0.0)]

    def _prior(self, local: int) -> float:
        remote = 1 - local / self.total
        if self.profile is None:
            return DEFAULT_SLOPE * remote
        return _interpolate(self.profile.remote, self.profile.slowdown, remote)

    def _prior_bytes(self, start: SlowdownSample, slowdown: float) -> int:
        """Return the bytes below a sample at which the prior's increase uses up the remaining slowdown."""
        target = self._prior(start.local) + slowdown - start.slowdown
        remote = (
            target / DEFAULT_SLOPE if self.profile is None else _interpolate(self.profile.slowdown, self.profile.remote, target)
        )
        return math.ceil((1 - remote) * self.total - 1e-6)


def _interpolate(horizontal: Sequence[float], vertical: Sequence[float], at: float) -> float:
    """Return the value of a piecewise linear function, extrapolating the last piece; the last of equal positions counts."""
    k = min(max(bisect_right(horizontal, at), 1), len(horizontal) - 1)
    width = horizontal[k] - horizontal[k - 1]
    if not width:
        return vertical[k]
    return vertical[k - 1] + (vertical[k] - vertical[k - 1]) * (at - horizontal[k - 1]) / width
