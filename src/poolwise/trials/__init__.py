"""Trials: computations that are kept, each under the hash of all that it depends on, so that a stopped run goes on.

Studies, plans and reproductions all run through here: `fill` does what a `Store` does not hold yet, where an `Executor` says.
"""

from poolwise.trials.bench import Bench, Progress, Record
from poolwise.trials.executors import Executor, Local, checked_jobs, find_executor
from poolwise.trials.fill import fill, records
from poolwise.trials.store import Store

__all__ = ["Bench", "Executor", "Local", "Progress", "Record", "Store", "checked_jobs", "fill", "find_executor", "records"]
