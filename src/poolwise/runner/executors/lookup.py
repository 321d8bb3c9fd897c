"""Lookup of executors by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec

from poolwise.errors import InputError, UnknownNameError
from poolwise.runner.executors.executor import Executor
from poolwise.runner.executors.local import Local

ADDRESS = "POOLWISE_EXECUTOR_ADDRESS"
"""Environment variable for the address of a cluster."""


@contextmanager
def find_executor(name: str = "local", address: str | None = None, jobs: int | None = None) -> Iterator[Executor]:
    """Open an executor, and close it after use.

    Parameters
    ----------
    name
        "local", "dask" or "ray".
    address
        Address of the cluster, see `poolwise.runner.executors.dask` and `ray`.
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
    if name not in _CLUSTERS:
        raise UnknownNameError.of("executor", name, ["local", *_CLUSTERS], field="--executor")
    if jobs is not None:
        problem, remedy = "a cluster determines its number of processes", "remove it, or start more workers"
        raise InputError(problem, field="--jobs", remedy=remedy)
    if address is None:
        raise InputError(f"no address of a {name} cluster", field="--executor-address", remedy=f"give one, or set {ADDRESS}")
    module, connect = _CLUSTERS[name]
    if find_spec(module) is None:
        raise InputError(f"the package {module} is missing", remedy=f"pip install 'poolwise[{name}]'")
    with connect(address) as executor:
        yield executor


def _dask(address: str) -> AbstractContextManager[Executor]:
    from poolwise.runner.executors.dask import DaskCluster

    return DaskCluster(address)


def _ray(address: str) -> AbstractContextManager[Executor]:
    from poolwise.runner.executors.ray import RayCluster

    return RayCluster(address)


_CLUSTERS: Mapping[str, tuple[str, Callable[[str], AbstractContextManager[Executor]]]] = {
    "dask": ("distributed", _dask),
    "ray": ("ray", _ray),
}
"""Name -> required package, and a function that opens the executor."""
