"""Resources that a process has created on this computer, recorded before they exist so that a later process can remove them.

A record names its owner by process id, start time and boot. The next start removes the resources of dead owners. Resources of
living owners, and anything without a record, stay untouched.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise_agents.profiling.control_groups import V1, V2, ControlGroup
from poolwise_agents.profiling.zram import ZramSwap


def records_folder() -> Path:
    """Return the folder of records; like the recorded resources, its content does not survive a reboot."""
    if os.geteuid() == 0:
        return Path("/run/poolwise")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"poolwise-{os.getuid()}"


@dataclass
class OwnedResources:
    """Resources of this process, recorded in a file; `release` removes them in reverse order."""

    file: Path
    resources: list[ControlGroup | ZramSwap] = field(default_factory=list)

    def add(self, resource: ControlGroup | ZramSwap) -> None:
        """Record a resource; call this before creating it."""
        self.resources.append(resource)
        self._write()

    def release(self) -> None:
        """Remove all resources, then the record; resources that no longer exist are skipped."""
        while self.resources:
            self.resources[-1].remove()
            self.resources.pop()
            self._write()
        self.file.unlink(missing_ok=True)

    def _write(self) -> None:
        content = {"owner": _owner(os.getpid()), "things": [_to_dict(resource) for resource in self.resources]}
        write_whole(self.file, json.dumps(content, indent=1).encode())


@contextmanager
def owned_resources(folder: Path, purpose: str) -> Iterator[OwnedResources]:
    """Remove resources of dead owners, then yield a record for the body's resources and release them at the end."""
    remove_stale(folder)
    owned = OwnedResources(folder / f"{purpose}-{os.getpid()}.json")
    try:
        yield owned
    finally:
        owned.release()


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Exit cleanly on SIGTERM and SIGHUP, as Python does on Ctrl-C."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_stale(folder: Path) -> list[str]:
    """Remove the resources of dead owners; returns the names of their records."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise InputError("the folder of records belongs to another user", file=folder, remedy="remove it")
    removed = []
    for file in sorted(folder.glob("*.json")):
        content = _read(file)
        owner = content["owner"]
        if _owner(owner["process"]) == owner:
            continue
        if owner["boot"] == boot_id():
            OwnedResources(file, [_from_dict(entry) for entry in content["things"]]).release()
        file.unlink(missing_ok=True)
        removed.append(file.stem)
    return removed


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return content
    except ValueError as error:
        raise InputError(f"is not a valid record: {error}", file=file, remedy="check what it lists, then delete it") from None


def _owner(process: int) -> dict[str, Any] | None:
    """Return an identity of a living process that stays unique after its id is reused; None if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return {"process": process, "started": int(stat.rpartition(")")[2].split()[19]), "boot": boot_id()}


def boot_id() -> str:
    """Return the id of the current boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _to_dict(resource: ControlGroup | ZramSwap) -> dict[str, Any]:
    if isinstance(resource, ZramSwap):
        return {"zram": resource.number, "mark": resource.uuid}
    folders = {controller: str(path) for controller, path in resource.folders.items()}
    return {"group": folders, "version": resource.dialect.version}


def _from_dict(content: dict[str, Any]) -> ControlGroup | ZramSwap:
    if "zram" in content:
        return ZramSwap(content["zram"], content["mark"])
    dialect = {1: V1, 2: V2}[content["version"]]
    return ControlGroup(dialect, {controller: Path(path) for controller, path in content["group"].items()})
