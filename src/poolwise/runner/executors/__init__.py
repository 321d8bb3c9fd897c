"""Where trials are computed: the cores of this computer, or the workers of a Dask or a Ray cluster.

One contract, `Executor`; whoever computes, the caller alone writes, and what comes back is byte for byte the same.
"""

from poolwise.runner.executors.executor import Executor
from poolwise.runner.executors.local import Local, checked_jobs
from poolwise.runner.executors.lookup import find_executor

__all__ = ["Executor", "Local", "checked_jobs", "find_executor"]
