"""Cached tasks: each record is stored under the hash of everything it depends on, so an interrupted run can resume.

Studies, plans and reproductions all use this package: `run_missing` runs on an `Executor` the tasks that a `Store` lacks.
"""

from poolwise.runner.executors import Executor, Local, checked_jobs, find_executor
from poolwise.runner.run_missing import records, run_missing
from poolwise.runner.store import Store
from poolwise.runner.task_type import Progress, Record, TaskType

__all__ = [
    "Executor",
    "Local",
    "Progress",
    "Record",
    "Store",
    "TaskType",
    "checked_jobs",
    "find_executor",
    "records",
    "run_missing",
]
