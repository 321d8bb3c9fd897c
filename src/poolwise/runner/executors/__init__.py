"""Executors of tasks: the cores of this computer, or the workers of a Dask cluster.

All implement `Executor`. Only the calling process writes records, and every executor returns identical bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from poolwise.errors import InputError, UnknownNameError
from poolwise.runner.execution import Executor
from poolwise.runner.executors.local import Local, checked_jobs

__all__ = ["Executor", "Local", "checked_jobs", "find_executor"]

ADDRESS = "POOLWISE_EXECUTOR_ADDRESS"
"""Environment variable for the address of a cluster."""


@contextmanager
def find_executor(name: str = "local", address: str | None = None, jobs: int | None = None) -> Iterator[Executor]:
    """Open an executor, and close it after use.

    Parameters
    ----------
    name
        "local" or "dask".
    address
        Address of the cluster, see `poolwise.runner.executors.dask`.
    jobs
        Number of local processes, for "local" only; all cores if None or -1.

    Yields
    ------
    The executor.

    Raises
    ------
    UnknownNameError
        For another name.
    InputError
        For an invalid number of processes, an unreachable cluster or a missing package.
    """
    if name == "local":
        yield Local(jobs)
        return
    if name != "dask":
        raise UnknownNameError.of("executor", name, ["local", "dask"], field="--executor")
    if jobs is not None:
        problem, remedy = "a cluster determines its number of processes", "remove it, or start more workers"
        raise InputError(problem, field="--jobs", remedy=remedy)
    if address is None:
        raise InputError("no address of a Dask cluster", field="--executor-address", remedy=f"give one, or set {ADDRESS}")
    if find_spec("distributed") is None:
        raise InputError("the package distributed is missing", remedy="pip install 'poolwise[dask]'")
    from poolwise.runner.executors.dask import DaskCluster

    with DaskCluster(address) as executor:
        yield executor
