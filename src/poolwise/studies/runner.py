"""Runs the cells of a study that are not done yet, on all cores, and leaves only whole ones."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Protocol

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types

from poolwise.engines import load_kernels
from poolwise.errors import InputError, PoolwiseError
from poolwise.files.configured import scheduler_of
from poolwise.studies.cells import Cell, CellRun, simulate_cell
from poolwise.studies.results import StudyResult, measure
from poolwise.studies.store import Store
from poolwise.studies.study import Study


class Progress(Protocol):
    """Who is told how far a study is."""

    def begin(self, total: int, done: int, damaged: int) -> None:
        """`done` of `total` runs are there from before; `damaged` files were found and are redone."""
        ...

    def advance(self, cell: Cell, seconds: float) -> None:
        """One more run is kept; it took so many seconds of a core."""
        ...


def run(study: Study, out: str | Path, jobs: int | None = None, progress: Progress | None = None) -> StudyResult:
    """Run what is missing of a study and measure everything.

    Raises InputError, also where another process writes to the same folder; errors of a cell name the cell.

    Parameters
    ----------
    out
        Folder for cells, results and provenance; made if it does not exist. Cells that it holds already are not run again.
    jobs
        Processes; all cores if not given or -1. The results do not depend on it.
    """
    if jobs is not None and jobs < 1 and jobs != -1:
        raise InputError(f"{jobs} processes cannot run anything", field="--jobs", remedy="give 1 or more, or -1 for all cores")
    store = Store(Path(out))
    with store.writing():
        fill(study.runs, store, jobs, progress)
        result = measure(study, store)
        result.write()
    return result


def fill(cells: Sequence[Cell], store: Store, jobs: int | None = None, progress: Progress | None = None) -> None:
    """Run those of some cells that a store does not hold yet; the caller is the store's writer (`Store.writing`)."""
    missing = [cell for cell in cells if store.facts(cell) is None]
    if progress is not None:
        damaged = sum(store.damaged(cell) for cell in missing)
        progress.begin(len(cells), len(cells) - len(missing), damaged)
    with closing(_simulated(_longest_first(missing, store), _processes(jobs))) as finished:
        for cell, done in finished:
            store.write(cell, done)
            if progress is not None:
                progress.advance(cell, done.seconds)


def _processes(jobs: int | None) -> int:
    return jobs if jobs is not None and jobs > 0 else os.cpu_count() or 1


def _simulated(cells: list[Cell], jobs: int) -> Generator[tuple[Cell, CellRun], None, None]:
    """Runs as they finish. Workers only compute: one process writes, so a killed run cannot leave a second writer."""
    jobs = min(jobs, len(cells))
    if jobs <= 1:
        yield from ((cell, _named(cell)[1]) for cell in cells)
        return
    load_kernels((cell.machine, scheduler_of(cell.scheduler, cell.warm_up)) for cell in cells)  # before workers start
    workers = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None)
    by_key = {cell.key: cell for cell in cells}
    outputs: Generator[tuple[str, CellRun], None, None] = workers(delayed(_in_worker)(cell, os.getpid()) for cell in cells)
    try:
        yield from ((by_key[key], done) for key, done in outputs)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of runs given up, which is what stopping early means
            outputs.close()


def _in_worker(cell: Cell, parent: int) -> tuple[str, CellRun]:
    _live_with(parent)
    return _named(cell)


@lru_cache(maxsize=1)
def _live_with(parent: int) -> None:
    """End this worker when the process that started it is gone: nobody takes its work, and it would idle for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _named(cell: Cell) -> tuple[str, CellRun]:
    """Run a cell; its errors say which cell it was."""
    try:
        return cell.key, simulate_cell(cell)
    except InputError as error:
        message = f"{error.message} (in the cell {cell.label})"
        raise type(error)(message, file=error.file, line=error.line, field=error.field, remedy=error.remedy) from error
    except PoolwiseError as error:
        raise type(error)(f"{error} (in the cell {cell.label})") from error


def _longest_first(cells: list[Cell], store: Store) -> list[Cell]:
    """Those that took longest before come first, unknown ones before all: no core waits for a late long one."""
    seconds = store.seconds()
    return sorted(cells, key=lambda cell: -seconds.get(cell.label, float("inf")))
