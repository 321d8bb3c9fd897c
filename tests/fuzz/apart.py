"""Reads Parquet files one after the other in a process that goes on until one ends it: a process a file would be slow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from poolwise.traces import parquet

_READS = """
import sys
for line in sys.stdin:
    sys.argv[1:] = [line.rstrip()]
    try:
        exec(TRY)
    except BaseException:
        pass
    print("read", flush=True)
"""


class ReaderApart:
    """Stands for `subprocess.run` where `poolwise.traces.parquet` tries a file."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, words: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        """Have the last word read."""
        if self._process is None:
            program = f"TRY = {parquet._TRY!r}\n{_READS}"
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=nowhere, text=True
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{words[-1]}\n")
        self._process.stdin.flush()
        if self._process.stdout.readline():
            return subprocess.CompletedProcess(words, 0, b"", b"")
        code = self._process.wait()
        self._process = None
        return subprocess.CompletedProcess(words, code, b"", b"")

    def end(self) -> None:
        """Let the process go."""
        if self._process is not None:
            self._process.communicate()


@contextmanager
def parquet_apart() -> Iterator[None]:
    """Try all Parquet files in such a process."""
    reader = ReaderApart()
    with patch.object(parquet, "subprocess", new=_Instead(reader)):
        try:
            yield
        finally:
            reader.end()


class _Instead:
    """Has `run`, as the module `subprocess` has."""

    def __init__(self, run: ReaderApart) -> None:
        self.run = run
