"""The file that trials are kept in: whole records, one writer at a time, nothing half-written.

It is an SQLite database: a record is there with all of its files or not at all, whenever a process is killed; a million of them
are found by key as fast as one; and any program can read it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.hashing import Json, digest
from poolwise.runner.task_type import Record

NAME = "cells.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, content BLOB NOT NULL, files BLOB NOT NULL, sha256 TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files
    (key TEXT NOT NULL, ending TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (key, ending));
CREATE TABLE IF NOT EXISTS times (label TEXT PRIMARY KEY, seconds REAL NOT NULL);
"""
_RECORD = "SELECT CAST(content AS BLOB), CAST(files AS BLOB), sha256 FROM records WHERE key = ?"
_FILE = "SELECT CAST(content AS BLOB) FROM files WHERE key = ? AND ending = ?"
_EVERYTHING = "SELECT key, 'json', content FROM records UNION ALL SELECT key, ending, content FROM files ORDER BY 1, 2"


@dataclass(eq=False)
class Store:
    """Records under their keys, with files beside them, in `cells.sqlite` under a folder.

    Content and files carry their hashes: a record is complete if all match. Any number of studies, plans and reproductions may
    share a folder, one after the other; each reads only its own keys. Others may read while one writes, on the same computer.
    """

    folder: Path
    _writer: sqlite3.Connection | None = field(default=None, repr=False)
    _reader: sqlite3.Connection | None = field(default=None, repr=False)

    @property
    def file(self) -> Path:
        """Where the records stand."""
        return self.folder / NAME

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; raises InputError if another process is, or if the folder cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
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
            self._writer = self._open_for_writing()
            try:
                yield
            finally:
                _leave(self._writer)
                self._writer = None
        finally:
            os.close(lock)

    def write(self, key: str, record: Record, label: str = "", seconds: float | None = None) -> None:
        """Keep a record with its files, and how long it took; called by the writer (`writing`)."""
        content = json.dumps(record.content, default=str).encode()
        files = json.dumps({ending: digest(kept) for ending, kept in record.files.items()}).encode()
        row = (key, content, files, _sum(key, content, files))
        connection = self._writer
        if connection is None:
            raise RuntimeError("only the writer writes: call this within `writing`")
        with self._saying(), connection:  # to be committed, or rolled back
            connection.execute("BEGIN")
            connection.execute("DELETE FROM files WHERE key = ?", (key,))
            connection.executemany("INSERT INTO files VALUES (?, ?, ?)", [(key, *file) for file in record.files.items()])
            connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", row)
            if seconds is not None:
                connection.execute("INSERT OR REPLACE INTO times VALUES (?, ?)", (label, seconds))

    def holds(self, key: str) -> bool:
        """Whether a record is there and complete, with all its files."""
        row = self._whole(key)
        return row is not None and all(
            self._file(key, ending, sha256) is not None for ending, sha256 in json.loads(row[1]).items()
        )

    def damaged(self, key: str) -> bool:
        """Whether a record is there, but not complete."""
        return self._row("SELECT 1 FROM records WHERE key = ?", key) is not None and not self.holds(key)

    def content(self, key: str) -> Json | None:
        """Content of a record; None if it is not there, or not as it was written."""
        row = self._whole(key)
        return None if row is None else dict(json.loads(row[0]))

    def kept_file(self, key: str, ending: str) -> bytes | None:
        """A file of a record; None if it is not there, or not as it was written."""
        row = self._whole(key)
        sha256 = None if row is None else json.loads(row[1]).get(ending)
        return None if sha256 is None else self._file(key, ending, sha256)

    def seconds(self, label: str) -> float | None:
        """Seconds that a trial took when one of this label was last run; kept apart from results, which do not depend on it."""
        row = self._row("SELECT seconds FROM times WHERE label = ?", label)
        return None if row is None else float(row[0])

    def everything(self) -> Iterator[tuple[str, str, bytes]]:
        """Everything but times as (key, ending, bytes), "json" being the content; ordered by key and ending."""
        connection = self._reading()
        if connection is not None:
            with self._saying():
                yield from connection.execute(_EVERYTHING)

    def _whole(self, key: str) -> tuple[bytes, bytes] | None:
        """Content of a record, and the hashes of its files."""
        row = self._row(_RECORD, key)
        return None if row is None or row[2] != _sum(key, row[0], row[1]) else (row[0], row[1])

    def _file(self, key: str, ending: str, sha256: str) -> bytes | None:
        row = self._row(_FILE, key, ending)
        return row[0] if row is not None and digest(row[0]) == sha256 else None

    def _row(self, query: str, *values: str) -> tuple[Any, ...] | None:
        """The row that a query finds; None where there is none, and where the part of the file that it stands in is damaged."""
        connection = self._reading()
        try:
            return None if connection is None else connection.execute(query, values).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):  # the writer was killed before it had written anything
                return None
            raise self._unusable(error) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # the second where the words of the first are damaged too
            return None

    def _reading(self) -> sqlite3.Connection | None:
        """The writer's connection, or one that reads; None where there is no file."""
        if self._writer is not None:
            return self._writer
        if self._reader is None and self.file.is_file():
            self._reader = _connected(f"{self.file.absolute().as_uri()}?mode=ro")
            weakref.finalize(self, self._reader.close)
        return self._reader

    def _open_for_writing(self) -> sqlite3.Connection:
        connection = _connected(f"{self.file.absolute().as_uri()}?mode=rwc")
        with self._saying():
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")  # whole after a power cut, less the last records perhaps
            connection.executescript(_TABLES)
        return connection

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.DatabaseError | UnicodeDecodeError) -> InputError:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL or "disk I/O" in str(error)
        remedy = "free some space" if full else "move the file elsewhere"
        problem = f"the results cannot be kept: {os.strerror(errno.ENOSPC) if full else error}"
        return InputError(problem, file=self.file, remedy=f"{remedy}, then give the same command again")


def _connected(uri: str) -> sqlite3.Connection:
    """Connect; transactions are begun by hand. A text that is damaged is another one, no error."""
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=60)
    connection.text_factory = lambda content: content.decode(errors="replace")
    return connection


def _leave(connection: sqlite3.Connection) -> None:
    """Close, leaving one file that can be read where nothing can be written; while others read, the last of them does that."""
    connection.execute("PRAGMA busy_timeout=0")
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError:  # it is being read: the file stays as it is, and is whole
        pass
    finally:
        connection.close()


def _sum(key: str, content: bytes, files: bytes) -> str:
    total = hashlib.sha256(f"{key} {len(content)} ".encode())
    total.update(content)
    total.update(files)
    return total.hexdigest()
