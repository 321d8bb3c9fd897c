"""Commands of Poolwise that the server runs for its readers: each in a process of its own, watched while it runs."""

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
"""Commands whose end is remembered."""


@dataclass
class Command:
    """One command, running or over.

    Attributes
    ----------
    arguments : of `poolwise`
    done, total : runs that are done, of how many; 0 of 0 while unknown
    code : exit code, None while it runs
    said : what it wrote as messages, the last line last
    answer : what it printed as JSON, None before its end and after a failure
    """

    arguments: tuple[str, ...]
    done: int = 0
    total: int = 0
    code: int | None = None
    said: list[str] = field(default_factory=list)
    answer: Any = None

    async def run(self) -> None:
        """Run to the end; never raises for a command that fails."""
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
                self.said.append(line)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the browser."""
        return {"done": self.done, "total": self.total, "code": self.code, "said": self.said[-20:], "answer": self.answer}


class Commands:
    """All commands of a server; two of them run at once, the others wait for their turn."""

    def __init__(self) -> None:
        self._known: dict[int, Command] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(2)
        self._next = 1

    def start(self, arguments: Sequence[str]) -> int:
        """Begin a command; returns its number. One that asks the same and still runs is joined."""
        for number, known in self._known.items():
            if known.code is None and known.arguments == tuple(arguments):
                return number
        command, number = Command(tuple(arguments)), self._next
        self._next += 1
        self._known[number] = command
        over = [k for k, known in self._known.items() if known.code is not None]
        for k in over[: max(0, len(over) - KEPT)]:
            del self._known[k]
        task = asyncio.get_running_loop().create_task(self._run(command))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return number

    def find(self, number: int) -> Command | None:
        """Look a command up."""
        return self._known.get(number)

    async def close(self) -> None:
        """Stop what still runs; what it had finished is kept, and the same command goes on from there."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, command: Command) -> None:
        async with self._turn:
            await command.run()
