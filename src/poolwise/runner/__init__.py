"""Cached tasks: each record is stored under the hash of everything it depends on, so an interrupted run can resume.

Studies, plans, searches and reproductions ask a `TaskRunner` for records. It runs the tasks that its `Store` lacks on an
`Executor`.
"""

from poolwise.runner.executors import Executor, Local, checked_jobs, find_executor
from poolwise.runner.store import Store
from poolwise.runner.task_runner import TaskRunner
from poolwise.runner.task_type import Progress, Record, TaskType

__all__ = ["Executor", "Local", "Progress", "Record", "Store", "TaskRunner", "TaskType", "checked_jobs", "find_executor"]
