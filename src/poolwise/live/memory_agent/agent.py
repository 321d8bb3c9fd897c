"""The memory agent: looks at workloads, learns how they slow down, and moves their limits. One `turn` is one look."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from poolwise.live.logs import log_event
from poolwise.live.memory_agent.allocation import decide_limits
from poolwise.live.memory_agent.config import MemoryAgentConfig, WatchedWorkloadSection
from poolwise.live.memory_agent.curve import STANDS_STILL
from poolwise.live.memory_agent.groups import WatchedGroup
from poolwise.live.memory_agent.limits import LimitMover
from poolwise.live.memory_agent.metrics import MemoryAgentMetrics
from poolwise.live.memory_agent.passive_profile import PassiveProfile
from poolwise.live.memory_agent.workload import TrackedWorkload
from poolwise.profiling.control_groups import ROOT
from poolwise.profiling.program_run import memory_available
from poolwise.profiling.zram import swaps

MIB = 2**20
_SETTLED = 2
"""Looks after a move from which on what is seen is not the move itself."""
_FILLED = 5
"""Looks after a move for which workloads may take to fill what they were given."""


@dataclass(frozen=True)
class Surroundings:
    """The computer around the workloads, as functions so that tests can stand in for it.

    Attributes
    ----------
    root : where control groups are mounted
    available : bytes that programs can have without swapping
    swap_free : bytes of swap that nobody uses
    clock : seconds
    """

    root: Path = ROOT
    available: Callable[[], int] = memory_available
    swap_free: Callable[[], int] = lambda: sum(free for _, free in swaps())
    clock: Callable[[], float] = time.monotonic


class MemoryAgent:
    """Watches the workloads of a file and moves their limits. Raises InputError where there are no control groups."""

    def __init__(self, config: MemoryAgentConfig, mover: LimitMover, around: Surroundings, metrics: MemoryAgentMetrics) -> None:
        self.config, self.mover, self.around, self.metrics = config, mover, around, metrics
        self.passing = PassiveProfile()
        self.watched = {one.name: WatchedGroup.find(one.group, one.progress, around.root) for one in config.file.workload}
        self.followed: dict[str, TrackedWorkload] = {}
        self._left: dict[str, int] = {}  # groups that are left alone: name -> which group of that name
        self._since_move = _SETTLED

    def control_step(self) -> None:
        """Look once, and move limits if that helps."""
        self._since_move += 1
        for section in self.config.file.workload:
            self._look(section)
        self.metrics.update(self.followed.values(), self.memory())
        if self._since_move < _SETTLED or (self._since_move < _FILLED and any(one.grows for one in self.followed.values())):
            return
        self._decide()

    def relieve(self) -> None:
        """Give memory to whoever cannot go on without (version 1), between two looks; lift the limit if others have none."""
        for one in list(self.followed.values()):
            limit, name = one.limit, one.section.name
            if limit is None or not one.watched.stands_still:
                continue
            self.metrics.failures.labels("stands still").inc()
            log_event("workload_stalled", logging.WARNING, workload=name, limit=limit)
            one.curve = one.curve.learn(self.around.clock(), limit, STANDS_STILL, sure=True)
            self._decide()
            if one.limit is not None and one.limit <= limit:
                log_event("memory_unavailable", logging.ERROR, workload=name)
                self.mover.let_go_of(one)
                self._leave(one)

    def memory(self) -> int:
        """Bytes that may be given out: those of the file, less what is left alone, less where the computer runs short."""
        file = self.config.file
        held = sum(one.held.local for one in self.followed.values())
        within = max(0, self.around.available() + held - file.reserve * MIB)
        return max(0, min(file.memory * MIB - self._left_alone(), within))

    def _decide(self) -> None:
        names = list(self.followed)
        observed = [self.followed[name].observed() for name in names]
        limits = decide_limits(self.memory(), self.around.swap_free(), observed)
        if limits is not None:
            moves = [(self.followed[name], limit) for name, limit in zip(names, limits, strict=True)]
            if self.mover.move(moves, self.memory(), self.around.clock()):
                self._since_move = 0

    def _look(self, section: WatchedWorkloadSection) -> None:
        name, watched = section.name, self.watched[section.name]
        one, identity = self.followed.get(name), watched.identity
        try:
            if one is not None and one.identity != identity:
                log_event("gone", workload=name)
                self.mover.forget(one)
                one = None
                del self.followed[name]
            if identity is None or self._left.get(name) == identity:
                return
            if one is None:
                self._begin(section, watched, identity)
            elif watched.limit() != one.limit:
                log_event("external_limit_change", logging.WARNING, workload=name, limit=watched.limit())
                self.mover.let_go_of(one)
                self._leave(one)
            else:
                self._learn(one)
        except OSError as error:
            log_event("the group cannot be read", logging.WARNING, workload=name, why=error.strerror)
            self.metrics.failures.labels("read").inc()

    def _begin(self, section: WatchedWorkloadSection, watched: WatchedGroup, identity: int) -> None:
        most = self.mover.limit_before(section.group, watched)
        one = TrackedWorkload.begin(section, watched, identity, most, self.config.profiles.get(section.name))
        self.followed[section.name] = one
        log_event(
            "watching", workload=section.name, group=section.group, limit=one.limit, limit_before=most, local=one.held.local
        )

    def _learn(self, one: TrackedWorkload) -> None:
        file = self.config.file
        found = one.look(file.clock, file.page_in / 1e9)
        if self._since_move < _SETTLED:
            return
        phase = one.curve.phase
        one.learn(self.around.clock(), found, file.remember / 1e9)
        if one.curve.phase != phase:
            log_event("another phase", workload=one.section.name, total=one.curve.total, slowdown=round(one.slowdown, 3))
        if found is not None:
            remote = max(0.0, 1 - one.local / one.curve.total)
            self.passing.add(one.section.name, remote, found.slowdown, found.source)

    def _leave(self, one: TrackedWorkload) -> None:
        self._left[one.section.name] = one.identity
        del self.followed[one.section.name]

    def _left_alone(self) -> int:
        """Bytes in groups that are left alone; one that was made again is taken up at the next look."""
        total = 0
        for name, identity in list(self._left.items()):
            if self.watched[name].identity != identity:
                del self._left[name]
                continue
            try:
                total += self.watched[name].look()[1].local
            except OSError:
                continue  # it is gone since
        return total
