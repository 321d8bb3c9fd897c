"""A connection to a cluster in a process of its own, for engines whose client ends its process when the cluster is gone.

The two processes share a pair of sockets. A question is a method of `Connection` with its arguments, an answer what it returned
or raised. Tickets and handles stay where they were made; a number stands for each here.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from multiprocessing import connection as pipes
from pathlib import Path
from typing import Any

from poolwise.runner.execution import FinishedTask
from poolwise.runner.executors.cluster import Connection, ConnectionLost, Ticket
from poolwise.runner.executors.remote_task import RemoteTask

ANSWER_S = 60.0
"""How long the other process may take for an answer."""


class ClientProcessConnection(Connection):
    """A connection in another process, whose death is a lost connection.

    Parameters
    ----------
    module
        What the other process runs: it calls `serve`.
    address
        Of the cluster.
    """

    def __init__(self, module: str, address: str) -> None:
        """Connect; raises ConnectionLost where the other process dies of that or takes too long, and what else it raises."""
        here, there = socket.socketpair()
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # what an engine says there is no news: see ConnectionLost
                pass_fds=[there.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # an interrupt is for this process, which closes the other one
            )
        self._pipe = pipes.Connection(here.detach())
        try:
            self._ask("connect", address)
        except BaseException:
            self.close()
            raise

    def processes(self) -> int:
        """See `Connection`."""
        return int(self._ask("processes"))

    def put(self, sha256: str, content: bytes) -> Any:
        """See `Connection`."""
        return self._ask("put", sha256, content)

    def send(self, work: Callable[..., FinishedTask | Exception], errand: RemoteTask, pieces: Collection[Any]) -> Ticket:
        """See `Connection`."""
        ticket: Ticket = self._ask("send", work, errand, pieces)
        return ticket

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, FinishedTask | Exception]]:
        """See `Connection`."""
        yield from self._ask("finished", wait_s)

    def give_up(self, tickets: Collection[Ticket]) -> None:
        """See `Connection`."""
        if not self._pipe.closed:
            try:
                self._ask("give_up", tickets)
            except ConnectionLost:
                return

    def close(self) -> None:
        """See `Connection`."""
        if not self._pipe.closed:
            self._pipe.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def _ask(self, method: str, *values: Any) -> Any:
        """Ask the other process, which is ended where its answer is not awaited: the next one would be mistaken for it."""
        try:
            self._pipe.send((method, values))
            if not self._pipe.poll(ANSWER_S):
                raise TimeoutError
            outcome, error = pickle.loads(self._pipe.recv_bytes())
        except (OSError, EOFError) as lost:
            self._end()
            raise ConnectionLost from lost
        except BaseException:
            self._end()
            raise
        if error is not None:
            raise error
        return outcome

    def _end(self) -> None:
        self._pipe.close()
        self._process.kill()


def serve(connect: Callable[[str], Connection], dumps: Callable[[Any], bytes]) -> None:
    """Answer the process that started this one until it is gone; `dumps` pickles what trials return and raise."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = pipes.Connection(int(sys.argv[1]))
    there = _Numbered(connect)
    try:
        while True:
            method, values = pipe.recv()
            try:
                answer: tuple[Any, Exception | None] = getattr(there, method)(*values), None
            except Exception as error:
                answer = None, error
            pipe.send_bytes(dumps(answer))
    except (OSError, EOFError):
        there.close()


class _Numbered:
    """What `ClientProcessConnection` asks for: tickets and handles are known by numbers."""

    def __init__(self, connect: Callable[[str], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._handles: list[Any] = []
        self._tickets: dict[int, Ticket] = {}
        self._numbers: dict[Ticket, int] = {}
        self._sent = 0

    def connect(self, address: str) -> None:
        self._connection = self._connect(address)

    def processes(self) -> int:
        return self._there.processes()

    def put(self, sha256: str, content: bytes) -> int:
        self._handles.append(self._there.put(sha256, content))
        return len(self._handles) - 1

    def send(self, work: Callable[..., FinishedTask | Exception], errand: RemoteTask, pieces: Collection[int]) -> int:
        ticket = self._there.send(work, errand, [self._handles[piece] for piece in pieces])
        self._sent += 1
        self._tickets[self._sent], self._numbers[ticket] = ticket, self._sent
        return self._sent

    def finished(self, wait_s: float) -> list[tuple[int, FinishedTask | Exception]]:
        found = []
        for ticket, outcome in self._there.finished(wait_s):
            number = self._numbers.pop(ticket)
            del self._tickets[number]
            found.append((number, outcome))
        return found

    def give_up(self, numbers: Collection[int]) -> None:
        """Cancel those that are on their way here: of others the answer is on its way."""
        tickets = [self._tickets.pop(number) for number in numbers if number in self._tickets]
        for ticket in tickets:
            del self._numbers[ticket]
        self._there.give_up(tickets)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def _there(self) -> Connection:
        assert self._connection is not None  # `connect` is asked for first
        return self._connection
