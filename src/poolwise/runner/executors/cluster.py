"""Trials on a cluster: a few more are on their way than it has processes, and what is lost with a worker is sent again."""

from __future__ import annotations

import pickle
import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from poolwise.errors import InputError, PoolwiseError
from poolwise.hashing import digest
from poolwise.runner.execution import FinishedTask
from poolwise.runner.executors.executor import Executor
from poolwise.runner.executors.payload import Payload
from poolwise.runner.executors.remote_task import RemoteTask, do, versions
from poolwise.runner.task_type import TaskType

Trial = TypeVar("Trial")
Ticket = Hashable
"""What a cluster gives for an errand on its way."""

AHEAD = 2
"""Trials on their way for each process: while one runs, the next is there."""
DEATHS = 3
"""Times that a cluster may give up a trial before it is given up here; an engine tries four workers each time."""
PATIENCE_S = 300.0
"""How long a cluster may be gone, or without any worker."""
PIECE = 4 << 20
"""Largest piece in which the bytes of an input travel."""


class ConnectionLost(Exception):
    """The cluster is gone, with all that was on its way."""


class WorkerLost(Exception):
    """A worker died, with what it ran."""


class Connection(Protocol):
    """What a cluster's own client must be able to do."""

    def processes(self) -> int:
        """Trials that run at once, 0 while there are no workers."""
        ...

    def put(self, sha256: str, content: bytes) -> Any:
        """Keep bytes on the cluster until it is left; each worker that needs them gets them once. Returns a handle."""
        ...

    def send(self, work: Callable[..., FinishedTask | Exception], errand: RemoteTask, pieces: Collection[Any]) -> Ticket:
        """Let a worker call `work(errand, *bytes of the pieces)`."""
        ...

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, FinishedTask | Exception]]:
        """Take what has finished, WorkerLost for what was lost with its worker; waits for one if there is none.

        Raises ConnectionLost if the cluster is gone.
        """
        ...

    def give_up(self, tickets: Collection[Ticket]) -> None:
        """Cancel what is on its way."""
        ...

    def close(self) -> None:
        """Leave the cluster."""
        ...


@dataclass
class Cluster(Executor):
    """Workers of a cluster, found by its address. Use as a context: one connection serves all trials of a command."""

    address: str
    _connection: Connection | None = field(default=None, repr=False)
    _put: dict[str, list[Any]] = field(default_factory=dict, repr=False)  # SHA-256 -> handles of the pieces

    @abstractmethod
    def connect(self) -> Connection:
        """Connect; raises InputError if there is no such cluster."""

    def __enter__(self) -> Cluster:
        self._connection = self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._put.clear()

    def results(
        self, bench: TaskType[Trial], trials: Mapping[str, Trial], worth: int = 1
    ) -> Generator[FinishedTask, None, None]:
        """See `Executor`.

        Raises InputError where workers have other versions or cannot run anything, and where the cluster is gone for minutes.
        """
        left, deaths = deque(trials), Counter[str]()
        while left:
            try:
                yield from self._until_lost(bench, trials, left, deaths)
            except ConnectionLost:
                self._reconnect()

    def _until_lost(
        self, bench: TaskType[Trial], trials: Mapping[str, Trial], left: deque[str], deaths: Counter[str]
    ) -> Generator[FinishedTask, None, None]:
        connection = self._connection
        if connection is None:
            raise ConnectionLost
        sending, flying = _Sending(connection, bench, self._put), dict[Ticket, str]()
        processes, asked = connection.processes(), time.monotonic()
        heard = asked
        try:
            while left or flying:
                while left and len(flying) < AHEAD * max(1, processes):
                    key = left.popleft()
                    flying[sending.send(key, trials[key])] = key
                for ticket, outcome in connection.finished(1.0):
                    heard = time.monotonic()
                    key = flying.pop(ticket)
                    if isinstance(outcome, WorkerLost):
                        deaths[key] += 1
                        if deaths[key] == DEATHS:
                            label = bench.label(trials[key])
                            problem = f"workers died again and again while they ran one cell, {label}"
                            raise PoolwiseError(f"{problem}; give workers more memory") from outcome
                        left.appendleft(key)
                    elif isinstance(outcome, Exception):
                        raise outcome
                    else:
                        yield outcome
                if time.monotonic() - asked > 1.0:
                    processes, asked = connection.processes(), time.monotonic()
                if not processes and asked - heard > PATIENCE_S:
                    remedy = "start workers, then give the same command again: what has finished is kept"
                    raise InputError(f"no worker for {PATIENCE_S / 60:g} minutes", file=self.address, remedy=remedy)
        except ConnectionLost:
            left.extendleft(flying.values())
            flying.clear()
            raise
        finally:
            connection.give_up(flying)

    def _reconnect(self) -> None:
        """Wait until the cluster is there again; raises InputError if that takes too long."""
        begun = time.monotonic()
        self.__exit__()
        while self._connection is None:
            try:
                self._connection = self.connect()
            except InputError as error:
                if time.monotonic() - begun > PATIENCE_S:
                    remedy = f"{error.remedy}, then give the same command again: what has finished is kept"
                    raise InputError(f"{error.message}, for minutes", field=error.field, remedy=remedy) from error
                time.sleep(1.0)


class _Sending:
    """Sends trials of one bench; each input is put on the cluster once."""

    def __init__(self, connection: Connection, bench: TaskType[Any], put: dict[str, list[Any]]) -> None:
        self._connection, self._pieces = connection, put
        packed = Payload.of(bench)
        content = pickle.dumps(packed, protocol=5)
        self._files, self._bench = packed.files, digest(content)
        if self._bench not in put:
            self._put(self._bench, content)

    def send(self, key: str, trial: object) -> Ticket:
        parcel = Payload.of(trial)
        names = {self._bench: ""}
        for sha256, path in {**self._files, **parcel.files}.items():
            names[sha256] = path.name
            if sha256 not in self._pieces:
                self._put(sha256, path.read_bytes())
        pieces = [self._pieces[sha256] for sha256 in names]
        errand = RemoteTask(key, parcel, self._bench, names, [len(part) for part in pieces], versions())
        return self._connection.send(do, errand, [piece for part in pieces for piece in part])

    def _put(self, sha256: str, content: bytes) -> None:
        cut = [content[at : at + PIECE] for at in range(0, max(1, len(content)), PIECE)]
        self._pieces[sha256] = [self._connection.put(f"{sha256}-{k}", piece) for k, piece in enumerate(cut)]
