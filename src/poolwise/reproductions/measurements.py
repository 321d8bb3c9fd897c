"""Measurements of a reproduction as cached tasks, so that a reproduction can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from poolwise.code_fingerprint import PACKAGE, sources
from poolwise.errors import InputError
from poolwise.hashing import Json, canonical, digest, plain
from poolwise.runner import Executor, Progress, Record, Store, TaskRunner, TaskType

Case = TypeVar("Case")

CLAIMS = "reproductions"
"""Folder of the catalog that holds the claims; no measurement reads it."""


@dataclass(frozen=True)
class Measurer:
    """Measures cases in parallel on an executor, and reuses the measurements that a folder holds for the same code.

    "The same code" means the same `measurement_fingerprint` of the module of the measuring function.
    """

    folder: Path
    executor: Executor
    progress: Progress | None = None

    def __call__(
        self, cases: Iterable[Case], run: Callable[[Case], Json], prepare: Callable[[], object] = lambda: None
    ) -> dict[Case, Json]:
        """Return case -> measurement; cases are frozen dataclasses whose fields are all that a measurement depends on.

        `run` measures one case and returns plain data. `prepare` is called once before the first case if any measurement is
        missing (compiles kernels). Raises InputError if the code changes while the cases run.
        """
        wanted = list(dict.fromkeys(cases))
        task_type = _Measurement(run, prepare, measurement_fingerprint(_module(run)))
        store = Store(self.folder)
        with store.writing():
            return dict(zip(wanted, TaskRunner(store, self.executor, self.progress).records(task_type, wanted), strict=True))


@dataclass(frozen=True)
class _Measurement(TaskType[Any]):
    """Task type of one measurement; `fingerprint` is the `measurement_fingerprint` at the start of the reproduction."""

    measure: Callable[[Any], Json]
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


def _module(run: Callable[..., Json]) -> str:
    """Return the name of the module that defines a measuring function."""
    return str(getattr(run, "func", run).__module__)  # partial functions name the wrapped function in `func`


@lru_cache(maxsize=8)
def measurement_fingerprint(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of the code that a module can reach and of all catalog data except the claims."""
    catalog, data = package / "catalog", {}
    for file in sorted(catalog.rglob("*")):
        inside = file.relative_to(catalog).parts
        if file.is_file() and inside[0] != CLAIMS and "__pycache__" not in inside:
            data["/".join(inside)] = digest(file.read_bytes())
    return digest(canonical({"sources": sources(module, package=package), "data": data}))
