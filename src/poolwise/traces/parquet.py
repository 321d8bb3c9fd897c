"""Parquet files, read so that a damaged file cannot terminate the program.

A damaged page can make Polars allocate more memory than exists. The system then terminates the process, which no exception
handler can prevent. A separate process therefore reads a file first, which takes a third of a second. Files that Poolwise
writes contain a checksum; a file that matches its checksum is read directly.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import polars as pl

from poolwise.errors import InputError

MAGIC = b"PAR1"
_SEAL = "poolwise.sha256"
_OPEN = "0" * 64
_SEALED = re.compile(re.escape(_SEAL.encode()) + rb".{1,4}?([0-9a-f]{64})", re.DOTALL)
_REMEDY = "fetch or write the file again"
_PROBE = "import sys, polars; polars.read_parquet(sys.argv[1]); polars.read_parquet_metadata(sys.argv[1])"
_DAMAGED = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""Exceptions of Polars for a damaged file; its PanicException does not derive from Exception."""


def sealed_parquet(frame: pl.DataFrame, metadata: Mapping[str, str] | None = None) -> bytes:
    """Serialize a frame as Parquet whose metadata contains the SHA-256 of the file, computed with zeros in its place."""
    out = BytesIO()
    frame.write_parquet(out, metadata={**(metadata or {}), _SEAL: _OPEN})
    content = out.getvalue()
    at = content.rindex(_OPEN.encode())
    return content[:at] + hashlib.sha256(content).hexdigest().encode() + content[at + len(_OPEN) :]


def is_sealed(content: bytes) -> bool:
    """Return whether the bytes of a file match the checksum that `sealed_parquet` wrote."""
    for seal in _SEALED.finditer(content):
        digest = hashlib.sha256(content[: seal.start(1)] + _OPEN.encode() + content[seal.end(1) :]).hexdigest()
        if digest.encode() == seal[1]:
            return True
    return False


def read_parquet(path: Path) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """Read a file and its metadata; raise InputError for a damaged file, OSError for a missing one."""
    _check(path)
    try:
        with _suppress_stderr():
            return pl.read_parquet(path), pl.read_parquet_metadata(path)
    except _DAMAGED as error:
        problem = f"incomplete or damaged Parquet file: {' '.join(str(error).split())[:200]}"
        raise InputError(problem, file=path, remedy=_REMEDY) from error


def parquet_names(path: Path) -> Sequence[str]:
    """Return the column names of a Parquet file; none for a damaged one."""
    try:
        _check(path)
        with _suppress_stderr():
            return list(pl.read_parquet_schema(path))
    except (*_DAMAGED, InputError):
        return ()


def _check(path: Path) -> None:
    """Raise InputError for a file that would crash a process that reads it."""
    content = path.read_bytes()
    if problem := _format_problem(content) or _crash_problem(path, hashlib.sha256(content).hexdigest()):
        raise InputError(problem, file=path, remedy=_REMEDY)


def _format_problem(content: bytes) -> str:
    """Describe a visible defect of a file, "" if it looks complete."""
    footer = int.from_bytes(content[-8:-4], "little")
    whole = content.startswith(MAGIC) and content.endswith(MAGIC) and 12 + footer <= len(content)
    return "" if whole else "incomplete or damaged Parquet file: its beginning or end is missing"


@lru_cache(maxsize=256)
def _crash_problem(path: Path, digest: str) -> str:
    """Describe how reading the file with this digest terminates a process, "" if it does not."""
    if is_sealed(path.read_bytes()):
        return ""
    done = subprocess.run([sys.executable, "-P", "-c", _PROBE, str(path.resolve())], capture_output=True, check=False)
    if done.returncode >= 0:
        return ""  # the caller reads the file too, and handles any exception
    if -done.returncode == signal.SIGKILL:
        return "reading the file was killed (SIGKILL): it may need more memory than is available, or be damaged"
    stderr = done.stderr.decode(errors="replace").split("\n")[0].strip()
    detail = f" ({stderr})" if stderr else ""
    return f"damaged Parquet file: reading it ends in {signal.Signals(-done.returncode).name}{detail}"


@contextmanager
def _suppress_stderr() -> Iterator[None]:
    """Discard the panic messages that Polars writes to stderr, because the user gets an error instead."""
    with Path(os.devnull).open("w") as devnull:
        saved = os.dup(2)
        try:
            os.dup2(devnull.fileno(), 2)
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
