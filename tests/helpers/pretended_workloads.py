"""Simulated workloads given by slowdown curves, on which the allocation runs until limits settle."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from poolwise_agents.memory_agent.allocation import MIN_TOLERANCE, ObservedWorkload, decide_limits
from poolwise_agents.memory_agent.curve import MIB, SlowdownCurve


@dataclass
class SimulatedWorkload:
    """A workload with a true slowdown curve over local memory, given by ascending knots (local share, slowdown)."""

    total: int
    tolerance: float
    knots: tuple[tuple[float, float], ...]
    limit: int | None = None
    curve: SlowdownCurve = field(init=False)

    def __post_init__(self) -> None:
        self.curve = SlowdownCurve(self.total)

    @property
    def local(self) -> int:
        return self.total if self.limit is None else min(self.limit, self.total)

    def slowdown(self, local: int) -> float:
        """Return the true slowdown with `local` bytes."""
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
        """Return whether `local` bytes keep it within its tolerance."""
        return self.slowdown(local) <= max(self.tolerance, MIN_TOLERANCE)

    @property
    def need(self) -> int:
        """Fewest bytes that keep it within its tolerance, to a thousandth of its total."""
        return next((int(k / 1000 * self.total) for k in range(1000) if self.within(int(k / 1000 * self.total))), self.total)

    def observe(self, now: float) -> None:
        """Add the current slowdown to its curve."""
        self.curve = self.curve.with_total(self.total).add_sample(now, self.local, self.slowdown(self.local))

    def observed(self) -> ObservedWorkload:
        """Return the input of the allocation."""
        now = self.curve.at(self.local)
        return ObservedWorkload(self.curve, self.tolerance, self.local, self.limit, now)


def simulate(
    memory: int, workloads: Sequence[SimulatedWorkload], steps: int, swap_free: int = 2**50, start: int = 0
) -> list[int]:
    """Run control steps and return those at which limits were set."""
    moved = []
    for step in range(start, start + steps):
        for workload in workloads:
            workload.observe(float(step))
        limits = decide_limits(memory, swap_free, [workload.observed() for workload in workloads])
        if limits is not None:
            assert sum(limits) <= memory and min(limits) >= 0
            moved.append(step)
            for workload, limit in zip(workloads, limits, strict=True):
                workload.limit = limit
    return moved


@st.composite
def true_curves(draw: st.DrawFn) -> tuple[tuple[float, float], ...]:
    """Draw a nonincreasing slowdown over local memory, with cliffs, plateaus and slopes."""
    count = draw(st.integers(1, 4))
    shares = sorted(draw(st.lists(st.floats(0.0, 0.97), min_size=count, max_size=count, unique_by=lambda x: round(x, 2))))
    heights = sorted(draw(st.lists(st.floats(0, 20), min_size=count, max_size=count)), reverse=True)
    return tuple(zip(shares, heights, strict=True))


simulated_workloads = st.builds(
    SimulatedWorkload,
    total=st.integers(20, 2000).map(lambda mib: mib * MIB),
    tolerance=st.sampled_from([0.0, 0.05, 0.25, 0.5, 1.0, 3.0]),
    knots=true_curves(),
)
