"""One trial, run: what comes of it, how long it took, and errors that name it."""

from __future__ import annotations

import time
from typing import NamedTuple, TypeVar

from poolwise.errors import InputError, PolicyError, PoolwiseError
from poolwise.own_code import failure_in
from poolwise.trials.bench import Bench, Record

Trial = TypeVar("Trial")


class FinishedTrial(NamedTuple):
    """A trial that has run: its key and label, what it left behind, and the seconds that it took."""

    key: str
    label: str
    record: Record
    seconds: float


def run_trial(bench: Bench[Trial], key: str, trial: Trial) -> FinishedTrial:
    """Run a trial; its errors name it."""
    begun, label = time.perf_counter(), bench.label(trial)
    try:
        return FinishedTrial(key, label, bench.run(trial), time.perf_counter() - begun)
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
