"""Limits before the agent, saved on disk: the successor of a killed agent takes them over or restores them.

One file, replaced atomically before each change, lists every group that the agent has limited, its limit before, and the limits
that the agent may have set. Any other current limit was set by another program and is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.live.memory_agent.groups import WatchedGroup
from poolwise.profiling.cleanup import boot_id


@dataclass(frozen=True)
class SavedLimit:
    """A group whose limit the agent moves. The field names are keys of the file.

    Attributes
    ----------
    group : path from the root of control groups
    identity : inode of the group
    before : limit before the agent (bytes); None for none
    kills : whether the OOM killer was enabled before; None if it was not changed
    ours : limits that the agent has set (bytes); one of them is current unless another program changed it
    """

    group: str
    identity: int
    before: int | None
    kills: bool | None = None
    ours: tuple[int, ...] = ()


class LimitsRecord:
    """The saved limits in a folder; changes are on disk before methods return. Raises InputError for an invalid file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "limits.json"
        self._saved = {one.group: one for one in _read(self.file)}

    def __iter__(self) -> Iterator[SavedLimit]:
        return iter(tuple(self._saved.values()))

    def get(self, group: str) -> SavedLimit | None:
        """Return the saved limit of a group, None without one."""
        return self._saved.get(group)

    def save(self, saved: SavedLimit) -> None:
        """Save the limit of a group."""
        if self._saved.get(saved.group) != saved:
            self._saved[saved.group] = saved
            self._write()

    def remove(self, group: str) -> None:
        """Remove a group; the file is deleted with the last one."""
        if self._saved.pop(group, None) is not None:
            self._write()

    def _write(self) -> None:
        if not self._saved:
            self.file.unlink(missing_ok=True)
            return
        content = {"version": 1, "boot": boot_id(), "groups": [asdict(one) for one in self]}
        write_whole(self.file, json.dumps(content, indent=1).encode())


def restore_limit(record: LimitsRecord, saved: SavedLimit, watched: WatchedGroup) -> str:
    """Restore the limit of a group and remove it from the record; returns the outcome.

    Raises InputError if the kernel rejects the limit; the group then stays in the record.
    """
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
    """Read the limits saved since the last boot."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["version"] != 1:
            raise ValueError(f"version {content['version']}")
        if content["boot"] != boot_id():
            return []
        return [SavedLimit(**{**one, "ours": tuple(one["ours"])}) for one in content["groups"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        remedy = "check that none of its groups has a limit of the agent, then delete it"
        raise InputError(f"is not a valid record of limits: {error}", file=file, remedy=remedy) from None
