"""Executor on a Dask cluster, based on futures."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from distributed import Client, Future, KilledWorker

from poolwise.errors import InputError
from poolwise.runner.execution import Finished
from poolwise.runner.executors.cluster import Cluster, Connection, ConnectionLost, Ticket, WorkerLost
from poolwise.runner.executors.remote_task import RemoteTask

CONNECT_S = 10.0
"""Timeout for connecting to the scheduler, s."""


class DaskCluster(Cluster):
    """A Dask cluster, given by its scheduler's address, such as "tcp://HOST:8786", or by the file that the scheduler wrote."""

    def connect(self) -> Connection:
        """Connect; raises InputError if no scheduler answers."""
        target = {"scheduler_file": self.address} if Path(self.address).is_file() else {"address": self.address}
        try:
            client = Client(**target, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            remedy = "start one with: dask scheduler"
            raise InputError(f"no Dask scheduler responds: {error}", field=self.address, remedy=remedy) from error
        return _DaskConnection(client)


class _DaskConnection(Connection):
    def __init__(self, client: Client) -> None:
        self._client = client
        self._name = uuid.uuid4().hex
        self._sent = 0
        self._submitted: dict[Ticket, Future[Any]] = {}
        self._finished: Queue[Future[Any]] = Queue()
        self._uploaded: list[Future[Any]] = []  # the scheduler keeps the data while these references exist
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # ConnectionLost already reports a lost scheduler

    def processes(self) -> int:
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def upload(self, sha256: str, content: bytes) -> Any:
        """Submit a task that returns the bytes: the scheduler keeps the task, so the bytes survive the death of workers."""
        future = self._client.submit(bytes, content, key=f"poolwise-input-{sha256}")
        self._uploaded.append(future)
        return future

    def submit(self, work: Callable[..., Finished | Exception], task: RemoteTask, pieces: Collection[Any]) -> Ticket:
        self._sent += 1
        future = self._client.submit(work, task, *pieces, key=f"poolwise-{self._name}-{self._sent}", pure=False)
        self._submitted[future.key] = future
        future.add_done_callback(self._finished.put)
        ticket: Ticket = future.key
        return ticket

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, Finished | Exception]]:
        try:
            futures = [self._finished.get(timeout=wait_s)]
        except Empty:
            if self._client.status not in ("running", "connecting"):
                raise ConnectionLost from None
            return
        while not self._finished.empty():
            futures.append(self._finished.get())
        for future in futures:
            if future.key in self._submitted:
                outcome = self._outcome(future)
                del self._submitted[future.key]
                yield future.key, outcome

    def _outcome(self, future: Future[Any]) -> Finished | Exception:
        if future.status in ("cancelled", "lost"):
            raise ConnectionLost
        if future.status == "error":
            error: BaseException = future.exception()
            if isinstance(error, KilledWorker):
                return WorkerLost(str(error))
            return _cannot_run(error)
        try:
            outcome: Finished | Exception = future.result()
        except (OSError, TimeoutError) as error:
            raise ConnectionLost from error
        return outcome

    def cancel(self, tickets: Collection[Ticket]) -> None:
        futures = [self._submitted.pop(ticket) for ticket in [*self._submitted]]
        if futures and self._client.status == "running":
            self._client.cancel(futures)

    def close(self) -> None:
        self._client.close(timeout=2)


def _cannot_run(error: BaseException) -> InputError:
    problem = f"a worker cannot run Poolwise: {type(error).__name__}: {error}"
    return InputError(problem, field="--executor", remedy="install the same packages on the workers as on this computer")
