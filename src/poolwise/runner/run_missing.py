"""Execution of the tasks that a store lacks; each record is stored as soon as its task finishes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.hashing import Json
from poolwise.runner.executors import Executor
from poolwise.runner.store import Store
from poolwise.runner.task_type import Progress, TaskType

Task = TypeVar("Task")


def run_missing(
    task_type: TaskType[Task],
    tasks: Sequence[Task],
    store: Store,
    executor: Executor,
    progress: Progress | None = None,
    min_tasks_per_process: int = 1,
) -> None:
    """Run the tasks that a store lacks; the caller must be the store's writer (`Store.writing`).

    Each record is stored as soon as its task finishes, so an interrupt or a kill loses only running tasks.

    Parameters
    ----------
    task_type
        Type of the tasks.
    tasks
        Tasks to run; duplicates run once.
    store
        Store of the records.
    executor
        Executor of the tasks. The results do not depend on it.
    progress
        Listener for the progress.
    min_tasks_per_process
        Minimum number of tasks per process that justifies starting another one.

    Raises
    ------
    PoolwiseError
        If a task fails; the message names the task.
    """
    wanted = {task_type.key(task): task for task in tasks}
    missing = {key: task for key, task in wanted.items() if not store.holds(key)}
    if missing:
        task_type.prepare(list(missing.values()))  # before the progress clock starts: compilation is not part of a task
    if progress is not None:
        progress.begin(len(wanted), len(wanted) - len(missing), sum(map(store.damaged, missing)))
    with closing(executor.results(task_type, _longest_first(task_type, missing, store), min_tasks_per_process)) as finished:
        for done in finished:
            store.write(done.key, done.record, done.label, done.seconds)
            if progress is not None:
                progress.advance(done.label, done.seconds)


def records(
    task_type: TaskType[Task],
    tasks: Sequence[Task],
    store: Store,
    executor: Executor,
    progress: Progress | None = None,
    min_tasks_per_process: int = 1,
) -> list[Json]:
    """Run missing tasks as `run_missing` does, and return the contents of all records in the order of the tasks."""
    run_missing(task_type, tasks, store, executor, progress, min_tasks_per_process)
    found = []
    for task in tasks:
        content = store.content(task_type.key(task))
        if content is None:
            raise InputError(
                "cannot read back the result just written", file=store.file, remedy="check what else writes to the folder"
            )
        found.append(content)
    return found


def _longest_first(task_type: TaskType[Task], missing: dict[str, Task], store: Store) -> dict[str, Task]:
    """Sort by the last known run time, longest first and unknown before all, so that no long task starts late."""
    seconds = {key: store.seconds(task_type.label(task)) for key, task in missing.items()}
    return dict(sorted(missing.items(), key=lambda pair: -(seconds[pair[0]] or float("inf"))))
