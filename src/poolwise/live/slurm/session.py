"""A `scontrol` that stays and reads commands: six times as many updates a second as one process for each.

One of them waits for the controller most of the time, so that four side by side carry out nearly twice as many (on two cores,
a thousand priorities: 450 a second by one, 650 by two, 820 by four, 720 by eight).
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from poolwise.errors import InputError
from poolwise.live.slurm.client_calls import LIMIT_S, SlurmTimeoutError, environment

TOGETHER = 32
"""Commands written before their replies are read; what both pipes hold of them fits."""
SIDE_BY_SIDE = 4
"""Processes that share commands out which have nothing to do with each other."""
_PROMPT = "scontrol: "


class ScontrolSession:
    """A `scontrol` process, started when it is first needed and again after it was lost.

    A word that is no command ends each command's reply: scontrol answers it at once, by itself. It echoes commands, of long
    ones a part between < and >. What a reply says is a hint; whoever needs to know reads Slurm's state again.
    """

    def __init__(self, limit: float = LIMIT_S) -> None:
        self.limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = 0

    def send(self, commands: Sequence[str]) -> list[str]:
        """Carry out commands in order; returns what scontrol says to each, "" where it says nothing, as after success.

        Raises SlurmTimeoutError where an answer takes longer than the limit; how far the commands came is unknown then.
        """
        replies: list[str] = []
        for low in range(0, len(commands), TOGETHER):
            replies += self._exchange(commands[low : low + TOGETHER])
        return replies

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _exchange(self, commands: Sequence[str]) -> list[str]:
        marks = []
        for command in commands:
            if "\n" in command or "\r" in command:
                raise ValueError("a command is one line")
            self._sent += 1
            marks.append(f"zzpoolwise{self._sent}")
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write("".join(f"{c}\n{m}\n" for c, m in zip(commands, marks, strict=True)).encode())
            text = self._until(f"invalid keyword: {marks[-1]}\n")
        except (SlurmTimeoutError, BrokenPipeError) as error:
            self.close()
            raise SlurmTimeoutError(f"scontrol: {error}") from None
        replies = []
        for command, mark in zip(commands, marks, strict=True):
            reply, _, text = text.partition(f"invalid keyword: {mark}\n")
            said = (line.removeprefix(_PROMPT).strip() for line in reply.splitlines())
            replies.append("; ".join(line for line in said if line.strip("<> ") not in f"{command}\n{mark}"))
        return replies

    def _until(self, end: str) -> str:
        """Read up to a line."""
        assert self._process is not None and self._process.stdout is not None
        until, found, stop = time.monotonic() + self.limit, b"", end.encode()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while stop not in found:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise SlurmTimeoutError(f"no answer within {self.limit:g} s")
                part = os.read(self._process.stdout.fileno(), 65536)
                if not part:
                    raise SlurmTimeoutError(f"ended: {found.decode(errors='replace').strip()[-200:]}")
                found += part
        return found.decode(errors="replace")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            pipe = subprocess.PIPE
            try:
                self._process = subprocess.Popen(
                    ["scontrol"], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, env=environment(), bufsize=0
                )
            except FileNotFoundError:
                raise InputError("'scontrol' is not installed here", remedy="install Slurm's clients") from None
        return self._process


class ScontrolPool:
    """Several sessions that share commands out: these must be for different jobs, since nothing orders them."""

    def __init__(self, limit: float = LIMIT_S) -> None:
        self._sessions = [ScontrolSession(limit) for _ in range(SIDE_BY_SIDE)]

    def send(self, commands: Sequence[str]) -> list[str]:
        """Carry out commands in any order; returns what scontrol says to each, in the order of the commands.

        Raises SlurmTimeoutError, once all sessions have ended, where one of them got no answer in time.
        """
        replies = [""] * len(commands)

        def share(first: int) -> None:
            replies[first::SIDE_BY_SIDE] = self._sessions[first].send(commands[first::SIDE_BY_SIDE])

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for done in [pool.submit(share, first) for first in range(min(SIDE_BY_SIDE, len(commands)))]:
                done.result()
        return replies

    def close(self) -> None:
        """End the processes."""
        for session in self._sessions:
            session.close()
