"""Commands of the operator's choice: lists of arguments, a time limit, and the end of what they print."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence

from poolwise.errors import PoolwiseError

TAIL = 400
"""Characters of a command's output that are kept."""
_KEPT = 8192
_LATE = 0.2
"""Seconds that output may come after the command's end: a child of it may hold the pipe for ever."""


class CommandError(PoolwiseError):
    """A command could not be started, failed, or took too long."""


async def run_command(arguments: Sequence[str], limit_s: float) -> str:
    """Run a command to its end and return the end of what it printed; raises CommandError.

    It reads nothing, gets PATH as its only variable, and is killed with its children when its time is over or this task is
    cancelled. What it leaves running after it succeeded stays.
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
            raise CommandError(f"{arguments[0]} cannot be started: {error.strerror}") from error
        finally:
            os.close(output.writer)
        try:
            await asyncio.wait_for(process.wait(), limit_s)
        except TimeoutError:
            raise CommandError(f"{arguments[0]} took more than {limit_s:g} s and was ended{output.shown()}") from None
        finally:
            if process.returncode != 0:
                _kill(process.pid)
                await process.wait()
        await output.rest()
        if process.returncode:
            how = f"ended by signal {-process.returncode}" if process.returncode < 0 else f"exit status {process.returncode}"
            raise CommandError(f"{arguments[0]}: {how}{output.shown()}")
        return output.tail()
    finally:
        output.close()


class _Output:
    """The end of what comes through a pipe."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._content, self._over = b"", asyncio.Event()
        asyncio.get_running_loop().add_reader(self.reader, self._read)

    def _read(self) -> None:
        block = os.read(self.reader, 65536)
        self._content = (self._content + block)[-_KEPT:]
        if not block:
            asyncio.get_running_loop().remove_reader(self.reader)
            self._over.set()

    async def rest(self) -> None:
        """Wait for what is still in the pipe."""
        try:
            await asyncio.wait_for(self._over.wait(), _LATE)
        except TimeoutError:
            return  # a child that goes on holds it

    def tail(self) -> str:
        """The end, as printable text."""
        text = self._content.decode(errors="replace").strip()[-TAIL:]
        return "".join(c if c.isprintable() else " " for c in text)

    def shown(self) -> str:
        """The end as a part of a message."""
        return f": {self.tail()}" if self.tail() else ""

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.reader)
        os.close(self.reader)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # all have ended
