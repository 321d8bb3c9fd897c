"""Trials: computations that are kept, each under the hash of all that it depends on, so that a stopped run goes on.

Studies, plans and reproductions all run through here: `fill` does what a `Store` does not hold yet, where an `Executor` says.
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
