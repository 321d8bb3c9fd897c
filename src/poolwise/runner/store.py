"""Store of records: atomic writes, one writer at a time.

It is an SQLite database. A record is stored either with all of its files or not at all, even if the process is killed. Access
by key stays fast with a million records, and any program can read the database.
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
    """Records by key, with their files, in `cells.sqlite` in a folder.

    Content and files carry hashes; a record is complete if all of them match. Several studies, plans and reproductions may use
    the same folder in turn, since each reads only its own keys. Other processes on the same computer may read while one writes.
    """

    folder: Path
    _writer: sqlite3.Connection | None = field(default=None, repr=False)
    _reader: sqlite3.Connection | None = field(default=None, repr=False)

    @property
    def file(self) -> Path:
        """Path of the database."""
        return self.folder / NAME

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Acquire the write lock; raises InputError if another process holds it, or if the folder cannot be written."""
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
        """Store a record with its files and run time; requires the write lock (`writing`)."""
        content = json.dumps(record.content, default=str).encode()
        files = json.dumps({ending: digest(data) for ending, data in record.files.items()}).encode()
        row = (key, content, files, _sum(key, content, files))
        connection = self._writer
        if connection is None:
            raise RuntimeError("the store is not open for writing: call this within `writing`")
        with self._translated_errors(), connection:  # commits, or rolls back on an error
            connection.execute("BEGIN")
            connection.execute("DELETE FROM files WHERE key = ?", (key,))
            connection.executemany("INSERT INTO files VALUES (?, ?, ?)", [(key, *file) for file in record.files.items()])
            connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", row)
            if seconds is not None:
                connection.execute("INSERT OR REPLACE INTO times VALUES (?, ?)", (label, seconds))

    def holds(self, key: str) -> bool:
        """Return whether a complete record with all its files is stored."""
        row = self._complete_record(key)
        return row is not None and all(
            self._file(key, ending, sha256) is not None for ending, sha256 in json.loads(row[1]).items()
        )

    def damaged(self, key: str) -> bool:
        """Return whether a record is stored but incomplete."""
        return self._row("SELECT 1 FROM records WHERE key = ?", key) is not None and not self.holds(key)

    def content(self, key: str) -> Json | None:
        """Return the content of a record, or None if it is missing or damaged."""
        row = self._complete_record(key)
        return None if row is None else dict(json.loads(row[0]))

    def read_file(self, key: str, ending: str) -> bytes | None:
        """Return a file of a record, or None if it is missing or damaged."""
        row = self._complete_record(key)
        sha256 = None if row is None else json.loads(row[1]).get(ending)
        return None if sha256 is None else self._file(key, ending, sha256)

    def seconds(self, label: str) -> float | None:
        """Return the last run time (s) of a task with this label, or None; it is stored apart from the results."""
        row = self._row("SELECT seconds FROM times WHERE label = ?", label)
        return None if row is None else float(row[0])

    def everything(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield (key, ending, bytes) for all contents ("json") and files, ordered by key and ending; excludes run times."""
        connection = self._reading()
        if connection is not None:
            with self._translated_errors():
                yield from connection.execute(_EVERYTHING)

    def _complete_record(self, key: str) -> tuple[bytes, bytes] | None:
        """Return the content of a record and the hashes of its files, or None if the record is missing or damaged."""
        row = self._row(_RECORD, key)
        return None if row is None or row[2] != _sum(key, row[0], row[1]) else (row[0], row[1])

    def _file(self, key: str, ending: str, sha256: str) -> bytes | None:
        row = self._row(_FILE, key, ending)
        return row[0] if row is not None and digest(row[0]) == sha256 else None

    def _row(self, query: str, *values: str) -> tuple[Any, ...] | None:
        """Return the row that a query finds, or None if there is none or its part of the database is damaged."""
        connection = self._reading()
        try:
            return None if connection is None else connection.execute(query, values).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):  # the writer was killed before its first write
                return None
            raise self._unusable(error) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # the second if the text of the first is damaged too
            return None

    def _reading(self) -> sqlite3.Connection | None:
        """Return the writer's connection or a read-only one, or None if there is no database."""
        if self._writer is not None:
            return self._writer
        if self._reader is None and self.file.is_file():
            with self._translated_errors():
                self._reader = _connected(f"{self.file.absolute().as_uri()}?mode=ro")
            weakref.finalize(self, self._reader.close)
        return self._reader

    def _open_for_writing(self) -> sqlite3.Connection:
        with self._translated_errors():
            connection = _connected(f"{self.file.absolute().as_uri()}?mode=rwc")
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")  # consistent after a power failure; may lose the last records
                connection.executescript(_TABLES)
            except BaseException:
                connection.close()
                raise
        return connection

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.DatabaseError | UnicodeDecodeError) -> InputError:
        code = getattr(error, "sqlite_errorcode", None)
        full = code == sqlite3.SQLITE_FULL or "disk I/O" in str(error)
        move = "check its permissions or move it elsewhere" if code == sqlite3.SQLITE_CANTOPEN else "move the file elsewhere"
        remedy = "free some space" if full else move
        problem = f"cannot read or write the results: {os.strerror(errno.ENOSPC) if full else error}"
        return InputError(problem, file=self.file, remedy=f"{remedy}, then run the command again")


def _connected(uri: str) -> sqlite3.Connection:
    """Connect with manual transactions; damaged text is decoded with replacement characters rather than raising an error."""
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=60)
    connection.text_factory = lambda content: content.decode(errors="replace")
    return connection


def _leave(connection: sqlite3.Connection) -> None:
    """Close the connection; the last one leaves a single file that is readable on a read-only file system."""
    connection.execute("PRAGMA busy_timeout=0")
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError:  # another process reads it: the database stays in WAL mode and is consistent
        pass
    finally:
        connection.close()


def _sum(key: str, content: bytes, files: bytes) -> str:
    total = hashlib.sha256(f"{key} {len(content)} ".encode())
    total.update(content)
    total.update(files)
    return total.hexdigest()
