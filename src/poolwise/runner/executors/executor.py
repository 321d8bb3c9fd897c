"""Interface of executors."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol, TypeVar

from poolwise.runner.execution import FinishedTask
from poolwise.runner.task_type import TaskType

Task = TypeVar("Task")


class Executor(Protocol):
    """Runs tasks on some set of processes. The results do not depend on it."""

    def results(
        self, task_type: TaskType[Task], tasks: Mapping[str, Task], min_tasks_per_process: int = 1
    ) -> Generator[FinishedTask, None, None]:
        """Yield tasks as they finish, in any order; closing the generator cancels the others.

        If a worker dies, its tasks run again elsewhere. Errors of a task name it.

        Parameters
        ----------
        task_type
            Type of the tasks.
        tasks
            Key -> task; they start in this order.
        min_tasks_per_process
            Minimum number of tasks per process that justifies starting another one.
        """
        ...
