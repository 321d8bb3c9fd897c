"""A long-lived process that reads Parquet files one after another, because one process per file would be slow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from poolwise.traces import parquet

_LOOP = """
import sys
for line in sys.stdin:
    sys.argv[1:] = [line.rstrip()]
    try:
        exec(PROBE)
    except BaseException:
        pass
    print("read", flush=True)
"""


class ReaderProcess:
    """Replacement for `subprocess.run` in `poolwise.traces.parquet`; starts a new process after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, words: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        """Read the file in the last word."""
        if self._process is None:
            program = f"PROBE = {parquet._PROBE!r}\n{_LOOP}"
            pipe, devnull = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=devnull, text=True
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{words[-1]}\n")
        self._process.stdin.flush()
        if self._process.stdout.readline():
            return subprocess.CompletedProcess(words, 0, b"", b"")
        self._process.communicate()  # waits, and closes the pipes
        code = self._process.returncode
        self._process = None
        return subprocess.CompletedProcess(words, code, b"", b"")

    def end(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.communicate()


@contextmanager
def parquet_in_one_process() -> Iterator[None]:
    """Probe all Parquet files in one process."""
    reader = ReaderProcess()
    with patch.object(parquet, "subprocess", new=_FakeSubprocess(reader)):
        try:
            yield
        finally:
            reader.end()


class _FakeSubprocess:
    """Stand-in for the module `subprocess` with only `run`."""

    def __init__(self, run: ReaderProcess) -> None:
        self.run = run
