"""Executors by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec

from poolwise.errors import InputError, UnknownNameError
from poolwise.runner.executors.executor import Executor
from poolwise.runner.executors.local import Local

ADDRESS = "POOLWISE_EXECUTOR_ADDRESS"
"""Environment variable that says where a cluster is."""


@contextmanager
def find_executor(name: str = "local", address: str | None = None, jobs: int | None = None) -> Iterator[Executor]:
    """Open an executor, "local", "dask" or "ray", and close it after use.

    Raises InputError for a number of processes that cannot be, for a cluster that is not there, and for a package that is
    missing; UnknownNameError for another name.

    Parameters
    ----------
    address
        Where the cluster is, see `poolwise.runner.executors.dask` and `ray`.
    jobs
        Processes on this computer, for "local" alone; all cores if not given or -1.
    """
    if name == "local":
        yield Local(jobs)
        return
    if name not in _CLUSTERS:
        raise UnknownNameError.of("executor", name, ["local", *_CLUSTERS], field="--executor")
    if jobs is not None:
        problem, remedy = "a cluster has as many processes as it has workers", "leave it out, or start more workers"
        raise InputError(problem, field="--jobs", remedy=remedy)
    if address is None:
        raise InputError(f"no {name} cluster is named", field="--executor-address", remedy=f"give it, or set {ADDRESS}")
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
"""Name -> package that it needs, and how it is opened."""
