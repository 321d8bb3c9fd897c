"""Parquet files, read so that no damaged one ends the program.

A damaged page can make Polars ask for more memory than there is, which ends the process: nothing in it can catch that. So a
file is first read by a process of its own, which takes a third of a second. What Poolwise writes is sealed: a file whose
bytes are those that were written is read at once.
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
_TRY = "import sys, polars; polars.read_parquet(sys.argv[1]); polars.read_parquet_metadata(sys.argv[1])"
_DAMAGED = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What Polars raises for a damaged file; a panic is no Exception in Python."""


def sealed_parquet(frame: pl.DataFrame, metadata: Mapping[str, str] | None = None) -> bytes:
    """Write a frame as Parquet with the SHA-256 of the whole file, zeros in its place, in the metadata."""
    out = BytesIO()
    frame.write_parquet(out, metadata={**(metadata or {}), _SEAL: _OPEN})
    content = out.getvalue()
    at = content.rindex(_OPEN.encode())
    return content[:at] + hashlib.sha256(content).hexdigest().encode() + content[at + len(_OPEN) :]


def is_sealed(content: bytes) -> bool:
    """Whether a file's bytes are those that `sealed_parquet` wrote."""
    for found in _SEALED.finditer(content):
        digest = hashlib.sha256(content[: found.start(1)] + _OPEN.encode() + content[found.end(1) :]).hexdigest()
        if digest.encode() == found[1]:
            return True
    return False


def read_parquet(path: Path) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """Read a file and its metadata; raises InputError for a damaged one, OSError where there is none."""
    _check(path)
    try:
        with _hushed():
            return pl.read_parquet(path), pl.read_parquet_metadata(path)
    except _DAMAGED as error:
        problem = f"not a whole Parquet file: {' '.join(str(error).split())[:200]}"
        raise InputError(problem, file=path, remedy=_REMEDY) from error


def parquet_names(path: Path) -> Sequence[str]:
    """Columns of a Parquet file; none of a damaged one."""
    try:
        _check(path)
        with _hushed():
            return list(pl.read_parquet_schema(path))
    except (*_DAMAGED, InputError):
        return ()


def _check(path: Path) -> None:
    """Raise InputError for a file that would end the process that reads it."""
    content = path.read_bytes()
    if problem := _problem(content) or _dies(path, hashlib.sha256(content).hexdigest()):
        raise InputError(problem, file=path, remedy=_REMEDY)


def _problem(content: bytes) -> str:
    """Say what a file visibly lacks, "" where it looks whole."""
    footer = int.from_bytes(content[-8:-4], "little")
    whole = content.startswith(MAGIC) and content.endswith(MAGIC) and 12 + footer <= len(content)
    return "" if whole else "not a whole Parquet file: it does not end as one"


@lru_cache(maxsize=256)
def _dies(path: Path, digest: str) -> str:
    """Say how a process that reads a file with this digest dies of it, "" where it does not."""
    if is_sealed(path.read_bytes()):
        return ""
    done = subprocess.run([sys.executable, "-P", "-c", _TRY, str(path.resolve())], capture_output=True, check=False)
    if done.returncode >= 0:
        return ""  # what it may have raised is raised here too
    if -done.returncode == signal.SIGKILL:
        return "reading it was ended (SIGKILL): it may take more memory than there is, or be damaged"
    said = done.stderr.decode(errors="replace").split("\n")[0].strip()
    return f"a damaged Parquet file: reading it ends in {signal.Signals(-done.returncode).name}{f' ({said})' if said else ''}"


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep what Polars writes to stderr of a panic from the user, who gets an error instead."""
    with Path(os.devnull).open("w") as nowhere:
        kept = os.dup(2)
        try:
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
