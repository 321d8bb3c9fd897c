"""What is known of how a workload slows down with less local memory: what was seen of it, and a belief about the rest.

Source: Sefati et al., IRoP, section II-B: P^m is piecewise linear in the share that is remote, a quarter stays local, and a
workload without a profile is taken to bear nothing until the agent has seen what it bears.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from poolwise.performance.profiles import Profile

MIB = 2**20
STEEP = 4.0
"""Slowdown for each share of remote memory where nothing is known: 3 at 75 %, as K-means, the steepest of Figure 2."""
STANDS_STILL = 1000.0
"""Slowdown with so little memory that the workload could not go on, or the kernel could not take it out."""
_STEP = 0.02
"""Share of a workload's memory that makes a difference: smaller ones are neither tried nor told apart."""
_OTHER = 2.0
"""A slowdown by which factor it has changed, at the same limit, is that of another phase."""
_NOISE = 0.1
"""Slowdown that may come and go without anything having changed."""
_GROWN = 0.1
"""Share by which a workload's memory has changed when another phase has begun."""


@dataclass(frozen=True)
class SeenSlowdown:
    """Slowdown that was seen with so many bytes of local memory, last at a time in seconds."""

    local: int
    slowdown: float
    at: float


@dataclass(frozen=True)
class SlowdownCurve:
    """Slowdown over local memory, in the present phase of a workload.

    Attributes
    ----------
    total : bytes that it would hold if all of them were local
    seen : what was seen, ascending by memory, slowdowns descending
    profile : belief about what was not seen; None for the steep line
    phase : how many phases were before this one
    doubted : whether the last that was seen contradicts what was seen before with as much memory
    """

    total: int
    seen: tuple[SeenSlowdown, ...] = ()
    profile: Profile | None = None
    phase: int = 0
    doubted: bool = False

    @property
    def step(self) -> int:
        """Bytes that make a difference."""
        return max(MIB, int(_STEP * self.total))

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of it."""
        return self.profile is None and not self.seen

    def at(self, local: int) -> float:
        """Slowdown with so many bytes: between what was seen on a line, below all of it as the belief goes on from there."""
        if local >= self.total:
            return 0.0
        points = self._points
        lowest = points[0]
        if local <= lowest.local:
            return lowest.slowdown + max(0.0, self._believed(local) - self._believed(lowest.local))
        above = next(k for k, point in enumerate(points) if point.local >= local)
        low, high = points[above - 1], points[above]
        return low.slowdown + (high.slowdown - low.slowdown) * (local - low.local) / (high.local - low.local)

    def needed(self, slowdown: float) -> int:
        """Least bytes with which it is believed to be no slower than that; all of them if only they do.

        Where nothing was seen below, it is at least a step less than what was seen to do, and half of the way to what was
        seen not to do: that is how more is found out.
        """
        points = self._points
        enough = next((k for k, point in enumerate(points) if point.slowdown <= slowdown), None)
        if enough is None:
            return self.total
        done = points[enough]
        if enough == 0:
            return max(0, min(self._as_believed(done, slowdown), done.local - self.step))
        short = points[enough - 1]
        share = (slowdown - done.slowdown) / (short.slowdown - done.slowdown)
        wanted = math.ceil(done.local - share * (done.local - short.local))
        wanted = max(min(wanted, (done.local + short.local) // 2), short.local + self.step)
        return done.local if done.local - wanted < self.step else wanted

    def of_total(self, total: int) -> SlowdownCurve:
        """The curve of a workload that would hold so many bytes by now; much more or less is another phase."""
        if abs(total - self.total) > _GROWN * self.total:
            return SlowdownCurve(total, (), self.profile, self.phase + 1)
        return replace(self, total=total)

    def learn(self, now: float, local: int, slowdown: float, *, sure: bool = False) -> SlowdownCurve:
        """Add what is seen at an instant; what contradicts it at other amounts gives way.

        What contradicts what was seen with as much memory is passed over once; the second time another phase has begun,
        and nothing else is known of that. `sure` is for what is not an estimate.
        """
        if local >= self.total:
            return self
        here = next((point for point in self.seen if abs(point.local - local) < self.step / 2), None)
        others = [point for point in self.seen if point is not here and point.local < self.total]
        phase = self.phase
        if here is not None and not sure:
            if here.slowdown / _OTHER - _NOISE <= slowdown <= here.slowdown * _OTHER + _NOISE:
                slowdown = (here.slowdown + slowdown) / 2
            elif not self.doubted:
                return replace(self, doubted=True)
            else:
                others, phase = [], phase + 1
        clipped = [_beside(point, local, slowdown) for point in others]
        seen = sorted([*clipped, SeenSlowdown(local, slowdown, now)], key=lambda point: point.local)
        return SlowdownCurve(self.total, tuple(seen), self.profile, phase)

    def forget(self, before: float) -> SlowdownCurve:
        """Leave out what was last seen before a time."""
        return replace(self, seen=tuple(point for point in self.seen if point.at >= before))

    @cached_property
    def _points(self) -> list[SeenSlowdown]:
        return [*(point for point in self.seen if point.local < self.total), SeenSlowdown(self.total, 0.0, 0.0)]

    def _believed(self, local: int) -> float:
        remote = 1 - local / self.total
        if self.profile is None:
            return STEEP * remote
        return _along(self.profile.remote, self.profile.slowdown, remote)

    def _as_believed(self, done: SeenSlowdown, slowdown: float) -> int:
        """Bytes below a seen amount that cost what may still be added there."""
        wanted = self._believed(done.local) + slowdown - done.slowdown
        remote = wanted / STEEP if self.profile is None else _along(self.profile.slowdown, self.profile.remote, wanted)
        return math.ceil((1 - remote) * self.total - 1e-6)


def _beside(point: SeenSlowdown, local: int, slowdown: float) -> SeenSlowdown:
    """What was seen at another amount, as far as it agrees with what is seen now: less memory is no faster."""
    clip = min if point.local > local else max
    return replace(point, slowdown=clip(point.slowdown, slowdown))


def _along(horizontal: Sequence[float], vertical: Sequence[float], at: float) -> float:
    """Value at a place of a line through points, the last piece going on; of several at one place the last."""
    k = min(max(bisect_right(horizontal, at), 1), len(horizontal) - 1)
    width = horizontal[k] - horizontal[k - 1]
    if not width:
        return vertical[k]
    return vertical[k - 1] + (vertical[k] - vertical[k - 1]) * (at - horizontal[k - 1]) / width
