"""Client process of `RayCluster`: Ray's client aborts its process when the head node is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import ObjectLostError, RayError, RaySystemError, RayTaskError, WorkerCrashedError

from poolwise.errors import InputError
from poolwise.runner.execution import Finished
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
        self._submitted: dict[Ticket, Any] = {}
        self._function: Any = None

    def processes(self) -> int:
        try:
            return int(ray.cluster_resources().get("CPU", 0))
        except (RayError, ConnectionError, RuntimeError) as error:
            raise ConnectionLost from error

    def upload(self, sha256: str, content: bytes) -> Any:
        """Put an object in the object store of the client's computer; Ray copies it to each computer that needs it."""
        return _call(lambda: ray.put(content))

    def submit(self, work: Callable[..., Finished | Exception], task: RemoteTask, pieces: Collection[Any]) -> Ticket:
        if self._function is None:
            self._function = ray.remote(max_retries=3)(work)  # retries after worker deaths, as Dask does
        reference = _call(lambda: self._function.remote(task, *pieces))
        self._submitted[reference] = reference
        ticket: Ticket = reference
        return ticket

    def finished(self, wait_s: float) -> Iterator[tuple[Ticket, Finished | Exception]]:
        references = [*self._submitted]
        done, _ = _call(lambda: ray.wait(references, num_returns=1, timeout=wait_s))
        if done:
            done, _ = _call(lambda: ray.wait(references, num_returns=len(references), timeout=0))
        for reference in done:
            outcome = self._outcome(reference)
            del self._submitted[reference]
            yield reference, outcome

    def _outcome(self, reference: Any) -> Finished | Exception:
        try:
            outcome: Finished | Exception = ray.get(reference)
        except (WorkerCrashedError, ObjectLostError) as error:
            return WorkerLost(str(error))
        except RayTaskError as error:
            return _cannot_run(error)
        except (RaySystemError, ConnectionError) as error:
            raise ConnectionLost from error
        except RayError as error:  # such as a node that died or ran out of memory
            return WorkerLost(str(error))
        return outcome

    def cancel(self, tickets: Collection[Ticket]) -> None:
        for reference in [*self._submitted]:
            del self._submitted[reference]
            if ray.is_initialized():
                ray.cancel(reference, force=True)

    def close(self) -> None:
        ray.shutdown()


def _call(function: Callable[[], Any]) -> Any:
    """Call the cluster; raises ConnectionLost if it is gone."""
    try:
        return function()
    except (RaySystemError, ConnectionError) as error:
        raise ConnectionLost from error


def _cannot_run(error: Exception) -> InputError:
    problem = f"a worker cannot run Poolwise: {str(error).strip().splitlines()[-1]}"
    return InputError(problem, field="--executor", remedy="install the same packages on the workers as on this computer")


if __name__ == "__main__":
    serve(connect, cloudpickle.dumps)
