"""Moves limits of control groups, and gives them back: each is on record before it is written, and each write may fail."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from poolwise.errors import InputError
from poolwise.live.logs import log_event
from poolwise.live.memory_agent.curve import STANDS_STILL
from poolwise.live.memory_agent.groups import WatchedGroup
from poolwise.live.memory_agent.metrics import MemoryAgentMetrics
from poolwise.live.memory_agent.saved_limits import LimitsRecord, SavedLimit, let_go
from poolwise.live.memory_agent.workload import TrackedWorkload


class LimitMover:
    """Actions limits.

    Parameters
    ----------
    record
        What limits were before; None for a dry run, which says what it would write and writes nothing.
    root
        Where control groups are mounted.
    """

    def __init__(self, record: LimitsRecord | None, root: Path, metrics: MemoryAgentMetrics) -> None:
        self.record, self.root, self.metrics = record, root, metrics
        self._would: list[tuple[str, int]] = []

    def limit_before(self, group: str, watched: WatchedGroup) -> int | None:
        """The limit that a group had before the agent, or an agent before it; raises OSError where it is gone."""
        now, taken = watched.limit(), None if self.record is None else self.record.get(_key(group))
        if taken is None or taken.identity != watched.identity or now not in (*taken.ours, taken.before):
            return now
        return taken.before

    def move(self, moves: Sequence[tuple[TrackedWorkload, int]], memory: int, now_s: float) -> bool:
        """Set limits, those that fall first; none rises by more than was given up. Returns whether anything was written."""
        changes = [(one, limit) for one, limit in moves if limit != one.limit]
        if self.record is None:
            self._say_once(changes)
            return False
        falls = [(one, limit) for one, limit in changes if limit < _number(one.limit)]
        for one, limit in falls:
            if not self._set(one, limit):
                one.curve = one.curve.learn(now_s, limit, STANDS_STILL, sure=True)  # it needs what could not be taken from it
        for one, limit in changes:
            if (one, limit) not in falls:
                others = sum(_number(other.limit, other.held.local) for other, _ in moves if other is not one)
                self._set(one, max(min(limit, memory - others), one.limit or 0))
        return bool(changes)

    def let_go_of(self, one: TrackedWorkload) -> bool:
        """Give a workload's group back what it had."""
        taken = None if self.record is None else self.record.get(_key(one.section.group))
        return taken is None or self._let_go(taken)

    def let_go(self, but: Sequence[str] = ()) -> list[SavedLimit]:
        """Give groups on record the limits back that they had, but for some; returns those that the kernel refused."""
        kept = {_key(group) for group in but}
        return [taken for taken in self.record or () if taken.group not in kept and not self._let_go(taken)]

    def forget(self, one: TrackedWorkload) -> None:
        """Take a group that is gone off the record."""
        if self.record is not None:
            self.record.remove(_key(one.section.group))

    def _set(self, one: TrackedWorkload, limit: int) -> bool:
        """Set a limit; a refused one stays as it was."""
        assert self.record is not None
        if limit == one.limit:
            return True
        _tell("moves", one, limit)
        name, watched, known = one.section.name, one.watched, self.record.get(_key(one.section.group))
        try:
            kills = known.kills if known is not None else watched.kills
            ours = (limit,) if one.limit is None else (one.limit, limit)
            self.record.save(SavedLimit(_key(one.section.group), one.identity, one.most, kills, ours))
            if kills:
                watched.set_kills(False)
            watched.set_limit(limit)
            one.limit = limit
        except (InputError, OSError) as error:
            self.metrics.failures.labels("write").inc()
            log_event("the limit was not taken", logging.WARNING, workload=name, limit=limit, why=str(error))
            return False
        self.metrics.moves.labels(name).inc()
        return True

    def _let_go(self, taken: SavedLimit) -> bool:
        assert self.record is not None
        try:
            done = let_go(self.record, taken, WatchedGroup.find(taken.group, None, self.root))
        except (InputError, OSError) as error:
            self.metrics.failures.labels("write").inc()
            log_event("the limit could not be given back", logging.ERROR, group=taken.group, limit=taken.before, why=str(error))
            return False
        log_event("let go", group=taken.group, limit=done)
        return True

    def _say_once(self, changes: Sequence[tuple[TrackedWorkload, int]]) -> None:
        """Say what would be written, unless that was the last that was said."""
        would = [(one.section.name, limit) for one, limit in changes]
        if would != self._would:
            self._would = would
            for one, limit in changes:
                _tell("would move", one, limit)


def _tell(event: str, one: TrackedWorkload, limit: int) -> None:
    below = {"below_working_set": one.working_set - limit} if limit < one.working_set else {}
    log_event(
        event,
        logging.WARNING if below else logging.INFO,
        workload=one.section.name,
        limit_before=one.limit,
        limit=limit,
        slowdown=round(one.slowdown, 3),
        tolerance=one.section.tolerance,
        **below,
    )


def _key(group: str) -> str:
    return group.strip("/")


def _number(limit: int | None, otherwise: int = 2**62) -> int:
    return otherwise if limit is None else limit
