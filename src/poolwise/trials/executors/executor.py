"""What an executor is."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol, TypeVar

from poolwise.trials.bench import Bench
from poolwise.trials.work import FinishedTrial

Trial = TypeVar("Trial")


class Executor(Protocol):
    """Where trials are computed. The results do not depend on it."""

    def results(self, bench: Bench[Trial], trials: Mapping[str, Trial], worth: int = 1) -> Generator[FinishedTrial, None, None]:
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
