"""Runs the trials that a store does not hold yet, on all cores, and keeps each as soon as it is done."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import lru_cache
from threading import Thread
from typing import NamedTuple, TypeVar

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types

from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.identity import Json
from poolwise.own_code import failure_in
from poolwise.trials.bench import Bench, Progress, Record
from poolwise.trials.store import Store

Trial = TypeVar("Trial")


class _Done(NamedTuple):
    key: str
    label: str
    record: Record
    seconds: float


def checked_jobs(jobs: int | None) -> int | None:
    """Return a number of processes as it was given; raises InputError unless it is 1 or more, -1 or None (all cores)."""
    if jobs is not None and jobs < 1 and jobs != -1:
        raise InputError(f"{jobs} processes cannot run anything", field="--jobs", remedy="give 1 or more, or -1 for all cores")
    return jobs


def fill(
    bench: Bench[Trial],
    trials: Sequence[Trial],
    store: Store,
    jobs: int | None = None,
    progress: Progress | None = None,
    worth: int = 1,
) -> None:
    """Run those trials that a store does not hold yet; the caller is the store's writer (`Store.writing`).

    Each is kept when it is done, so that an interrupt or a kill loses only the trials that are running. Errors
    name the trial.

    Parameters
    ----------
    jobs
        Processes; all cores if not given or -1. The results do not depend on it.
    worth
        Trials that another process must have to do before it pays to start it.
    """
    wanted = {bench.key(trial): trial for trial in trials}
    missing = {key: trial for key, trial in wanted.items() if store.content(key) is None}
    if missing:
        bench.prepare(list(missing.values()))  # before the clock of the progress runs: compiling is no trial
    if progress is not None:
        progress.begin(len(wanted), len(wanted) - len(missing), sum(map(store.damaged, missing)))
    processes = min(_cores(jobs), len(missing) // worth)
    with closing(_finished(bench, _longest_first(bench, missing, store), processes)) as finished:
        for done in finished:
            store.write(done.key, done.record)
            store.note_time(done.key, done.label, done.seconds)
            if progress is not None:
                progress.advance(done.label, done.seconds)


def records(
    bench: Bench[Trial],
    trials: Sequence[Trial],
    store: Store,
    jobs: int | None = None,
    progress: Progress | None = None,
    worth: int = 1,
) -> list[Json]:
    """Contents of the records of trials, in their order; those that are missing are run first, as `fill` does."""
    fill(bench, trials, store, jobs, progress, worth)
    found = []
    for trial in trials:
        content = store.content(bench.key(trial))
        if content is None:
            path = store.path(bench.key(trial))
            raise InputError("what was written just now cannot be read", file=path, remedy="see what else writes to the folder")
        found.append(content)
    return found


def _cores(jobs: int | None) -> int:
    return jobs if jobs is not None and jobs > 0 else os.cpu_count() or 1


def _finished(bench: Bench[Trial], trials: dict[str, Trial], processes: int) -> Generator[_Done, None, None]:
    """Trials as they finish. Workers only compute: one process writes, so a killed run cannot leave a second writer."""
    if processes <= 1:
        yield from (_named(bench, key, trial) for key, trial in trials.items())
        return
    workers = Parallel(n_jobs=processes, backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None)
    outputs: Generator[_Done, None, None] = workers(
        delayed(_in_worker)(bench, key, trial, os.getpid()) for key, trial in trials.items()
    )
    try:
        yield from (done for done in outputs)  # not `outputs` itself: closing this must not close it before the warning is off
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of trials given up, which is what stopping early means
            outputs.close()


def _in_worker(bench: Bench[Trial], key: str, trial: Trial, parent: int) -> _Done:
    live_with(parent)
    return _named(bench, key, trial)


@lru_cache(maxsize=1)
def live_with(parent: int) -> None:
    """End this worker when the process that started it is gone: nobody takes its work, and it would idle for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _named(bench: Bench[Trial], key: str, trial: Trial) -> _Done:
    """Run a trial; its errors name it."""
    begun, label = time.perf_counter(), bench.label(trial)
    try:
        return _Done(key, label, bench.run(trial), time.perf_counter() - begun)
    except InputError as error:
        message = f"{error.message} (in the cell {label})"
        raise type(error)(message, file=error.file, line=error.line, field=error.field, remedy=error.remedy) from error
    except PoolwiseError as error:
        raise type(error)(f"{error} (in the cell {label})") from error
    except Exception as error:
        said = failure_in(error)
        if said is not None:
            raise PolicyError(f"{said} (in the cell {label})") from error
        error.add_note(f"in the cell {label}")
        raise


def _longest_first(bench: Bench[Trial], missing: dict[str, Trial], store: Store) -> dict[str, Trial]:
    """Those that took longest before come first, unknown ones before all: no core waits for a late long one."""
    seconds = store.times()
    return dict(sorted(missing.items(), key=lambda pair: -seconds.get(bench.label(pair[1]), float("inf"))))
