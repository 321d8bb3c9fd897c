"""Commands configured by the operator: argument lists with a timeout. Only the end of their output is kept."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence

from poolwise.errors import PoolwiseError

TAIL = 400  # characters kept from the end of a command's output
_BUFFER = 8192
_DRAIN_S = 0.2  # time to wait for output after the command's exit (s), since its children may keep the pipe open forever


class CommandError(PoolwiseError):
    """A command could not be started, failed, or timed out."""


async def run_command(arguments: Sequence[str], limit_s: float) -> str:
    """Run a command and return the end of its output; raises CommandError.

    The command has no standard input, and PATH is its only variable. It is killed with its children on timeout or if this task
    is cancelled. Processes that it leaves behind after success are kept.
    """
    output = _Output()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.writer,
                stderr=output.writer,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError as error:
            raise CommandError(f"cannot start {arguments[0]}: {error.strerror}") from error
        finally:
            os.close(output.writer)
        try:
            await asyncio.wait_for(process.wait(), limit_s)
        except TimeoutError:
            raise CommandError(f"{arguments[0]} timed out after {limit_s:g} s and was killed{output.suffix()}") from None
        finally:
            if process.returncode != 0:
                _kill(process.pid)
                await process.wait()
        await output.drain()
        if process.returncode:
            how = f"killed by signal {-process.returncode}" if process.returncode < 0 else f"exit status {process.returncode}"
            raise CommandError(f"{arguments[0]}: {how}{output.suffix()}")
        return output.tail()
    finally:
        output.close()


class _Output:
    """The end of the data read from a pipe."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._content, self._closed = b"", asyncio.Event()
        asyncio.get_running_loop().add_reader(self.reader, self._read)

    def _read(self) -> None:
        block = os.read(self.reader, 65536)
        self._content = (self._content + block)[-_BUFFER:]
        if not block:
            asyncio.get_running_loop().remove_reader(self.reader)
            self._closed.set()

    async def drain(self) -> None:
        """Wait for the remaining output."""
        try:
            await asyncio.wait_for(self._closed.wait(), _DRAIN_S)
        except TimeoutError:
            return  # a child of the command keeps the pipe open

    def tail(self) -> str:
        """Return the end of the output as printable text."""
        text = self._content.decode(errors="replace").strip()[-TAIL:]
        return "".join(c if c.isprintable() else " " for c in text)

    def suffix(self) -> str:
        """Return the end of the output, formatted to follow an error message."""
        return f": {self.tail()}" if self.tail() else ""

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.reader)
        os.close(self.reader)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # all processes have exited
