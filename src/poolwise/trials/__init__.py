"""Trials: computations that are kept, each under the hash of all that it depends on, so that a stopped run goes on.

Studies, plans and reproductions all run through here: `fill` does on all cores what a `Store` does not hold yet.
"""

from poolwise.trials.bench import Bench, Progress, Record
from poolwise.trials.fill import checked_jobs, fill, records
from poolwise.trials.store import Store

__all__ = ["Bench", "Progress", "Record", "Store", "checked_jobs", "fill", "records"]
