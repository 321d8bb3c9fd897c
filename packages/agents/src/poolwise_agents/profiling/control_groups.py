"""Control groups of Linux, version 1 or 2: limits of a group of processes, and its resource usage.

Source: the kernel's documentation, "Control Group v2" and "Memory Resource Controller". Folders and file names are data, so
that tests can replace the kernel's hierarchy with plain files.
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
PERIOD_US = 100_000  # period of processor quotas
PATIENCE_S = 10.0  # time that killed processes have to leave their group (s)


@dataclass(frozen=True)
class GroupUsage:
    """Current and cumulative usage of a group."""

    working_set: int  # charged memory without file pages used only once (bytes)
    swapped: int  # swapped memory (bytes)
    faults: int
    major_faults: int  # page faults that waited for a device or swap
    refaults: int  # evicted pages that were read again, from swap or files
    cpu_ns: int  # processor time


@dataclass(frozen=True)
class Dialect:
    """File names and values that differ between the versions of control groups."""

    version: int
    limit: str
    unlimited: str
    usage: str
    total: str  # prefix of the names in memory.stat that include descendant groups


V1 = Dialect(1, "memory.limit_in_bytes", "-1", "memory.usage_in_bytes", "total_")
V2 = Dialect(2, "memory.max", "max", "memory.current", "")


@dataclass(frozen=True)
class ControlGroup:
    """A group of processes with its own limits."""

    dialect: Dialect
    folders: Mapping[str, Path]  # by controller; the same for all in version 2

    def group(self, name: str) -> ControlGroup:
        """Return a group below this one, without creating it."""
        return ControlGroup(self.dialect, {controller: folder / name for controller, folder in self.folders.items()})

    @property
    def memory(self) -> Path:
        """Folder of the group's memory controller."""
        return self.folders["memory"]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Folders of the group, without duplicates."""
        return tuple(dict.fromkeys(self.folders.values()))

    @property
    def procs_files(self) -> tuple[Path, ...]:
        """Files to which a process writes its id to join the group."""
        return tuple(path / "cgroup.procs" for path in self.paths)

    def create(self) -> None:
        """Create the group's folders; raises InputError without permission."""
        for path in self.paths:
            try:
                path.mkdir(exist_ok=True)
            except OSError as error:
                raise _permission_error(path, error) from error

    def set_limit(self, memory: int | None) -> None:
        """Set the memory limit (bytes, None for no limit); the kernel reclaims memory above it at once."""
        write(self.memory / self.dialect.limit, self.dialect.unlimited if memory is None else str(memory))

    def set_cpu_share(self, share: float) -> None:
        """Limit processor time to a share of one processor, in periods of 0.1 s."""
        quota = str(round(share * PERIOD_US))
        if self.dialect.version == 2:
            write(self.folders["cpu"] / "cpu.max", f"{quota} {PERIOD_US}")
        else:
            write(self.folders["cpu"] / "cpu.cfs_period_us", str(PERIOD_US))
            write(self.folders["cpu"] / "cpu.cfs_quota_us", quota)

    def usage(self) -> GroupUsage:
        """Read the group's counters."""
        stat = _table(self.memory / "memory.stat")
        prefix = self.dialect.total
        refaults = sum(stat.get(f"{prefix}workingset_refault_{kind}", 0) for kind in ("anon", "file"))
        usage = _number(self.memory / self.dialect.usage)
        if self.dialect.version == 2:
            swap, cpu = self.memory / "memory.swap.current", self.folders["cpu"] / "cpu.stat"
            swapped, cpu_ns = _number(swap) if swap.exists() else 0, _table(cpu)["usage_usec"] * 1000
        else:
            swapped, cpu_ns = stat.get("total_swap", 0), _number(self.folders["cpuacct"] / "cpuacct.usage")
        return GroupUsage(
            working_set=max(usage - stat[f"{prefix}inactive_file"], 0),
            swapped=swapped,
            faults=stat[f"{prefix}pgfault"],
            major_faults=stat[f"{prefix}pgmajfault"],
            refaults=refaults,
            cpu_ns=cpu_ns,
        )

    def processes(self) -> list[int]:
        """Return the ids of the group's processes."""
        file = self.memory / "cgroup.procs"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def remove(self) -> None:
        """Kill the group's processes and remove the group if it exists; raises InputError if that fails."""
        deadline = time.monotonic() + PATIENCE_S
        for path in self.paths:
            while path.exists():
                self._kill()
                try:
                    path.rmdir()
                except OSError as error:
                    if time.monotonic() > deadline:
                        remedy = f"stop the processes listed in {path / 'cgroup.procs'}, then remove the folder"
                        raise InputError("cannot remove the control group", file=path, remedy=remedy) from error
                    time.sleep(0.02)

    def _kill(self) -> None:
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue  # the process has ended already


def find_hierarchy(root: Path = ROOT, own: Path = Path("/proc/self/cgroup"), parent: str | None = None) -> ControlGroup:
    """Return the parent of new groups: version 1 if it has the memory controller, otherwise version 2.

    `parent` is a path from `root`. By default it is the root in version 1 or if the root is writable, and otherwise the group
    of this process (for example a delegated group), which the kernel lists in `own`. Raises InputError without the required
    controllers.
    """
    if (root / "memory" / "memory.limit_in_bytes").is_file():
        path = (parent or "").strip("/")
        missing = [name for name in ("memory", "cpu", "cpuacct") if not (root / name / path / "cgroup.procs").is_file()]
        if missing:
            raise InputError(f"no control groups for {', '.join(missing)}", file=root, remedy="mount these controllers")
        return ControlGroup(V1, {name: root / name / path for name in ("memory", "cpu", "cpuacct")})
    if not (root / "cgroup.controllers").is_file():
        remedy = "run on Linux with control groups mounted at this path (mount -t cgroup2 none /sys/fs/cgroup)"
        raise InputError("no control groups", file=root, remedy=remedy)
    folder = root / (parent if parent is not None else _delegated(root, own)).strip("/")
    _enable_controllers(folder)
    return ControlGroup(V2, {"memory": folder, "cpu": folder})


def _delegated(root: Path, own: Path) -> str:
    """Return the group below which this process may create others: the root if writable, otherwise its own group."""
    if os.access(root / "cgroup.procs", os.W_OK):
        return ""
    for line in own.read_text().splitlines():
        if line.startswith("0::"):
            return line[3:]
    raise InputError("this process is not in a group of version 2", file=own, remedy="name a group with --group")


def _enable_controllers(folder: Path) -> None:
    """Enable the memory and cpu controllers for groups below a folder; raises InputError if that is not permitted."""
    control = folder / "cgroup.subtree_control"
    try:
        enabled, available = control.read_text().split(), (folder / "cgroup.controllers").read_text().split()
    except OSError as error:
        raise _permission_error(folder, error) from error
    for controller in ("memory", "cpu"):
        if controller not in available:
            remedy = "start in a delegated group: systemd-run --user --scope -p Delegate=yes COMMAND"
            raise InputError(f"the controller '{controller}' is not available in this group", file=folder, remedy=remedy)
    if missing := [f"+{name}" for name in ("memory", "cpu") if name not in enabled]:
        try:
            control.write_text(" ".join(missing))
        except OSError as error:
            remedy = "name an empty delegated group with --group; a group with processes cannot enable controllers"
            raise InputError(f"cannot enable controllers: {error.strerror}", file=control, remedy=remedy) from error


def _permission_error(path: Path, error: OSError) -> InputError:
    remedy = "run as root, or in a delegated group (systemd-run --user --scope -p Delegate=yes) named with --group"
    return InputError(f"no access: {error.strerror}", file=path, remedy=remedy)


def write(path: Path, text: str) -> None:
    """Write a value to a file of the kernel; raises InputError with the kernel's answer."""
    try:
        with path.open("wb", buffering=0) as file:  # a buffer would write a rejected value again on close
            file.write(text.encode())
    except OSError as error:
        remedy = "check the permissions and the value"
        raise InputError(f"cannot write '{text}': {error.strerror}", file=path, remedy=remedy) from error


def _number(path: Path) -> int:
    return int(path.read_text())


def _table(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}
