"""State of a workload that the agent tracks across control steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.performance.profiles import Profile
from poolwise_agents.memory_agent.allocation import ObservedWorkload
from poolwise_agents.memory_agent.config import WatchedWorkloadSection
from poolwise_agents.memory_agent.curve import SlowdownCurve
from poolwise_agents.memory_agent.estimate import CountedWindow, Counters, LocalPace, SlowdownClock, SlowdownEstimate
from poolwise_agents.memory_agent.groups import HeldMemory, WatchedGroup


@dataclass
class TrackedWorkload:
    """State of a workload whose group exists."""

    section: WatchedWorkloadSection
    watched: WatchedGroup
    identity: int  # inode of the group
    limit: int | None  # current limit (bytes), None for none
    max_limit: int | None  # limit before the agent (bytes), which no limit exceeds; None for none
    counters: Counters  # counters and held are from the last sample
    held: HeldMemory
    curve: SlowdownCurve
    before: int = 0  # local memory at the sample before (bytes)
    pace: LocalPace = field(default_factory=LocalPace)
    estimate: SlowdownEstimate | None = None  # slowdown in the last window in which it ran; None before
    working_set: int = 0  # peak local memory in this phase (bytes)

    @classmethod
    def start(
        cls,
        section: WatchedWorkloadSection,
        watched: WatchedGroup,
        identity: int,
        max_limit: int | None,
        profile: Profile | None,
    ) -> TrackedWorkload:
        """Take the first sample; raises OSError if the group is gone."""
        counters, held = watched.read_counters()
        curve = SlowdownCurve(max(held.total, 1), (), profile)
        return cls(section, watched, identity, watched.limit(), max_limit, counters, held, curve, working_set=held.local)

    @property
    def squeezed(self) -> bool:
        """True if the limit keeps the workload from holding more memory."""
        return self.limit is not None and self.held.local > self.limit - self.curve.step

    @property
    def local(self) -> int:
        """Local bytes at which the current slowdown was observed: the limit if it binds, otherwise the memory in use."""
        return self.limit if self.limit is not None and self.squeezed else self.held.local

    @property
    def grows(self) -> bool:
        """True if the workload is still filling additional memory."""
        return not self.squeezed and self.held.local - self.before > self.curve.step

    @property
    def slowdown(self) -> float:
        """Current slowdown: the curve's value at `local`."""
        return self.curve.at(self.local)

    def sample(self, clock: SlowdownClock, page_in_s: float) -> SlowdownEstimate | None:
        """Read counters and return the slowdown since the last sample; raises OSError if the group is gone."""
        counters, held = self.watched.read_counters()
        window = CountedWindow.between(self.counters, counters)
        self.before, self.counters, self.held = self.held.local, counters, held
        if window is None:
            self.pace = LocalPace()
            return None
        estimate, self.pace = self.pace.estimate(window, clock, page_in_s)
        self.estimate = estimate or self.estimate
        return estimate

    def update_curve(self, now: float, estimate: SlowdownEstimate | None, remember_s: float) -> None:
        """Add a window without limit moves to the curve; an idle window (None) only updates the memory."""
        # file pages that a limit has evicted are not in swap, so the total must not shrink while the limit binds
        total = max(self.curve.total, self.held.total) if self.squeezed else max(self.held.total, 1)
        phase = self.curve.phase
        self.curve = self.curve.without_older(now - remember_s).with_total(total)
        if estimate is not None:
            self.curve = self.curve.add_sample(now, self.local, estimate.slowdown)
        if self.curve.phase != phase:
            self.working_set = 0
        self.working_set = max(self.working_set, self.held.local)

    def observed(self) -> ObservedWorkload:
        """Return the input of the allocation."""
        section = self.section
        return ObservedWorkload(
            curve=self.curve,
            tolerance=section.tolerance,
            held=self.held.local,
            limit=self.limit,
            slowdown=self.slowdown,
            least_share=section.least_share,
            max_limit=self.max_limit,
        )
