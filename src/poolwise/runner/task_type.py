"""What a trial is: a bench says what it is called, what it depends on and how it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from poolwise.hashing import Json

Trial = TypeVar("Trial", contravariant=True)


@dataclass(frozen=True)
class Record:
    """What a trial leaves behind.

    Attributes
    ----------
    content : plain data, the same for the same trial
    files : ending -> bytes of a file that is kept beside it, such as "parquet"
    """

    content: Json = field(repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class TaskType(Protocol[Trial]):
    """Where trials are run; it is pickled into the processes that do."""

    def key(self, trial: Trial) -> str:
        """SHA-256 of everything that the result depends on; it names the trial's files."""
        ...

    def label(self, trial: Trial) -> str:
        """What messages call a trial."""
        ...

    def run(self, trial: Trial) -> Record:
        """Run one trial. The caller measures the time that it takes."""
        ...

    def prepare(self, trials: Sequence[Trial]) -> None:
        """Do once what should happen neither while these trials run nor in every worker, such as compiling kernels."""
        return


class Progress(Protocol):
    """A listener that is told how far the trials are."""

    def begin(self, total: int, done: int, damaged: int) -> None:
        """`done` of `total` trials are kept from before; `damaged` ones were found and are run again."""
        ...

    def advance(self, label: str, seconds: float) -> None:
        """One more trial is kept; it took this many seconds of a core."""
        ...
