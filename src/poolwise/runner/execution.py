"""Interface of executors, and execution of tasks in one process, with run times, and errors that name the task."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.runner.running import task_progress
from poolwise.runner.task_type import Record, TaskType
from poolwise.user_code import user_failure

Task = TypeVar("Task")


class FinishedTask(NamedTuple):
    """A finished task: key, label, record and run time in seconds."""

    key: str
    label: str
    record: Record
    seconds: float


Finished = list[FinishedTask]
"""The finished tasks of a group."""


class Executor(Protocol):
    """Runs tasks on some set of processes. The results do not depend on it."""

    def results(self, task_type: TaskType[Task], tasks: Mapping[str, Task]) -> Generator[FinishedTask, None, None]:
        """Yield tasks as they finish, in any order; closing the generator cancels the others.

        If a worker dies, its tasks run again elsewhere. Errors name the task.

        Parameters
        ----------
        task_type
            Type of the tasks.
        tasks
            Key -> task; they start in this order, except that one process runs each group (`TaskType.group`).
        """
        ...


def grouped(task_type: TaskType[Task], tasks: Mapping[str, Task]) -> list[dict[str, Task]]:
    """Return the tasks (key -> task) in groups, each of which runs in one process, ordered by their first tasks."""
    groups: dict[Any, dict[str, Task]] = {}
    for key, task in tasks.items():
        groups.setdefault(task_type.group(task) or key, {})[key] = task
    return list(groups.values())


def run_tasks(task_type: TaskType[Task], tasks: Mapping[str, Task]) -> Iterator[FinishedTask]:
    """Run tasks one after another; errors name the task."""
    for key, task in tasks.items():
        begun, label = time.perf_counter(), task_type.label(task)
        try:
            with task_progress(key):
                record = task_type.run(task)
        except InputError as error:
            message = f"{error.message} (in cell {label})"
            raise type(error)(message, file=error.file, line=error.line, field=error.field, remedy=error.remedy) from error
        except PoolwiseError as error:
            raise type(error)(f"{error} (in cell {label})") from error
        except Exception as error:
            failure = user_failure(error)
            if failure is not None:
                raise PolicyError(f"{failure} (in cell {label})") from error
            error.add_note(f"in cell {label}")
            raise
        yield FinishedTask(key, label, record, time.perf_counter() - begun)
