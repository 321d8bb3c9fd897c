"""Workloads that exist as curves only: an agent's decision is played on them until limits do not change any more."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from poolwise.live.memory_agent.allocation import LEAST_TOLERANCE, ObservedWorkload, decide_limits
from poolwise.live.memory_agent.curve import MIB, SlowdownCurve


@dataclass
class PretendedWorkload:
    """A workload whose slowdown follows a true curve over local memory, ascending knots (share that is local, slowdown)."""

    total: int
    tolerance: float
    knots: tuple[tuple[float, float], ...]
    limit: int | None = None
    known: SlowdownCurve = field(init=False)

    def __post_init__(self) -> None:
        self.known = SlowdownCurve(self.total)

    @property
    def local(self) -> int:
        return self.total if self.limit is None else min(self.limit, self.total)

    def slowdown(self, local: int) -> float:
        """True slowdown with so many bytes."""
        share = local / self.total
        if share >= 1:
            return 0.0
        shares = [place for place, _ in self.knots]
        k = bisect_right(shares, share)
        if k == 0:
            return self.knots[0][1]
        (low, high), (end, last) = self.knots[k - 1], self.knots[k] if k < len(self.knots) else (1.0, 0.0)
        return high + (last - high) * (share - low) / (end - low)

    def within(self, local: int) -> bool:
        """Whether so many bytes would keep it within its tolerance."""
        return self.slowdown(local) <= max(self.tolerance, LEAST_TOLERANCE)

    @property
    def need(self) -> int:
        """Least bytes that keep it within its tolerance, to a thousandth."""
        return next((int(k / 1000 * self.total) for k in range(1000) if self.within(int(k / 1000 * self.total))), self.total)

    def see(self, now: float) -> None:
        """Learn what there is to see."""
        self.known = self.known.of_total(self.total).learn(now, self.local, self.slowdown(self.local))

    def observed(self) -> ObservedWorkload:
        """What the decision is told."""
        now = self.known.at(self.local)
        return ObservedWorkload(self.known, self.tolerance, self.local, self.limit, now)


def play(memory: int, workloads: Sequence[PretendedWorkload], looks: int, swap_free: int = 2**50, start: int = 0) -> list[int]:
    """Look and decide so often; returns the looks at which limits were set."""
    moved = []
    for look in range(start, start + looks):
        for one in workloads:
            one.see(float(look))
        limits = decide_limits(memory, swap_free, [one.observed() for one in workloads])
        if limits is not None:
            assert sum(limits) <= memory and min(limits) >= 0
            moved.append(look)
            for one, limit in zip(workloads, limits, strict=True):
                one.limit = limit
    return moved


@st.composite
def true_curves(draw: st.DrawFn) -> tuple[tuple[float, float], ...]:
    """Any nonincreasing slowdown over local memory: cliffs, plateaus, slopes."""
    count = draw(st.integers(1, 4))
    shares = sorted(draw(st.lists(st.floats(0.0, 0.97), min_size=count, max_size=count, unique_by=lambda x: round(x, 2))))
    heights = sorted(draw(st.lists(st.floats(0, 20), min_size=count, max_size=count)), reverse=True)
    return tuple(zip(shares, heights, strict=True))


pretended = st.builds(
    PretendedWorkload,
    total=st.integers(20, 2000).map(lambda mib: mib * MIB),
    tolerance=st.sampled_from([0.0, 0.05, 0.25, 0.5, 1.0, 3.0]),
    knots=true_curves(),
)
