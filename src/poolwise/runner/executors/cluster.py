"""Task execution on a cluster: each process has a few groups of tasks queued; groups lost with a worker are resubmitted."""

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
from poolwise.runner.execution import Executor, Finished, FinishedTask, grouped
from poolwise.runner.executors.payload import Payload
from poolwise.runner.executors.remote_task import RemoteTask, run_remote_task, versions
from poolwise.runner.task_type import TaskType

Task = TypeVar("Task")
Ticket = Hashable
"""Identifier of a submitted task."""

AHEAD = 2
"""Number of submitted tasks per process: one runs while the next is queued."""
DEATHS = 3
"""Number of times a cluster may lose a task before it fails; a cluster itself tries four workers each time."""
PATIENCE_S = 300.0
"""Maximum time (s) without the cluster, or without any worker."""
PIECE = 4 << 20
"""Maximum size of a piece of an input, bytes."""


class ConnectionLost(Exception):
    """The connection is lost, along with all submitted tasks."""


class WorkerLost(Exception):
    """A worker died, with its running task."""


class Connection(Protocol):
    """Interface of a cluster client."""

    def processes(self) -> int:
        """Return the number of tasks that can run at once, 0 while there are no workers."""
        ...

    def upload(self, sha256: str, content: bytes) -> Any:
        """Store bytes on the cluster until disconnection and return a handle; each worker that needs them gets them once."""
        ...

    def submit(self, work: Callable[..., Finished | Exception], task: RemoteTask, pieces: Collection[Any]) -> Ticket:
        """Submit the call `work(task, *bytes of the pieces)` to a worker."""
        ...

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, Finished | Exception]]:
        """Yield finished tasks, and WorkerLost for tasks lost with their worker; waits until there is at least one.

        Raises ConnectionLost if the cluster is gone.
        """
        ...

    def cancel(self, tickets: Collection[Ticket]) -> None:
        """Cancel submitted tasks."""
        ...

    def close(self) -> None:
        """Disconnect from the cluster."""
        ...


@dataclass
class Cluster(Executor):
    """Workers of a cluster at an address. Use as a context manager: one connection serves all tasks of a command."""

    address: str
    _connection: Connection | None = field(default=None, repr=False)
    _handles: dict[str, list[Any]] = field(default_factory=dict, repr=False)  # SHA-256 -> handles of the pieces

    @abstractmethod
    def connect(self) -> Connection:
        """Connect; raises InputError if no cluster answers."""

    def __enter__(self) -> Cluster:
        self._connection = self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._handles.clear()

    def results(self, task_type: TaskType[Task], tasks: Mapping[str, Task]) -> Generator[FinishedTask, None, None]:
        """Yield tasks as they finish; see `Executor`.

        Raises InputError if workers have other versions or cannot run Poolwise, or if the cluster is gone for several minutes.
        """
        left, deaths = deque(grouped(task_type, tasks)), Counter[str]()
        while left:
            try:
                yield from self._until_lost(task_type, left, deaths)
            except ConnectionLost:
                self._reconnect()

    def _until_lost(
        self, task_type: TaskType[Task], left: deque[dict[str, Task]], deaths: Counter[str]
    ) -> Generator[FinishedTask, None, None]:
        connection = self._connection
        if connection is None:
            raise ConnectionLost
        sender, submitted = _Sender(connection, task_type, self._handles), dict[Ticket, dict[str, Task]]()
        processes, checked = connection.processes(), time.monotonic()
        last_result = checked
        try:
            while left or submitted:
                while left and len(submitted) < AHEAD * max(1, processes):
                    group = left.popleft()
                    submitted[sender.submit(group)] = group
                for ticket, outcome in connection.finished(1.0):
                    last_result = time.monotonic()
                    group = submitted.pop(ticket)
                    if isinstance(outcome, WorkerLost):
                        key, task = next(iter(group.items()))
                        deaths[key] += 1
                        if deaths[key] == DEATHS:
                            problem = f"workers repeatedly died while running cell {task_type.label(task)}"
                            raise PoolwiseError(f"{problem}; give workers more memory") from outcome
                        left.appendleft(group)
                    elif isinstance(outcome, Exception):
                        raise outcome
                    else:
                        yield from outcome
                if time.monotonic() - checked > 1.0:
                    processes, checked = connection.processes(), time.monotonic()
                if not processes and checked - last_result > PATIENCE_S:
                    remedy = "start workers, then run the command again; finished results are kept"
                    raise InputError(
                        f"no worker was available for {PATIENCE_S / 60:g} minutes", file=self.address, remedy=remedy
                    )
        except ConnectionLost:
            left.extendleft(submitted.values())
            submitted.clear()
            raise
        finally:
            connection.cancel(submitted)

    def _reconnect(self) -> None:
        """Wait until the cluster answers again; raises InputError after `PATIENCE_S`."""
        begun = time.monotonic()
        self.__exit__()
        while self._connection is None:
            try:
                self._connection = self.connect()
            except InputError as error:
                if time.monotonic() - begun > PATIENCE_S:
                    remedy = f"{error.remedy}, then run the command again; finished results are kept"
                    raise InputError(f"{error.message}, for minutes", field=error.field, remedy=remedy) from error
                time.sleep(1.0)


class _Sender:
    """Submits tasks of one type; each input is uploaded once."""

    def __init__(self, connection: Connection, task_type: TaskType[Any], handles: dict[str, list[Any]]) -> None:
        self._connection, self._handles = connection, handles
        packed = Payload.of(task_type)
        content = pickle.dumps(packed, protocol=5)
        self._files, self._task_type = packed.files, digest(content)
        if self._task_type not in handles:
            self._upload(self._task_type, content)

    def submit(self, tasks: Mapping[str, Any]) -> Ticket:
        payload = Payload.of(tasks)
        names = {self._task_type: ""}
        for sha256, path in {**self._files, **payload.files}.items():
            names[sha256] = path.name
            if sha256 not in self._handles:
                self._upload(sha256, path.read_bytes())
        handles = [self._handles[sha256] for sha256 in names]
        remote = RemoteTask(payload, self._task_type, names, [len(part) for part in handles], versions())
        return self._connection.submit(run_remote_task, remote, [handle for part in handles for handle in part])

    def _upload(self, sha256: str, content: bytes) -> None:
        cut = [content[at : at + PIECE] for at in range(0, max(1, len(content)), PIECE)]
        self._handles[sha256] = [self._connection.upload(f"{sha256}-{k}", piece) for k, piece in enumerate(cut)]
