"""Execution of one task, with its run time and errors that name it."""

from __future__ import annotations

import time
from typing import NamedTuple, TypeVar

from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.runner.task_type import Record, TaskType
from poolwise.user_code import user_failure

Task = TypeVar("Task")


class FinishedTask(NamedTuple):
    """A finished task: key, label, record and run time in seconds."""

    key: str
    label: str
    record: Record
    seconds: float


def run_task(task_type: TaskType[Task], key: str, task: Task) -> FinishedTask:
    """Run a task; errors name it."""
    begun, label = time.perf_counter(), task_type.label(task)
    try:
        return FinishedTask(key, label, task_type.run(task), time.perf_counter() - begun)
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
