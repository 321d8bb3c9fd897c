"""A workload as the agent follows it from one look to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.live.memory_agent.allocation import ObservedWorkload
from poolwise.live.memory_agent.config import WatchedWorkloadSection
from poolwise.live.memory_agent.curve import SlowdownCurve
from poolwise.live.memory_agent.estimate import CountedWindow, Counters, LocalPace, SlowdownClock, SlowdownEstimate
from poolwise.live.memory_agent.groups import HeldMemory, WatchedGroup
from poolwise.performance.profiles import Profile


@dataclass
class TrackedWorkload:
    """What is known of a workload whose group is there.

    Attributes
    ----------
    section : what the file says of it
    watched : its group
    identity : which group of that name it is
    limit : bytes of its limit, None for none
    most : bytes of its limit before the agent, which no limit exceeds; None for none
    counters, held : of the last look
    before : bytes that it held at the look before
    pace, curve : how fast it is with all memory local, and how it slows down with less
    estimate : of the last window in which it did something; None before
    working_set : most bytes that it has held at once in this phase
    """

    section: WatchedWorkloadSection
    watched: WatchedGroup
    identity: int
    limit: int | None
    most: int | None
    counters: Counters
    held: HeldMemory
    curve: SlowdownCurve
    before: int = 0
    pace: LocalPace = field(default_factory=LocalPace)
    estimate: SlowdownEstimate | None = None
    working_set: int = 0

    @classmethod
    def begin(
        cls, section: WatchedWorkloadSection, watched: WatchedGroup, identity: int, most: int | None, profile: Profile | None
    ) -> TrackedWorkload:
        """Look at it for the first time; raises OSError where its group is gone."""
        counters, held = watched.look()
        curve = SlowdownCurve(max(held.total, 1), (), profile)
        return cls(section, watched, identity, watched.limit(), most, counters, held, curve, working_set=held.local)

    @property
    def squeezed(self) -> bool:
        """Whether its limit keeps it from holding more."""
        return self.limit is not None and self.held.local > self.limit - self.curve.step

    @property
    def local(self) -> int:
        """Bytes at which what is seen now counts: its limit where that binds."""
        return self.limit if self.limit is not None and self.squeezed else self.held.local

    @property
    def grows(self) -> bool:
        """Whether it is filling what it was given lately."""
        return not self.squeezed and self.held.local - self.before > self.curve.step

    @property
    def slowdown(self) -> float:
        """Slowdown of now: the mean of what was seen with as much memory."""
        return self.curve.at(self.local)

    def look(self, clock: SlowdownClock, page_in_s: float) -> SlowdownEstimate | None:
        """Read counters and estimate the slowdown since the last look; raises OSError where its group is gone."""
        counters, held = self.watched.look()
        window = CountedWindow.between(self.counters, counters)
        self.before, self.counters, self.held = self.held.local, counters, held
        if window is None:
            self.pace = LocalPace()
            return None
        found, self.pace = self.pace.estimate(window, clock, page_in_s)
        self.estimate = found or self.estimate
        return found

    def learn(self, now: float, found: SlowdownEstimate | None, remember_s: float) -> None:
        """Take a window without changes of limits into account; in one in which it did nothing only its memory is news."""
        # pages of files that a limit has thrown out are in no swap: the total does not shrink while the limit binds
        total = max(self.curve.total, self.held.total) if self.squeezed else max(self.held.total, 1)
        phase = self.curve.phase
        self.curve = self.curve.forget(now - remember_s).of_total(total)
        if found is not None:
            self.curve = self.curve.learn(now, self.local, found.slowdown)
        if self.curve.phase != phase:
            self.working_set = 0
        self.working_set = max(self.working_set, self.held.local)

    def observed(self) -> ObservedWorkload:
        """What the decision takes."""
        section = self.section
        return ObservedWorkload(
            curve=self.curve,
            tolerance=section.tolerance,
            held=self.held.local,
            limit=self.limit,
            slowdown=self.slowdown,
            least_share=section.least_share,
            most=self.most,
        )
