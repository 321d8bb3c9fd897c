"""What an executor is."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol, TypeVar

from poolwise.runner.execution import FinishedTask
from poolwise.runner.task_type import TaskType

Trial = TypeVar("Trial")


class Executor(Protocol):
    """Where trials are computed. The results do not depend on it."""

    def results(
        self, bench: TaskType[Trial], trials: Mapping[str, Trial], worth: int = 1
    ) -> Generator[FinishedTask, None, None]:
        """Trials as they finish, in any order; closing the generator gives up those that have not.

        A worker that dies costs the trials that it ran, which are run again elsewhere. Errors of a trial name it.

        Parameters
        ----------
        trials
            Key -> trial; they are begun in this order.
        worth
            Trials that another process must have to do before it pays to start it.
        """
        ...
