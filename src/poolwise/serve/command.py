"""Commands that the server runs in its worker processes, with their progress."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PROGRESS = re.compile(r"\[(\d+)/(\d+)\]")
END = "\0"
"""First character of the line with which a worker ends a command."""
ASK = "ask"
"""First argument of a question, which consists of a study file and settings; the study runs unless its results are kept."""
KEPT = 200
"""Maximum number of finished commands to keep."""
WORKERS = 2
"""Maximum number of commands that run at a time; further commands queue."""


@dataclass
class Command:
    """One command, running or finished.

    Attributes
    ----------
    arguments : arguments of the worker
    done, total : completed runs and all runs; 0 of 0 while unknown
    code : exit code, None while the command runs
    messages : lines on stderr, without progress
    answer : JSON output, None until the command has succeeded
    last : whether the worker ends after this command
    """

    arguments: tuple[str, ...]
    done: int = 0
    total: int = 0
    code: int | None = None
    messages: list[str] = field(default_factory=list)
    answer: Any = None
    last: bool = False

    def listen(self, line: str) -> None:
        """Handle one line from the worker: progress, a message, or the end of the command."""
        if line.startswith(END):
            ended = json.loads(line[1:])
            self.answer, self.code, self.last = ended["answer"], ended["code"], ended["last"]
        elif match := _PROGRESS.match(line):
            self.done, self.total = int(match[1]), int(match[2])
        elif line:
            self.messages.append(line)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for the browser."""
        messages = self.messages[-20:]
        return {"done": self.done, "total": self.total, "code": self.code, "messages": messages, "answer": self.answer}


class Commands:
    """All commands of a server, and the worker processes that run them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[int, Command] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(WORKERS)
        self._workers: list[asyncio.subprocess.Process] = []
        self._idle: list[asyncio.subprocess.Process] = []
        self._next = 1

    def start(self, arguments: Sequence[str]) -> int:
        """Start a command and return its number; if an identical command is still running, return that one's number."""
        for number, started in self._known.items():
            if started.code is None and started.arguments == tuple(arguments):
                return number
        command, number = Command(tuple(arguments)), self._next
        self._next += 1
        self._known[number] = command
        finished = [k for k, started in self._known.items() if started.code is not None]
        for k in finished[: max(0, len(finished) - KEPT)]:
            del self._known[k]
        task = asyncio.get_running_loop().create_task(self._run(command))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return number

    def find(self, number: int) -> Command | None:
        """Return the command with a number, or None."""
        return self._known.get(number)

    async def open(self) -> None:
        """Start the workers, which load the modules and kernels that the studies of the folder need."""
        self._idle.extend([await self._worker() for _ in range(WORKERS)])

    async def close(self) -> None:
        """Stop running commands; completed runs of a study are kept, and the same command resumes."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for worker in self._workers:
            if worker.returncode is None:
                worker.terminate()
                await worker.wait()
            worker._transport.close()  # type: ignore[attr-defined]  # its child processes may keep stderr open

    async def _run(self, command: Command) -> None:
        async with self._turn:
            self._idle = [worker for worker in self._idle if worker.returncode is None]
            worker = self._idle.pop() if self._idle else await self._worker()
            assert worker.stdin is not None and worker.stderr is not None
            try:
                worker.stdin.write(json.dumps(command.arguments).encode() + b"\n")
                while command.code is None and (raw := await worker.stderr.readline()):
                    command.listen(raw.decode(errors="replace").rstrip())
                if command.code is not None and not command.last:
                    self._idle.append(worker)
                elif command.last:
                    self._idle.append(await self._worker())  # loads before the next command
            finally:
                command.code = 1 if command.code is None else command.code  # the worker died, or the server stops

    async def _worker(self) -> asyncio.subprocess.Process:
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "poolwise.cli.serve_worker", str(self._root),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, limit=2**26,
        )  # fmt: skip
        self._workers.append(worker)
        return worker
