"""Studies: parameter sweeps that run in parallel and resume after an interruption."""

from poolwise.files.machine import load_machine
from poolwise.studies.measured import CellResult
from poolwise.studies.results import StudyResult, run
from poolwise.studies.study import Study, load

__all__ = ["CellResult", "Study", "StudyResult", "load", "load_machine", "run"]
