"""What is attached to this node, on disk: a file for each claim, written before and after each step."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from poolwise.atomic_write import sync_folder, write_whole
from poolwise.errors import InputError


class ClaimState(StrEnum):
    """How far a claim is; see `connector` for what leads from one to the next."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    PREPARED = "prepared"
    DETACHING = "detaching"
    FAILED = "failed"


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a claim, with everything that undoing it takes: it is undone as it was done, whatever the file says now.

    Attributes
    ----------
    request, pool, device, share : which it is in the claim's allocation; share is "" where it is not shared
    attach, verify, detach : commands with the values put in; empty where there is nothing to do
    limit_s : seconds that each of them may take
    environment : NAME=VALUE
    mounts : (path of the node, path of the container, options)
    device_nodes : (path of the node, path of the container, permissions)
    conditions, failures : names of the conditions to report, both empty where the pod does not wait for one
    """

    request: str
    pool: str
    device: str
    share: str = ""
    attach: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    limit_s: float = 30.0
    environment: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    device_nodes: tuple[tuple[str, str, str], ...] = ()
    conditions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What it is in the allocation."""
        return self.request, self.pool, self.device, self.share


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that this node has devices of.

    Attributes
    ----------
    allocated : when its devices were allocated: a claim may get the same ones a second time
    reason : why attaching failed; "" where it did not
    failed : position of the device that failed
    """

    uid: str
    namespace: str
    name: str
    allocated: str
    devices: tuple[Attachment, ...]
    state: ClaimState = ClaimState.ATTACHING
    reason: str = ""
    failed: int = 0

    def same(self, other: ClaimRecord) -> bool:
        """Whether both are about one allocation."""
        mine, others = ([device.identity for device in one.devices] for one in (self, other))
        return (self.uid, self.allocated, mine) == (other.uid, other.allocated, others)


class Records:
    """The records in a folder, which is held `alone`. Each is there whole or not at all.

    Raises InputError for a record that cannot be read, which does not happen unless somebody wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for draft in folder.glob(".*.json.*"):
            draft.unlink()
        self._all = {record.uid: record for record in map(_read, sorted(folder.glob("*.json")))}

    def __iter__(self) -> Iterator[ClaimRecord]:
        return iter(tuple(self._all.values()))

    def get(self, uid: str) -> ClaimRecord | None:
        """The record of a claim."""
        return self._all.get(uid)

    def save(self, record: ClaimRecord) -> ClaimRecord:
        """Keep a record, on disk before this returns; what is there already is not written again."""
        if self._all.get(record.uid) != record:
            write_whole(self._file(record.uid), msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
            self._all[record.uid] = record
        return record

    def remove(self, uid: str) -> None:
        """Forget a claim."""
        self._file(uid).unlink(missing_ok=True)
        sync_folder(self.folder)
        self._all.pop(uid, None)

    def _file(self, uid: str) -> Path:
        return self.folder / f"{uid}.json"


def _read(file: Path) -> ClaimRecord:
    try:
        return msgspec.json.decode(file.read_bytes(), type=ClaimRecord)
    except msgspec.DecodeError as error:
        raise InputError(
            f"this record of what is attached cannot be read: {error}",
            file=file,
            remedy="detach by hand what the claim of this name has on this node, then remove the file",
        ) from None
