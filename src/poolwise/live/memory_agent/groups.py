"""A workload's control group, of version 1 or 2: its counters, and the limit that the agent moves.

Version 2 is limited by memory.high, which slows down who is above it and never kills; version 1 by memory.limit_in_bytes.
There the kernel refuses a limit while all pages are in use, and kills where it finds none to take out, even beside free swap:
a group that is limited by the agent stands still instead (memory.oom_control) until it is given more.
"""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, replace
from pathlib import Path

from poolwise.errors import InputError
from poolwise.live.memory_agent.allocation import PAGE
from poolwise.live.memory_agent.estimate import Counters
from poolwise.profiling.control_groups import ROOT, V1, V2, ControlGroup, write

PATIENCE_S = 2.0
"""Seconds for which the kernel is asked again to take out what is in use."""
_OUT_OF_MEMORY = "memory.oom_control"
_UNLIMITED = 2**62
"""Bytes from which on a limit of version 1 is none: the kernel writes the largest multiple of a page."""


@dataclass(frozen=True)
class HeldMemory:
    """Bytes of a group at an instant: `local`, without file pages that nobody asked for twice, and what lies in swap."""

    local: int
    swapped: int

    @property
    def total(self) -> int:
        """Bytes that would be local without a limit."""
        return self.local + self.swapped


@dataclass(frozen=True)
class WatchedGroup:
    """A group that somebody else has made, and whether it is still the same one.

    Attributes
    ----------
    group : its folders
    pressure : its file of pressure stall information; None where there is none
    progress : file in which its program writes how much it has done; None where it does not
    """

    group: ControlGroup
    pressure: Path | None = None
    progress: Path | None = None

    @classmethod
    def find(cls, name: str, progress: Path | None = None, root: Path = ROOT) -> WatchedGroup:
        """Find a group by its path from the root of control groups; it need not exist yet.

        Raises InputError where there are no control groups with a memory controller.
        """
        where = name.strip("/")
        if (root / "memory" / "memory.limit_in_bytes").is_file():
            group = ControlGroup(V1, {"memory": root / "memory" / where, "cpuacct": root / "cpuacct" / where})
            return cls(group, root / "unified" / where / "memory.pressure", progress)
        if "memory" in _text(root / "cgroup.controllers").split():
            folder = root / where
            return cls(ControlGroup(V2, {"memory": folder, "cpu": folder}), folder / "memory.pressure", progress)
        remedy = "run on Linux with control groups that limit memory, mounted there"
        raise InputError("no control groups with a memory controller", file=root, remedy=remedy)

    @property
    def identity(self) -> int | None:
        """What tells it from an earlier or later group of its name; None while there is none."""
        try:
            return self.group.memory.stat().st_ino
        except OSError:
            return None

    @property
    def limit_file(self) -> Path:
        """Where its limit stands."""
        return self.group.memory / ("memory.high" if self.group.dialect.version == 2 else self.group.dialect.limit)

    def limit(self) -> int | None:
        """Bytes that it may hold; None for no limit. Raises OSError where it is gone."""
        text = self.limit_file.read_text().strip()
        if text == self.group.dialect.unlimited or int(text) >= _UNLIMITED:
            return None
        return int(text)

    def set_limit(self, limit: int | None, patience_s: float = PATIENCE_S) -> None:
        """Allow so many bytes, whole pages; None for no limit. Raises InputError with the kernel's answer.

        What is above the limit is taken out, which version 1 refuses where it is all in use; it is asked again for a while.
        """
        text = self.group.dialect.unlimited if limit is None else str(limit // PAGE * PAGE)
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return write(self.limit_file, text)
            except InputError as error:
                busy = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EBUSY
                if not busy or time.monotonic() > deadline:
                    raise

    @property
    def kills(self) -> bool | None:
        """Whether the kernel kills in it where memory runs out; None where a limit never leads to that (version 2)."""
        if self.group.dialect.version == 2:
            return None
        return "oom_kill_disable 0" in (self.group.memory / _OUT_OF_MEMORY).read_text().splitlines()

    def set_kills(self, kills: bool) -> None:
        """Kill, or let stand still, where memory runs out (version 1); raises InputError with the kernel's answer."""
        write(self.group.memory / _OUT_OF_MEMORY, "0" if kills else "1")

    @property
    def stands_still(self) -> bool:
        """Whether processes wait for memory that the limit keeps from them (version 1)."""
        return self.group.dialect.version == 1 and "under_oom 1" in _text(self.group.memory / _OUT_OF_MEMORY).splitlines()

    def look(self) -> tuple[Counters, HeldMemory]:
        """Read its counters; raises OSError where it is gone."""
        use = self.group.use()
        counters = Counters(time.monotonic(), use.cpu_ns / 1e9, use.major_faults)
        stalled = None if self.pressure is None else _stalled_s(_text(self.pressure))
        done = None if self.progress is None else _progress(_text(self.progress))
        return replace(counters, stalled_s=stalled, progress=done), HeldMemory(use.working_set, use.swapped)


def _stalled_s(text: str) -> float | None:
    """Seconds of "some" in a file of pressure stall information; None where it says nothing."""
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def _progress(text: str) -> float | None:
    """The number that a program wrote last; None for none, as while it is being written."""
    try:
        return float(text)
    except ValueError:
        return None


def _text(path: Path) -> str:
    """What a file says, nothing where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
