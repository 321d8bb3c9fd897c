"""Task interface: key, label, group, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from poolwise.hashing import Json

Task = TypeVar("Task", contravariant=True)


@dataclass(frozen=True)
class Record:
    """Result of a task.

    Attributes
    ----------
    content : plain data, equal for equal tasks
    files : suffix (such as "parquet") -> bytes of a file stored with the record
    """

    content: Json = field(repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class TaskType(Protocol[Task]):
    """A type of task. Instances are pickled and sent to worker processes.

    Attributes
    ----------
    min_tasks_per_process : number of tasks that justifies starting another local process; more than 1 for short tasks
    """

    min_tasks_per_process: ClassVar[int] = 1

    def key(self, task: Task) -> str:
        """Return the SHA-256 of everything that the result depends on; the key of the task's record."""
        ...

    def label(self, task: Task) -> str:
        """Return the task's name in messages."""
        ...

    def run(self, task: Task) -> Record:
        """Run one task. The caller measures its run time."""
        ...

    def group(self, task: Task) -> str | None:
        """Return a name shared by tasks that cost less when one process runs them in turn; None for a task without a group."""
        return None

    def cost_kind(self, task: Task) -> str:
        """Return a name shared by tasks that take a similar time; used to estimate the time left."""
        return ""

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Do work needed once before these tasks run, such as compiling kernels; not called in workers."""
        return


class Progress(Protocol):
    """A listener for the progress of tasks."""

    def begin(self, total: int, done: int, damaged: int) -> None:
        """Begin a run of `total` tasks, of which the store already holds `done`; `damaged` ones are run again."""
        ...

    def advance(self, label: str, seconds: float) -> None:
        """Record that one more task is stored, which took this many core seconds."""
        ...


@runtime_checkable
class EstimatingProgress(Progress, Protocol):
    """A listener that estimates the time left from the kinds of the tasks."""

    def expect(self, kinds: Mapping[str, str]) -> None:
        """Receive the label and the kind of each task that will run (`TaskType.cost_kind`), after `begin`."""
        ...
