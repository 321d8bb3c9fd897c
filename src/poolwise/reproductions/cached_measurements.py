"""Measurements of a reproduction as cached tasks, so that a reproduction can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from poolwise.errors import InputError
from poolwise.hashing import Json, canonical, digest, plain
from poolwise.reproductions.fingerprint import measurement_fingerprint
from poolwise.runner import Executor, Progress, Record, Store, TaskType, records

Case = TypeVar("Case")


def _do_nothing() -> None:
    pass


def measure_all(
    cases: Iterable[Case],
    run: Callable[[Case], Json],
    folder: Path,
    executor: Executor,
    prepare: Callable[[], object] = _do_nothing,
    progress: Progress | None = None,
) -> dict[Case, Json]:
    """Measure each case once, in parallel, and reuse the measurements that `folder` holds for the same code.

    "The same code" means the same `measurement_fingerprint` of the module of `run`.

    Parameters
    ----------
    cases
        Frozen dataclasses whose fields are everything that a measurement depends on.
    run
        Function that measures one case and returns plain data.
    folder
        Folder of the cache.
    executor
        Where the cases run.
    prepare
        Called once before the first case if any measurement is missing (compiles kernels).
    progress
        Receives progress reports.

    Returns
    -------
    dict
        Case -> measurement, without duplicates, in the order of `cases`.

    Raises
    ------
    InputError
        If the code changes while the cases run.
    """
    wanted = list(dict.fromkeys(cases))
    task_type, store = _TaskType(run, prepare, measurement_fingerprint(_module(run))), Store(folder)
    with store.writing():
        return dict(zip(wanted, records(task_type, wanted, store, executor, progress), strict=True))


def _module(run: Callable[..., Json]) -> str:
    """Return the name of the module that defines a measuring function."""
    return str(getattr(run, "func", run).__module__)  # partial functions name the wrapped function in `func`


@dataclass(frozen=True)
class _TaskType(TaskType[Any], Generic[Case]):
    """Task type of one measurement; `fingerprint` is the `measurement_fingerprint` at the start of the reproduction."""

    measure: Callable[[Case], Json]
    compile: Callable[[], object]
    fingerprint: str

    def key(self, task: Any) -> str:
        """Return the SHA-256 of a case and of the code."""
        return digest(canonical({"case": asdict(task), "sources": self.fingerprint}))

    def label(self, task: Any) -> str:
        """Return the fields of the case."""
        return str(task)

    def run(self, task: Any) -> Record:
        """Measure a case; raise InputError if the code has changed since the reproduction started."""
        if measurement_fingerprint(_module(self.measure)) != self.fingerprint:  # in a worker that started later
            raise InputError("the Poolwise source code changed while the reproduction ran", remedy="run it again")
        return Record(plain(self.measure(task)))

    def prepare(self, tasks: Sequence[Any]) -> None:
        """Compile the kernels."""
        self.compile()
