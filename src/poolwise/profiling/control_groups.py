"""Control groups of Linux, version 1 or 2: what a group of processes may use, and what it has used.

Source: the kernel's documentation, "Control Group v2" and "Memory Resource Controller". Folders and file names are data
here, so that a tree of plain files can stand in for the kernel.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
"""Period over which a share of processor time is granted."""
PATIENCE_S = 10.0
"""Seconds that killed processes may take to leave their group."""


@dataclass(frozen=True)
class GroupUse:
    """What a group uses at an instant, and what it has used since it was made.

    Attributes
    ----------
    working_set : bytes charged to it, without file pages that nobody has asked for twice
    swapped : bytes of it that lie in swap
    faults, major_faults : page faults, and those of them that waited for a device or for swap
    refaults : pages that came back after they had been thrown out, from swap or from files
    cpu_ns : processor time
    """

    working_set: int
    swapped: int
    faults: int
    major_faults: int
    refaults: int
    cpu_ns: int


@dataclass(frozen=True)
class Dialect:
    """How a version of control groups calls things."""

    version: int
    limit: str
    unlimited: str
    usage: str
    total: str  # before the names in memory.stat that count the groups below as well


V1 = Dialect(1, "memory.limit_in_bytes", "-1", "memory.usage_in_bytes", "total_")
V2 = Dialect(2, "memory.max", "max", "memory.current", "")


@dataclass(frozen=True)
class Hierarchy:
    """Where groups can be made: for each controller the folder that they go into (version 2: the same for all)."""

    dialect: Dialect
    folders: Mapping[str, Path]

    def group(self, name: str) -> ControlGroup:
        """Name a group below it; nothing is made yet."""
        return ControlGroup(self.dialect, {controller: folder / name for controller, folder in self.folders.items()})


@dataclass(frozen=True)
class ControlGroup:
    """A group of processes with a limit of its own; `folders` are those of its controllers."""

    dialect: Dialect
    folders: Mapping[str, Path]

    @property
    def memory(self) -> Path:
        """Folder of its memory controller."""
        return self.folders["memory"]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its folders, each once."""
        return tuple(dict.fromkeys(self.folders.values()))

    @property
    def entrances(self) -> tuple[Path, ...]:
        """Files into which a process writes its number to join."""
        return tuple(path / "cgroup.procs" for path in self.paths)

    def make(self) -> None:
        """Make its folders; raises InputError without the rights to."""
        for path in self.paths:
            try:
                path.mkdir(exist_ok=True)
            except OSError as error:
                raise _no_rights(path, error) from error

    def limit(self, memory: int | None) -> None:
        """Allow so many bytes of memory; None lifts the limit. What is above it is taken out at once."""
        write(self.memory / self.dialect.limit, self.dialect.unlimited if memory is None else str(memory))

    def share_of_cpu(self, share: float) -> None:
        """Allow a share of one processor's time, in periods of 0.1 s."""
        quota = str(round(share * PERIOD_US))
        if self.dialect.version == 2:
            write(self.folders["cpu"] / "cpu.max", f"{quota} {PERIOD_US}")
        else:
            write(self.folders["cpu"] / "cpu.cfs_period_us", str(PERIOD_US))
            write(self.folders["cpu"] / "cpu.cfs_quota_us", quota)

    def use(self) -> GroupUse:
        """Read its counters."""
        stat = _table(self.memory / "memory.stat")
        prefix = self.dialect.total
        refaults = sum(stat.get(f"{prefix}workingset_refault_{kind}", 0) for kind in ("anon", "file"))
        usage = _number(self.memory / self.dialect.usage)
        if self.dialect.version == 2:
            swap, cpu = self.memory / "memory.swap.current", self.folders["cpu"] / "cpu.stat"
            swapped, cpu_ns = _number(swap) if swap.exists() else 0, _table(cpu)["usage_usec"] * 1000
        else:
            swapped, cpu_ns = stat.get("total_swap", 0), _number(self.folders["cpuacct"] / "cpuacct.usage")
        return GroupUse(
            working_set=max(usage - stat[f"{prefix}inactive_file"], 0),
            swapped=swapped,
            faults=stat[f"{prefix}pgfault"],
            major_faults=stat[f"{prefix}pgmajfault"],
            refaults=refaults,
            cpu_ns=cpu_ns,
        )

    def processes(self) -> list[int]:
        """Numbers of the processes in it."""
        found = self.memory / "cgroup.procs"
        return [int(line) for line in found.read_text().split()] if found.exists() else []

    def remove(self) -> None:
        """Kill what is in it and take it away; without an effect where it is gone. Raises InputError if it will not go."""
        deadline = time.monotonic() + PATIENCE_S
        for path in self.paths:
            while path.exists():
                self._kill()
                try:
                    path.rmdir()
                except OSError as error:
                    if time.monotonic() > deadline:
                        remedy = f"end the processes listed in {path / 'cgroup.procs'}, then remove the folder"
                        raise InputError("the control group cannot be removed", file=path, remedy=remedy) from error
                    time.sleep(0.02)

    def _kill(self) -> None:
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has ended by itself in the meantime


def find_hierarchy(root: Path = ROOT, own: Path = Path("/proc/self/cgroup"), parent: str | None = None) -> Hierarchy:
    """Find where groups can be made: version 1 where memory is under it, else version 2 with the controllers handed on.

    Parameters
    ----------
    root
        Where control groups are mounted.
    own
        The file in which the kernel says which groups this process is in.
    parent
        Group under which new ones are made, from the root; by default the root with version 1 or as its owner, else the
        group that this process is in (as a delegated one).

    Raises InputError with a remedy where there are none, or the controllers are missing.
    """
    if (root / "memory" / "memory.limit_in_bytes").is_file():
        where = (parent or "").strip("/")
        missing = [name for name in ("memory", "cpu", "cpuacct") if not (root / name / where / "cgroup.procs").is_file()]
        if missing:
            raise InputError(f"no control groups for {', '.join(missing)}", file=root, remedy="mount these controllers")
        return Hierarchy(V1, {name: root / name / where for name in ("memory", "cpu", "cpuacct")})
    if not (root / "cgroup.controllers").is_file():
        remedy = "run on Linux with control groups mounted there (mount -t cgroup2 none /sys/fs/cgroup)"
        raise InputError("no control groups", file=root, remedy=remedy)
    folder = root / (parent if parent is not None else _delegated(root, own)).strip("/")
    _hand_on(folder)
    return Hierarchy(V2, {"memory": folder, "cpu": folder})


def _delegated(root: Path, own: Path) -> str:
    """Group below which this process may make others: the root as its owner, else the one that it is in."""
    if os.access(root / "cgroup.procs", os.W_OK):
        return ""
    for line in own.read_text().splitlines():
        if line.startswith("0::"):
            return line[3:]
    raise InputError("this process is in no group of version 2", file=own, remedy="name one with --group")


def _hand_on(folder: Path) -> None:
    """Let groups below a folder have memory and processor controllers; raises InputError where that is refused."""
    wanted = folder / "cgroup.subtree_control"
    try:
        have, known = wanted.read_text().split(), (folder / "cgroup.controllers").read_text().split()
    except OSError as error:
        raise _no_rights(folder, error) from error
    for controller in ("memory", "cpu"):
        if controller not in known:
            remedy = "start in a delegated group: systemd-run --user --scope -p Delegate=yes COMMAND"
            raise InputError(f"the controller '{controller}' is not handed on to it", file=folder, remedy=remedy)
    if missing := [f"+{name}" for name in ("memory", "cpu") if name not in have]:
        try:
            wanted.write_text(" ".join(missing))
        except OSError as error:
            remedy = "name an empty delegated group with --group: one that holds processes cannot hand controllers on"
            raise InputError(f"controllers cannot be handed on: {error.strerror}", file=wanted, remedy=remedy) from error


def _no_rights(path: Path, error: OSError) -> InputError:
    remedy = "run as root, or in a delegated group (systemd-run --user --scope -p Delegate=yes) named with --group"
    return InputError(f"cannot be used: {error.strerror}", file=path, remedy=remedy)


def write(path: Path, text: str) -> None:
    """Write a value into a file of the kernel; raises InputError with its answer."""
    try:
        with path.open("wb", buffering=0) as file:  # a buffer would write what was refused once more
            file.write(text.encode())
    except OSError as error:
        remedy = "check the rights there, and that the value is possible"
        raise InputError(f"does not take '{text}': {error.strerror}", file=path, remedy=remedy) from error


def _number(path: Path) -> int:
    return int(path.read_text())


def _table(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}
