"""What a process has set up on this computer, on record before it exists, so that a later one can take it away.

A record names its owner by process number, start time and boot. What an owner that is gone has left is taken away by the next
start; what a living one has, and whatever no record names, is left alone.
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
from poolwise.profiling.control_groups import V1, V2, ControlGroup
from poolwise.profiling.zram import ZramSwap


def records_folder() -> Path:
    """Where records lie, which forgets them at a restart of the computer as the kernel does what they name."""
    if os.geteuid() == 0:
        return Path("/run/poolwise")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"poolwise-{os.getuid()}"


@dataclass
class OwnedResources:
    """What this process has set up, on record in a file; `release` takes all of it away, the last first."""

    file: Path
    things: list[ControlGroup | ZramSwap] = field(default_factory=list)

    def add(self, thing: ControlGroup | ZramSwap) -> None:
        """Put a thing on record; call it before the thing takes anything."""
        self.things.append(thing)
        self._write()

    def release(self) -> None:
        """Take everything away, and then the record; what is gone already is passed over."""
        while self.things:
            self.things[-1].remove()
            self.things.pop()
            self._write()
        self.file.unlink(missing_ok=True)

    def _write(self) -> None:
        content = {"owner": _alive(os.getpid()), "things": [_to_dict(thing) for thing in self.things]}
        write_whole(self.file, json.dumps(content, indent=1).encode())


@contextmanager
def belongings(folder: Path, purpose: str) -> Iterator[OwnedResources]:
    """Take away what former owners have left, then keep a record for what the body sets up, and release that at its end."""
    take_away(folder)
    mine = OwnedResources(folder / f"{purpose}-{os.getpid()}.json")
    try:
        yield mine
    finally:
        mine.release()


@contextmanager
def stopping_is_an_exit() -> Iterator[None]:
    """Let a request to end (SIGTERM, SIGHUP) run what belongs to an exit, as Ctrl-C does."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_away(folder: Path) -> list[str]:
    """Take away what owners that are gone have left; returns the names of their records."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise InputError("the folder of records belongs to somebody else", file=folder, remedy="remove it")
    taken = []
    for file in sorted(folder.glob("*.json")):
        content = _read(file)
        owner = content["owner"]
        if _alive(owner["process"]) == owner:
            continue
        if owner["boot"] == boot_id():
            OwnedResources(file, [_from_dict(thing) for thing in content["things"]]).release()
        file.unlink(missing_ok=True)
        taken.append(file.stem)
    return taken


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return content
    except ValueError as error:
        raise InputError(f"is no record: {error}", file=file, remedy="look at what it names, then delete it") from None


def _alive(process: int) -> dict[str, Any] | None:
    """What tells a living process from all others that had or will have its number; None if there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return {"process": process, "started": int(stat.rpartition(")")[2].split()[19]), "boot": boot_id()}


def boot_id() -> str:
    """What tells this start of the computer from all others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _to_dict(thing: ControlGroup | ZramSwap) -> dict[str, Any]:
    if isinstance(thing, ZramSwap):
        return {"zram": thing.number, "mark": thing.mark}
    folders = {controller: str(path) for controller, path in thing.folders.items()}
    return {"group": folders, "version": thing.dialect.version}


def _from_dict(content: dict[str, Any]) -> ControlGroup | ZramSwap:
    if "zram" in content:
        return ZramSwap(content["zram"], content["mark"])
    dialect = {1: V1, 2: V2}[content["version"]]
    return ControlGroup(dialect, {controller: Path(path) for controller, path in content["group"].items()})
