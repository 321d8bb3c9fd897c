"""What limits were before the agent, on disk: a killed agent's successor takes them up, or lets go of them.

One file, written whole before each change, names every group that the agent has limited, its limit before, and the limits
that may stand there now. Whatever else stands there was written by somebody else and stays.
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
    """A group whose limit the agent moves.

    Attributes
    ----------
    group : its path from the root of control groups
    identity : which group of that name it is
    before : bytes of its limit before the agent; None for none
    kills : whether the kernel killed in it before where memory ran out; None where that was not changed
    ours : bytes of limits that the agent has set, one of which stands there unless somebody else wrote another
    """

    group: str
    identity: int
    before: int | None
    kills: bool | None = None
    ours: tuple[int, ...] = ()


class LimitsRecord:
    """The record in a folder; every change is on disk before the method returns. Raises InputError for one that is none."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "limits.json"
        self._taken = {one.group: one for one in _read(self.file)}

    def __iter__(self) -> Iterator[SavedLimit]:
        return iter(tuple(self._taken.values()))

    def get(self, group: str) -> SavedLimit | None:
        """What is on record of a group."""
        return self._taken.get(group)

    def save(self, taken: SavedLimit) -> None:
        """Keep what a group's limit was and may be."""
        if self._taken.get(taken.group) != taken:
            self._taken[taken.group] = taken
            self._write()

    def remove(self, group: str) -> None:
        """Forget a group; the file goes with the last."""
        if self._taken.pop(group, None) is not None:
            self._write()

    def _write(self) -> None:
        if not self._taken:
            self.file.unlink(missing_ok=True)
            return
        content = {"version": 1, "boot": boot_id(), "groups": [asdict(one) for one in self]}
        write_whole(self.file, json.dumps(content, indent=1).encode())


def let_go(record: LimitsRecord, taken: SavedLimit, watched: WatchedGroup) -> str:
    """Give a group the limit back that it had and forget it; returns what was done with it.

    Raises InputError where the kernel refuses; the group stays on record then.
    """
    if watched.identity != taken.identity:
        record.remove(taken.group)
        return "gone"
    theirs = watched.limit() not in (*taken.ours, taken.before)
    if not theirs:
        watched.set_limit(taken.before)
    if taken.kills:
        watched.set_kills(True)
    record.remove(taken.group)
    return "changed by somebody else" if theirs else "as before"


def _read(file: Path) -> list[SavedLimit]:
    """What is on record since the computer was started."""
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
        remedy = "see that no group that it names is limited, then delete it"
        raise InputError(f"is no record of limits: {error}", file=file, remedy=remedy) from None
