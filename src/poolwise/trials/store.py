"""The folder that trials are kept in: whole records, one writer at a time, nothing half-written."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolwise.atomic import sync_folder, write_whole
from poolwise.errors import InputError
from poolwise.identity import Json, canonical, digest, pretty
from poolwise.trials.bench import Record


@dataclass(frozen=True)
class Store:
    """Records `cells/KEY.json`, with files `cells/KEY.ENDING` beside them, under a folder.

    The JSON is written last and carries the hashes of its own content and of the files: a record is complete if all match.
    Any number of studies, plans and reproductions may share a folder, one after the other; each reads only its own keys.
    """

    folder: Path

    @property
    def cells(self) -> Path:
        """Where the records stand."""
        return self.folder / "cells"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; raises InputError if another process is, or if the folder cannot be written."""
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            problem = f"cannot write results: {error.strerror or error}"
            raise InputError(problem, file=self.folder, remedy="choose another folder (--out)") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                remedy = "wait for it, or choose another folder (--out)"
                raise InputError("another run is writing to this folder", file=self.folder, remedy=remedy) from error
            self._clean()
            yield
        finally:
            os.close(lock)

    def _clean(self) -> None:
        """Remove drafts of writers that were killed."""
        for folder in (self.folder, self.cells):
            for draft in folder.glob(".*.*.*"):
                draft.unlink(missing_ok=True)
            sync_folder(folder)

    def write(self, key: str, record: Record) -> None:
        """Keep the files of a record, then its content."""
        for ending, content in record.files.items():
            write_whole(self.path(key, ending), content)
        files = {ending: digest(content) for ending, content in record.files.items()}
        content = json.loads(json.dumps(record.content, default=str))  # as it will be read again, in its own order
        whole = {"key": key, "files": files, "sha256": _sum(content), "result": content}
        write_whole(self.path(key), pretty(whole, sort=False))

    def path(self, key: str, ending: str = "json") -> Path:
        """Path of a record, or of a file beside it."""
        return self.cells / f"{key}.{ending}"

    def content(self, key: str) -> Json | None:
        """Content of a record that is complete, with all its files; else None."""
        try:
            kept: Any = json.loads(self.path(key).read_bytes())
            files: Any = {ending: digest(self.path(key, ending).read_bytes()) for ending in kept["files"]}
            whole = kept["key"] == key and kept["sha256"] == _sum(kept["result"]) and files == kept["files"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return dict(kept["result"]) if whole else None

    def damaged(self, key: str) -> bool:
        """Whether a record exists in part, but is not complete."""
        return any(self.cells.glob(f"{key}.*")) and self.content(key) is None

    def note_time(self, key: str, label: str, seconds: float) -> None:
        """Note how long a trial took; kept apart from results, which must not depend on it."""
        line = json.dumps({"key": key, "cell": label, "seconds": round(seconds, 3)})
        path = self.folder / "timings.jsonl"
        try:
            with path.open("a", encoding="utf-8") as timings:
                timings.write(line + "\n")
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise InputError(problem, file=path, remedy="free some space, then give the same command again") from error

    def times(self) -> dict[str, float]:
        """Seconds that trials took when they were last run, by label; empty if unknown."""
        found: dict[str, float] = {}
        try:
            lines = (self.folder / "timings.jsonl").read_text(encoding="utf-8").splitlines()
        except (FileNotFoundError, UnicodeDecodeError):
            return found
        for line in lines:
            try:
                entry: Any = json.loads(line)
                found[str(entry["cell"])] = float(entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that a killed writer left half-written says nothing about results
        return found


def _sum(content: Json) -> str:
    return digest(canonical(content))
