"""Control group of a workload, version 1 or 2: its counters, and the memory limit that the agent moves.

Version 2 uses memory.high, which throttles a group above its limit and never kills. Version 1 uses memory.limit_in_bytes.
There, the kernel rejects a limit while all pages are in use, and the OOM killer can strike despite free swap. The agent
therefore disables the OOM killer (memory.oom_control), and the group stalls until it gets more memory.
"""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, replace
from pathlib import Path

from poolwise.errors import InputError
from poolwise_agents.memory_agent.allocation import PAGE
from poolwise_agents.memory_agent.estimate import Counters
from poolwise_agents.profiling.control_groups import ROOT, V1, V2, ControlGroup, write

PATIENCE_S = 2.0  # seconds during which a rejected limit is retried while pages are in use
_OOM_CONTROL = "memory.oom_control"
_UNLIMITED = 2**62  # limits of version 1 from this value on mean no limit; the kernel reports the largest multiple of a page


@dataclass(frozen=True)
class HeldMemory:
    """Memory of a group at an instant (bytes): `local`, excluding file pages that were used only once, and `swapped`."""

    local: int
    swapped: int

    @property
    def total(self) -> int:
        """Bytes that would be local without a limit."""
        return self.local + self.swapped


@dataclass(frozen=True)
class WatchedGroup:
    """An existing control group that the agent watches."""

    group: ControlGroup
    pressure: Path | None = None  # its file of pressure stall information; None without one
    progress: Path | None = None  # file in which its program reports progress; None without one

    @classmethod
    def find(cls, name: str, progress: Path | None = None, root: Path = ROOT) -> WatchedGroup:
        """Return a group by its path, which need not exist yet; raises InputError without a memory controller."""
        path = name.strip("/")
        if (root / "memory" / "memory.limit_in_bytes").is_file():
            group = ControlGroup(V1, {"memory": root / "memory" / path, "cpuacct": root / "cpuacct" / path})
            return cls(group, root / "unified" / path / "memory.pressure", progress)
        if "memory" in _read_text(root / "cgroup.controllers").split():
            folder = root / path
            return cls(ControlGroup(V2, {"memory": folder, "cpu": folder}), folder / "memory.pressure", progress)
        remedy = "run on Linux with control groups that have a memory controller, mounted at this path"
        raise InputError("no control groups with a memory controller", file=root, remedy=remedy)

    @property
    def identity(self) -> int | None:
        """Inode, which distinguishes the group from earlier and later ones of the same name; None if it does not exist."""
        try:
            return self.group.memory.stat().st_ino
        except OSError:
            return None

    @property
    def limit_file(self) -> Path:
        """File that contains the limit."""
        return self.group.memory / ("memory.high" if self.group.dialect.version == 2 else self.group.dialect.limit)

    def limit(self) -> int | None:
        """Return the limit (bytes), None for no limit; raises OSError if the group is gone."""
        text = self.limit_file.read_text().strip()
        if text == self.group.dialect.unlimited or int(text) >= _UNLIMITED:
            return None
        return int(text)

    def set_limit(self, limit: int | None, patience_s: float = PATIENCE_S) -> None:
        """Set the limit (bytes, rounded down to whole pages; None for no limit); raises InputError with the kernel's answer.

        The kernel reclaims memory above the limit. Version 1 rejects the limit while that memory is in use; it is then retried.
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
    def oom_kill_enabled(self) -> bool | None:
        """True if the OOM killer is enabled (version 1); None in version 2, where the limit never triggers it."""
        if self.group.dialect.version == 2:
            return None
        return "oom_kill_disable 0" in (self.group.memory / _OOM_CONTROL).read_text().splitlines()

    def set_oom_kill(self, enabled: bool) -> None:
        """Enable or disable the OOM killer (version 1); raises InputError with the kernel's answer."""
        write(self.group.memory / _OOM_CONTROL, "0" if enabled else "1")

    @property
    def is_stalled(self) -> bool:
        """True if processes wait for memory because of the limit (version 1)."""
        return self.group.dialect.version == 1 and "under_oom 1" in _read_text(self.group.memory / _OOM_CONTROL).splitlines()

    def read_counters(self) -> tuple[Counters, HeldMemory]:
        """Read counters and held memory; raises OSError if the group is gone."""
        use = self.group.usage()
        counters = Counters(time.monotonic(), use.cpu_ns / 1e9, use.major_faults)
        stalled = None if self.pressure is None else _parse_stall_s(_read_text(self.pressure))
        progress = None if self.progress is None else _parse_progress(_read_text(self.progress))
        return replace(counters, stalled_s=stalled, progress=progress), HeldMemory(use.working_set, use.swapped)


def _parse_stall_s(text: str) -> float | None:
    """Return the seconds of "some" in pressure stall information; None without such a line."""
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def _parse_progress(text: str) -> float | None:
    """Return the number that a program wrote last; None if there is no number, for example during a write."""
    try:
        return float(text)
    except ValueError:
        return None


def _read_text(path: Path) -> str:
    """Return the content of a file, "" if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
