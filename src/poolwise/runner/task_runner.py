"""Execution of the tasks that a store lacks; each record is stored as soon as its task finishes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

from poolwise.errors import InputError
from poolwise.hashing import Json
from poolwise.runner.executors import Executor
from poolwise.runner.store import Store
from poolwise.runner.task_type import EstimatingProgress, Progress, TaskType

Task = TypeVar("Task")
Records = TypeVar("Records", bound=Store)


@dataclass(frozen=True)
class TaskRunner(Generic[Records]):
    """Runs the tasks that a store lacks; studies, plans, searches and reproductions request records from it.

    Attributes
    ----------
    store : the records; the caller must be its writer (`Store.writing`)
    executor : where tasks run; the records do not depend on it
    progress : listener that receives the progress
    """

    store: Records
    executor: Executor
    progress: Progress | None = None

    def run(self, task_type: TaskType[Task], tasks: Sequence[Task]) -> None:
        """Run the tasks without a record; duplicates run once.

        Each record is stored as soon as its task finishes, so an interrupt or a kill loses only running tasks. Raises
        PoolwiseError if a task fails; the message names the task.
        """
        wanted = {task_type.key(task): task for task in tasks}
        missing = {key: task for key, task in wanted.items() if not self.store.holds(key)}
        if missing:
            task_type.prepare(list(missing.values()))  # before the progress clock starts: compilation is not part of a task
        if self.progress is not None:
            self.progress.begin(len(wanted), len(wanted) - len(missing), sum(map(self.store.damaged, missing)))
            if isinstance(self.progress, EstimatingProgress):
                self.progress.expect({task_type.label(task): task_type.cost_kind(task) for task in missing.values()})
        with closing(self.executor.results(task_type, self._longest_first(task_type, missing))) as finished:
            for done in finished:
                self.store.write(done.key, done.record, done.label, done.seconds)
                if self.progress is not None:
                    self.progress.advance(done.label, done.seconds)

    def records(self, task_type: TaskType[Task], tasks: Sequence[Task]) -> list[Json]:
        """Run the tasks without a record, and return the contents of all records in the order of the tasks."""
        self.run(task_type, tasks)
        return [self._stored(task_type.key(task)) for task in tasks]

    def _stored(self, key: str) -> Json:
        content = self.store.content(key)
        if content is None:
            remedy = "check whether another process writes to the folder"
            raise InputError("cannot read back the result just written", file=self.store.file, remedy=remedy)
        return content

    def _longest_first(self, task_type: TaskType[Task], missing: dict[str, Task]) -> dict[str, Task]:
        """Sort by the last known run time, unknown ones first and then the longest, so that no long task starts late.

        The first task of each kind precedes all others, so that the time left can be estimated.
        """
        seconds = {key: self.store.seconds(task_type.label(task)) or float("inf") for key, task in missing.items()}
        ranked = sorted(missing.items(), key=lambda pair: -seconds[pair[0]])
        first = {task_type.cost_kind(task): key for key, task in reversed(ranked)}
        return dict(sorted(ranked, key=lambda pair: first[task_type.cost_kind(pair[1])] != pair[0]))
