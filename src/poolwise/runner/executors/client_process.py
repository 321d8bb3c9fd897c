"""Cluster connection in a separate process, for clients that abort their process when the cluster is gone.

The two processes share a socket pair. A request is a method of `Connection` with its arguments, a reply its result or
exception. Tickets and handles stay in the client process; numbers represent them here.
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

from poolwise.runner.execution import Finished
from poolwise.runner.executors.cluster import Connection, ConnectionLost, Ticket
from poolwise.runner.executors.remote_task import RemoteTask

ANSWER_S = 60.0
"""Timeout for a reply of the client process, s."""


class ClientProcessConnection(Connection):
    """A connection in another process, whose death counts as a lost connection.

    Parameters
    ----------
    module
        Module that the other process runs; it calls `serve`.
    address
        Address of the cluster.
    """

    def __init__(self, module: str, address: str) -> None:
        """Connect; raises ConnectionLost if the other process dies or times out, and any error of connecting."""
        local, remote = socket.socketpair()
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        with remote:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(remote.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # engine messages add nothing to ConnectionLost
                pass_fds=[remote.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # this process handles interrupts and closes the other one
            )
        self._pipe = pipes.Connection(local.detach())
        try:
            self._request("connect", address)
        except BaseException:
            self.close()
            raise

    def processes(self) -> int:
        """See `Connection`."""
        return int(self._request("processes"))

    def upload(self, sha256: str, content: bytes) -> Any:
        """See `Connection`."""
        return self._request("upload", sha256, content)

    def submit(self, work: Callable[..., Finished | Exception], task: RemoteTask, pieces: Collection[Any]) -> Ticket:
        """See `Connection`."""
        ticket: Ticket = self._request("submit", work, task, pieces)
        return ticket

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, Finished | Exception]]:
        """See `Connection`."""
        yield from self._request("finished", wait_s)

    def cancel(self, tickets: Collection[Ticket]) -> None:
        """See `Connection`."""
        if not self._pipe.closed:
            try:
                self._request("cancel", tickets)
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

    def _request(self, method: str, *values: Any) -> Any:
        """Call a method in the other process; kill it if its reply stays unread: the next request would receive it."""
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
    """Answer requests of the parent process until it is gone; `dumps` pickles results and errors of tasks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = pipes.Connection(int(sys.argv[1]))
    server = _ConnectionServer(connect)
    try:
        while True:
            method, values = pipe.recv()
            try:
                answer: tuple[Any, Exception | None] = getattr(server, method)(*values), None
            except Exception as error:
                answer = None, error
            pipe.send_bytes(dumps(answer))
    except (OSError, EOFError):
        server.close()


class _ConnectionServer:
    """Receiver of requests of `ClientProcessConnection`; numbers represent tickets and handles."""

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
        return self._open_connection.processes()

    def upload(self, sha256: str, content: bytes) -> int:
        self._handles.append(self._open_connection.upload(sha256, content))
        return len(self._handles) - 1

    def submit(self, work: Callable[..., Finished | Exception], task: RemoteTask, pieces: Collection[int]) -> int:
        ticket = self._open_connection.submit(work, task, [self._handles[piece] for piece in pieces])
        self._sent += 1
        self._tickets[self._sent], self._numbers[ticket] = ticket, self._sent
        return self._sent

    def finished(self, wait_s: float) -> list[tuple[int, Finished | Exception]]:
        found = []
        for ticket, outcome in self._open_connection.finished(wait_s):
            number = self._numbers.pop(ticket)
            del self._tickets[number]
            found.append((number, outcome))
        return found

    def cancel(self, numbers: Collection[int]) -> None:
        """Cancel unfinished tasks; replies of finished ones are already under way."""
        tickets = [self._tickets.pop(number) for number in numbers if number in self._tickets]
        for ticket in tickets:
            del self._numbers[ticket]
        self._open_connection.cancel(tickets)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def _open_connection(self) -> Connection:
        assert self._connection is not None  # `connect` is the first request
        return self._connection
