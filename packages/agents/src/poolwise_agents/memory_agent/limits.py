"""Moves memory limits of control groups and restores them; each limit is saved before it is written, and writes may fail.

The successor of a killed agent takes over or restores the saved limits. One file, replaced atomically before each change, lists
every group that the agent has limited, its original limit, and the limits that the agent may have set. Any other current limit
was set by another program and is kept.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.live.logs import log_event
from poolwise_agents.memory_agent.curve import STALLED_SLOWDOWN
from poolwise_agents.memory_agent.groups import WatchedGroup
from poolwise_agents.memory_agent.metrics import MemoryAgentMetrics
from poolwise_agents.memory_agent.workload import TrackedWorkload
from poolwise_agents.profiling.cleanup import boot_id


@dataclass(frozen=True)
class SavedLimit:
    """A group whose limit the agent moves. The field names are keys of the file."""

    group: str  # path from the root of control groups
    identity: int  # inode of the group
    before: int | None  # limit before the agent (bytes); None for none
    kills: bool | None = None  # whether the OOM killer was enabled before; None if it was not changed
    # limits that the agent has set (bytes); one of them is current unless another program changed it
    ours: tuple[int, ...] = ()


class LimitsRecord:
    """The saved limits in a folder; changes are on disk before methods return. Raises InputError for an invalid file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "limits.json"
        self._saved = {saved.group: saved for saved in _read(self.file)}

    def __iter__(self) -> Iterator[SavedLimit]:
        return iter(tuple(self._saved.values()))

    def get(self, group: str) -> SavedLimit | None:
        """Return the saved limit of a group; None without one."""
        return self._saved.get(group)

    def save(self, saved: SavedLimit) -> None:
        """Save the limit of a group."""
        if self._saved.get(saved.group) != saved:
            self._saved[saved.group] = saved
            self._write()

    def remove(self, group: str) -> None:
        """Remove a group; the file is deleted with its last group."""
        if self._saved.pop(group, None) is not None:
            self._write()

    def _write(self) -> None:
        if not self._saved:
            self.file.unlink(missing_ok=True)
            return
        content = {"version": 1, "boot": boot_id(), "groups": [asdict(saved) for saved in self]}
        write_whole(self.file, json.dumps(content, indent=1).encode())


def restore_limit(record: LimitsRecord, saved: SavedLimit, watched: WatchedGroup) -> str:
    """Restore the limit of a group, remove it from the record and return the outcome; raises InputError on rejection."""
    if watched.identity != saved.identity:
        record.remove(saved.group)
        return "group_gone"
    theirs = watched.limit() not in (*saved.ours, saved.before)
    if not theirs:
        watched.set_limit(saved.before)
    if saved.kills:
        watched.set_oom_kill(True)
    record.remove(saved.group)
    return "kept_external_limit" if theirs else "restored"


def _read(file: Path) -> list[SavedLimit]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["version"] != 1:
            raise ValueError(f"version {content['version']}")
        if content["boot"] != boot_id():
            return []
        return [SavedLimit(**{**entry, "ours": tuple(entry["ours"])}) for entry in content["groups"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        remedy = "check that none of its groups has a limit of the agent, then delete it"
        raise InputError(f"is not a valid record of limits: {error}", file=file, remedy=remedy) from None


class LimitMover:
    """Writes limits. Without a record, it makes a dry run: limits are logged instead of written."""

    def __init__(self, record: LimitsRecord | None, root: Path, metrics: MemoryAgentMetrics) -> None:
        self.record, self.root, self.metrics = record, root, metrics
        self._proposed: list[tuple[str, int]] = []

    def limit_before(self, group: str, watched: WatchedGroup) -> int | None:
        """Return the limit of a group before the agent or its predecessor set one; raises OSError if the group is gone."""
        now, saved = watched.limit(), None if self.record is None else self.record.get(group)
        if saved is None or saved.identity != watched.identity or now not in (*saved.ours, saved.before):
            return now
        return saved.before

    def move(self, moves: Sequence[tuple[TrackedWorkload, int]], memory: int, now_s: float) -> bool:
        """Set limits, decreases first; increases use only memory that was given up. Return whether anything was written."""
        changes = [(workload, limit) for workload, limit in moves if limit != workload.limit]
        if self.record is None:
            self._log_proposed(changes)
            return False
        decreases = [(workload, limit) for workload, limit in changes if limit < _limit_or(workload.limit)]
        for workload, limit in decreases:
            if not self._set_limit(workload, limit):
                # the workload needs the memory that could not be reclaimed
                workload.curve = workload.curve.add_sample(now_s, limit, STALLED_SLOWDOWN, sure=True)
        for workload, limit in changes:
            if (workload, limit) not in decreases:
                others = sum(_limit_or(other.limit, other.held.local) for other, _ in moves if other is not workload)
                self._set_limit(workload, max(min(limit, memory - others), workload.limit or 0))
        return bool(changes)

    def restore(self, workload: TrackedWorkload) -> bool:
        """Restore the limit that a workload's group had before the agent; returns whether it succeeded."""
        saved = None if self.record is None else self.record.get(workload.section.group)
        return saved is None or self._restore(saved)

    def restore_all(self, but: Sequence[str] = ()) -> list[SavedLimit]:
        """Restore all saved limits, except those of some groups; return the limits that the kernel rejected."""
        return [saved for saved in self.record or () if saved.group not in but and not self._restore(saved)]

    def forget(self, workload: TrackedWorkload) -> None:
        """Remove the saved limit of a group that is gone."""
        if self.record is not None:
            self.record.remove(workload.section.group)

    def _set_limit(self, workload: TrackedWorkload, limit: int) -> bool:
        """Set a limit; if the kernel rejects it, the current limit remains."""
        assert self.record is not None
        if limit == workload.limit:
            return True
        _log_move("limit_moved", workload, limit)
        name, watched, earlier = workload.section.name, workload.watched, self.record.get(workload.section.group)
        try:
            kills = earlier.kills if earlier is not None else watched.oom_kill_enabled
            ours = (limit,) if workload.limit is None else (workload.limit, limit)
            self.record.save(SavedLimit(workload.section.group, workload.identity, workload.max_limit, kills, ours))
            if kills:
                watched.set_oom_kill(False)
            watched.set_limit(limit)
            workload.limit = limit
        except (InputError, OSError) as error:
            self.metrics.failures.labels("write").inc()
            log_event("limit_write_failed", logging.WARNING, workload=name, limit=limit, why=str(error))
            return False
        self.metrics.moves.labels(name).inc()
        return True

    def _restore(self, saved: SavedLimit) -> bool:
        assert self.record is not None
        try:
            outcome = restore_limit(self.record, saved, WatchedGroup.find(saved.group, None, self.root))
        except (InputError, OSError) as error:
            self.metrics.failures.labels("write").inc()
            log_event("limit_restore_failed", logging.ERROR, group=saved.group, limit=saved.before, why=str(error))
            return False
        log_event("limit_restored", group=saved.group, outcome=outcome)
        return True

    def _log_proposed(self, changes: Sequence[tuple[TrackedWorkload, int]]) -> None:
        """Log proposed limits, unless they equal the last ones logged."""
        proposed = [(workload.section.name, limit) for workload, limit in changes]
        if proposed != self._proposed:
            self._proposed = proposed
            for workload, limit in changes:
                _log_move("limit_proposed", workload, limit)


def _log_move(event: str, workload: TrackedWorkload, limit: int) -> None:
    below = {"below_working_set": workload.working_set - limit} if limit < workload.working_set else {}
    log_event(
        event,
        logging.WARNING if below else logging.INFO,
        workload=workload.section.name,
        limit_before=workload.limit,
        limit=limit,
        slowdown=round(workload.slowdown, 3),
        tolerance=workload.section.tolerance,
        **below,
    )


def _limit_or(limit: int | None, otherwise: int = 2**62) -> int:
    return otherwise if limit is None else limit
