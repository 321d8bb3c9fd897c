"""Diagnostics of a workload on a machine before any advice: load, jobs that can never run, and outliers."""

from poolwise.diagnostics.outliers import Outliers, few, ids_text
from poolwise.diagnostics.workload import Diagnostics, NeverRun

__all__ = ["Diagnostics", "NeverRun", "Outliers", "few", "ids_text"]
