"""One trial, run: what comes of it, how long it took, and errors that name it."""

from __future__ import annotations

import time
from typing import NamedTuple, TypeVar

from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.runner.task_type import Record, TaskType
from poolwise.user_code import failure_in

Trial = TypeVar("Trial")


class FinishedTask(NamedTuple):
    """A trial that has run: its key and label, what it left behind, and the seconds that it took."""

    key: str
    label: str
    record: Record
    seconds: float


def run_trial(bench: TaskType[Trial], key: str, trial: Trial) -> FinishedTask:
    """Run a trial; its errors name it."""
    begun, label = time.perf_counter(), bench.label(trial)
    try:
        return FinishedTask(key, label, bench.run(trial), time.perf_counter() - begun)
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
