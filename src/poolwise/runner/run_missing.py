"""Runs the trials that a store does not hold yet, where an executor says, and keeps each as soon as it is done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.hashing import Json
from poolwise.runner.executors import Executor
from poolwise.runner.store import Store
from poolwise.runner.task_type import Progress, TaskType

Trial = TypeVar("Trial")


def run_missing(
    bench: TaskType[Trial],
    trials: Sequence[Trial],
    store: Store,
    executor: Executor,
    progress: Progress | None = None,
    worth: int = 1,
) -> None:
    """Run those trials that a store does not hold yet; the caller is the store's writer (`Store.writing`).

    Each is kept when it is done, so that an interrupt or a kill loses only the trials that are running. Errors
    name the trial.

    Parameters
    ----------
    executor
        Where they are computed. The results do not depend on it.
    worth
        Trials that another process must have to do before it pays to start it.
    """
    wanted = {bench.key(trial): trial for trial in trials}
    missing = {key: trial for key, trial in wanted.items() if not store.holds(key)}
    if missing:
        bench.prepare(list(missing.values()))  # before the clock of the progress runs: compiling is no trial
    if progress is not None:
        progress.begin(len(wanted), len(wanted) - len(missing), sum(map(store.damaged, missing)))
    with closing(executor.results(bench, _longest_first(bench, missing, store), worth)) as finished:
        for done in finished:
            store.write(done.key, done.record, done.label, done.seconds)
            if progress is not None:
                progress.advance(done.label, done.seconds)


def records(
    bench: TaskType[Trial],
    trials: Sequence[Trial],
    store: Store,
    executor: Executor,
    progress: Progress | None = None,
    worth: int = 1,
) -> list[Json]:
    """Contents of the records of trials, in their order; those that are missing are run first, as `fill` does."""
    run_missing(bench, trials, store, executor, progress, worth)
    found = []
    for trial in trials:
        content = store.content(bench.key(trial))
        if content is None:
            raise InputError(
                "what was written just now cannot be read", file=store.file, remedy="see what else writes to the folder"
            )
        found.append(content)
    return found


def _longest_first(bench: TaskType[Trial], missing: dict[str, Trial], store: Store) -> dict[str, Trial]:
    """Those that took longest before come first, unknown ones before all: no core waits for a late long one."""
    seconds = {key: store.seconds(bench.label(trial)) for key, trial in missing.items()}
    return dict(sorted(missing.items(), key=lambda pair: -(seconds[pair[0]] or float("inf"))))
