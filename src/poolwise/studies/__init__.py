"""Studies: what to vary, run in parallel, resumable."""

from poolwise.files.machine import load_machine
from poolwise.studies.execution import run
from poolwise.studies.measured import CellResult
from poolwise.studies.results import StudyResult
from poolwise.studies.study import Study, load

__all__ = ["CellResult", "Study", "StudyResult", "load", "load_machine", "run"]
