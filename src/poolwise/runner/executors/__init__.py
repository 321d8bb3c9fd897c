"""Executors of tasks: the cores of this computer, or the workers of a Dask or Ray cluster.

All implement `Executor`. Only the calling process writes records, and every executor returns identical bytes.
"""

from poolwise.runner.executors.executor import Executor
from poolwise.runner.executors.local import Local, checked_jobs
from poolwise.runner.executors.lookup import find_executor

__all__ = ["Executor", "Local", "checked_jobs", "find_executor"]
