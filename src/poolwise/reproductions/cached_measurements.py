"""Measurements of a reproduction as trials that are kept, so that it can be stopped at any point and go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from poolwise.errors import InputError
from poolwise.hashing import Json, canonical, digest, plain
from poolwise.reproductions.fingerprint import code_behind
from poolwise.runner import Executor, Progress, Record, Store, TaskType, records

Case = TypeVar("Case")


def _nothing() -> None:
    pass


def measure_all(
    cases: Iterable[Case],
    run: Callable[[Case], Json],
    folder: Path,
    executor: Executor,
    prepare: Callable[[], object] = _nothing,
    progress: Progress | None = None,
) -> dict[Case, Json]:
    """Measure cases, each once, in parallel; what `folder` holds of the same code is not run again.

    The same code is what `code_behind` says of the module of `run`. Raises InputError if it changes while they run.

    Parameters
    ----------
    cases
        Frozen dataclasses: all that a measurement depends on.
    run
        Measures one; returns plain data.
    prepare
        Called once before the first case, if anything is missing (compiles kernels).
    progress
        Is told how far the measurements are.
    """
    wanted = list(dict.fromkeys(cases))
    bench, store = _TaskType(run, prepare, code_behind(_module(run))), Store(folder)
    with store.writing():
        return dict(zip(wanted, records(bench, wanted, store, executor, progress), strict=True))


def _module(run: Callable[..., Json]) -> str:
    """Name of the module that a measuring function is defined in."""
    return str(getattr(run, "func", run).__module__)  # of a partial function, the function


@dataclass(frozen=True)
class _TaskType(TaskType[Any], Generic[Case]):
    """Where cases are measured: `program` is what `code_behind` said when the reproduction began."""

    measure: Callable[[Case], Json]
    compile: Callable[[], object]
    program: str

    def key(self, trial: Any) -> str:
        """SHA-256 of a case and of the code."""
        return digest(canonical({"case": asdict(trial), "sources": self.program}))

    def label(self, trial: Any) -> str:
        """Fields of the case."""
        return str(trial)

    def run(self, trial: Any) -> Record:
        """Measure one."""
        if code_behind(_module(self.measure)) != self.program:  # a worker that started later
            raise InputError("Poolwise itself changed while the reproduction ran", remedy="run it again")
        return Record(plain(self.measure(trial)))

    def prepare(self, trials: Sequence[Any]) -> None:
        """Compile."""
        self.compile()
