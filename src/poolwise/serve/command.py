"""Commands that the server runs: each in its own process, with its progress."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_PROGRESS = re.compile(r"\[(\d+)/(\d+)\]")
KEPT = 200
"""Finished commands that are kept."""


@dataclass
class Command:
    """One command, running or finished.

    Attributes
    ----------
    arguments : arguments of `poolwise`
    done, total : completed runs and all runs; 0 of 0 while unknown
    code : exit code, None while the command runs
    messages : lines on stderr, without progress
    answer : JSON object on stdout, None until the command has succeeded
    """

    arguments: tuple[str, ...]
    done: int = 0
    total: int = 0
    code: int | None = None
    messages: list[str] = field(default_factory=list)
    answer: Any = None

    async def run(self) -> None:
        """Run the command to its end; a failing command does not raise."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "poolwise", *self.arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            limit=2**26,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        try:
            out, _ = await asyncio.gather(process.stdout.read(), self._listen(process.stderr))
            self.answer = json.loads(out) if out.strip() else None
            self.code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
            self.code = process.returncode

    async def _listen(self, messages: asyncio.StreamReader) -> None:
        async for raw in messages:
            line = raw.decode(errors="replace").rstrip()
            found = _PROGRESS.match(line)
            if found:
                self.done, self.total = int(found[1]), int(found[2])
            elif line:
                self.messages.append(line)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for the browser."""
        messages = self.messages[-20:]
        return {"done": self.done, "total": self.total, "code": self.code, "messages": messages, "answer": self.answer}


class Commands:
    """All commands of a server; at most two run at a time, the others queue."""

    def __init__(self) -> None:
        self._known: dict[int, Command] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(2)
        self._next = 1

    def start(self, arguments: Sequence[str]) -> int:
        """Start a command and return its number; an identical command that still runs is shared."""
        for number, known in self._known.items():
            if known.code is None and known.arguments == tuple(arguments):
                return number
        command, number = Command(tuple(arguments)), self._next
        self._next += 1
        self._known[number] = command
        finished = [k for k, known in self._known.items() if known.code is not None]
        for k in finished[: max(0, len(finished) - KEPT)]:
            del self._known[k]
        task = asyncio.get_running_loop().create_task(self._run(command))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return number

    def find(self, number: int) -> Command | None:
        """Return the command with a number, or None."""
        return self._known.get(number)

    async def close(self) -> None:
        """Stop running commands; completed runs of a study are kept, and the same command resumes."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, command: Command) -> None:
        async with self._turn:
            await command.run()
