"""What to know of a workload on a machine before any advice: its load, jobs that can never run, and jobs far above the rest."""

from poolwise.sanity.few_jobs import ids_text
from poolwise.sanity.outliers import Outliers, few
from poolwise.sanity.workload import NeverRun, Sanity

__all__ = ["NeverRun", "Outliers", "Sanity", "few", "ids_text"]
