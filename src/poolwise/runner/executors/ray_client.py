"""The process that `RayCluster` asks: the client of Ray, which aborts its process when the head is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import ObjectLostError, RayError, RaySystemError, RayTaskError, WorkerCrashedError

from poolwise.errors import InputError
from poolwise.runner.execution import FinishedTask
from poolwise.runner.executors.client_process import serve
from poolwise.runner.executors.cluster import Connection, ConnectionLost, Ticket, WorkerLost
from poolwise.runner.executors.ray import no_cluster
from poolwise.runner.executors.remote_task import RemoteTask


def connect(address: str) -> Connection:
    """Connect; raises InputError if no cluster answers."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError, OSError, RayError) as error:
        raise no_cluster(address, " ".join(str(error).split())[:200]) from error
    return _RayConnection()


class _RayConnection(Connection):
    def __init__(self) -> None:
        self._flying: dict[Ticket, Any] = {}
        self._do: Any = None

    def processes(self) -> int:
        try:
            return int(ray.cluster_resources().get("CPU", 0))
        except (RayError, ConnectionError, RuntimeError) as error:
            raise ConnectionLost from error

    def put(self, sha256: str, content: bytes) -> Any:
        """An object of the store of the client's computer, which Ray copies to each computer that needs it."""
        return _asked(lambda: ray.put(content))

    def send(self, work: Callable[..., FinishedTask | Exception], errand: RemoteTask, pieces: Collection[Any]) -> Ticket:
        if self._do is None:
            self._do = ray.remote(max_retries=3)(work)  # with a worker that dies, as Dask does
        reference = _asked(lambda: self._do.remote(errand, *pieces))
        self._flying[reference] = reference
        ticket: Ticket = reference
        return ticket

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, FinishedTask | Exception]]:
        references = [*self._flying]
        done, _ = _asked(lambda: ray.wait(references, num_returns=1, timeout=wait_s))
        if done:
            done, _ = _asked(lambda: ray.wait(references, num_returns=len(references), timeout=0))
        for reference in done:
            outcome = self._outcome(reference)
            del self._flying[reference]
            yield reference, outcome

    def _outcome(self, reference: Any) -> FinishedTask | Exception:
        try:
            outcome: FinishedTask | Exception = ray.get(reference)
        except (WorkerCrashedError, ObjectLostError) as error:
            return WorkerLost(str(error))
        except RayTaskError as error:
            return _cannot_run(error)
        except (RaySystemError, ConnectionError) as error:
            raise ConnectionLost from error
        except RayError as error:  # such as a node that died, or that had no memory left
            return WorkerLost(str(error))
        return outcome

    def give_up(self, tickets: Collection[Ticket]) -> None:
        for reference in [*self._flying]:
            del self._flying[reference]
            if ray.is_initialized():
                ray.cancel(reference, force=True)

    def close(self) -> None:
        ray.shutdown()


def _asked(question: Callable[[], Any]) -> Any:
    """Ask the cluster; raises ConnectionLost if it is gone."""
    try:
        return question()
    except (RaySystemError, ConnectionError) as error:
        raise ConnectionLost from error


def _cannot_run(error: Exception) -> InputError:
    problem = f"a worker cannot run anything of Poolwise: {str(error).strip().splitlines()[-1]}"
    return InputError(problem, field="--executor", remedy="install on the workers what is installed here")


if __name__ == "__main__":
    serve(connect, cloudpickle.dumps)
