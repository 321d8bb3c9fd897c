"""Records of attached devices on disk: one file per claim, written before and after each step."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from poolwise.atomic_write import sync_folder, write_whole
from poolwise.errors import InputError


class ClaimState(StrEnum):
    """State of a claim; see `connector` for the transitions."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    PREPARED = "prepared"
    DETACHING = "detaching"
    FAILED = "failed"


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a claim, with the values used to attach it, so that detaching does not depend on the current settings."""

    request: str  # identity in the allocation of the claim: request, pool, device and share
    pool: str
    device: str
    share: str = ""  # "" if the device is not shared
    attach: tuple[str, ...] = ()  # three commands with values filled in; empty for none
    verify: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    limit_s: float = 30.0  # timeout of each command (s)
    environment: tuple[str, ...] = ()  # NAME=VALUE
    mounts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # (path on the node, path in the container, options)
    device_nodes: tuple[tuple[str, str, str], ...] = ()  # (path on the node, path in the container, permissions)
    conditions: tuple[str, ...] = ()  # names of the conditions to report, empty if the pod does not wait for them
    failures: tuple[str, ...] = ()  # names of the conditions to report after a failed attachment

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Request, pool, device and share in the allocation."""
        return self.request, self.pool, self.device, self.share


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with devices on this node."""

    uid: str
    namespace: str
    name: str
    allocated: str  # time of the allocation, since a claim may get the same devices a second time
    devices: tuple[Attachment, ...]
    state: ClaimState = ClaimState.ATTACHING
    reason: str = ""  # reason of a failed attachment; "" otherwise
    failed: int = 0  # position of the failed device

    def same_allocation(self, other: ClaimRecord) -> bool:
        """Return whether both records describe the same allocation."""
        own, others = ([device.identity for device in record.devices] for record in (self, other))
        return (self.uid, self.allocated, own) == (other.uid, other.allocated, others)


class Records:
    """Records in a folder that this process has locked; raises InputError for an invalid record of another program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for draft in folder.glob(".*.json.*"):
            draft.unlink()
        self._all = {record.uid: record for record in map(_read, sorted(folder.glob("*.json")))}

    def __iter__(self) -> Iterator[ClaimRecord]:
        return iter(tuple(self._all.values()))

    def get(self, uid: str) -> ClaimRecord | None:
        """Return the record of a claim, None without one."""
        return self._all.get(uid)

    def save(self, record: ClaimRecord) -> ClaimRecord:
        """Save a record to disk, unless it is unchanged, and return it."""
        if self._all.get(record.uid) != record:
            write_whole(self._file(record.uid), msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
            self._all[record.uid] = record
        return record

    def remove(self, uid: str) -> None:
        """Delete the record of a claim."""
        self._file(uid).unlink(missing_ok=True)
        sync_folder(self.folder)
        self._all.pop(uid, None)

    def _file(self, uid: str) -> Path:
        return self.folder / f"{uid}.json"


def _read(file: Path) -> ClaimRecord:
    try:
        return msgspec.json.decode(file.read_bytes(), type=ClaimRecord)
    except msgspec.DecodeError as error:
        remedy = "detach the devices of this claim on this node manually, then remove the file"
        raise InputError(f"is not a valid record of attached devices: {error}", file=file, remedy=remedy) from None
