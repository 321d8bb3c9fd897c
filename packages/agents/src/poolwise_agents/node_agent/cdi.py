"""CDI files, which tell container runtimes which edits to make to the containers of a claim.

Source: Container Device Interface, specification 0.6.0.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from poolwise.atomic_write import sync_folder, write_whole
from poolwise.errors import InputError
from poolwise_agents.node_agent.records import Attachment, ClaimRecord

VERSION = "0.6.0"


class CdiFolder:
    """CDI files of a driver, one per prepared claim that adds anything to containers."""

    def __init__(self, folder: Path, driver: str) -> None:
        self.folder, self.driver = folder, driver
        folder.mkdir(parents=True, exist_ok=True)
        for draft in folder.glob(f".{self._prefix}*.json.*"):
            draft.unlink()

    def write(self, record: ClaimRecord) -> None:
        """Write the file of a claim unless it is up to date; raises InputError for an invalid device node."""
        content = self.content(record)
        file = self._file(record.uid)
        if content is not None and not (file.is_file() and file.read_bytes() == content):
            write_whole(file, content)

    def content(self, record: ClaimRecord) -> bytes | None:
        """Return the content of a claim's file; None if the claim adds nothing to containers."""
        edits = [(name, _edits(device)) for name, device in zip(self._names(record), record.devices, strict=True)]
        devices = [{"name": name, "containerEdits": edit} for name, edit in edits if edit]
        if not devices:
            return None
        return json.dumps({"cdiVersion": VERSION, "kind": self._kind, "devices": devices}, indent=1).encode() + b"\n"

    def ids(self, record: ClaimRecord) -> list[list[str]]:
        """Return the CDI names of each device of a claim."""
        named = zip(self._names(record), record.devices, strict=True)
        return [[f"{self._kind}={name}"] if _has_edits(device) else [] for name, device in named]

    def remove(self, uid: str) -> None:
        """Remove the file of a claim if it exists."""
        self._file(uid).unlink(missing_ok=True)
        sync_folder(self.folder)

    def uids(self) -> set[str]:
        """Return the uids of claims with a file."""
        return {file.stem.removeprefix(self._prefix) for file in self.folder.glob(f"{self._prefix}*.json")}

    @property
    def _kind(self) -> str:
        return f"{self.driver}/claim"

    @property
    def _prefix(self) -> str:
        return f"{self.driver}-claim-"

    def _names(self, record: ClaimRecord) -> list[str]:
        return [f"{record.uid}-{k}" for k in range(len(record.devices))]

    def _file(self, uid: str) -> Path:
        return self.folder / f"{self._prefix}{uid}.json"


def _has_edits(device: Attachment) -> bool:
    return bool(device.environment or device.mounts or device.device_nodes)


def _edits(device: Attachment) -> dict[str, Any]:
    edits: dict[str, Any] = {}
    if device.environment:
        edits["env"] = list(device.environment)
    if device.mounts:
        edits["mounts"] = [{"hostPath": host, "containerPath": at, "options": list(o)} for host, at, o in device.mounts]
    if device.device_nodes:
        edits["deviceNodes"] = [_node(*node) for node in device.device_nodes]
    return edits


def _node(host: str, container: str, permissions: str) -> dict[str, str]:
    """Return a device node with its symbolic links resolved, since runtimes do not follow them."""
    real = os.path.realpath(host)
    if not real.startswith("/dev/") or not Path(real).exists():
        remedy = "check that 'attach' creates it and that 'verify' waits for it"
        raise InputError("is not an existing file below /dev on this node", file=host, remedy=remedy)
    return {"path": container or host, "hostPath": real, "permissions": permissions}
