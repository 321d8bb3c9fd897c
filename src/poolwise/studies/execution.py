"""Execution of a study: runs missing cells and measures all cells."""

from __future__ import annotations

from pathlib import Path

from poolwise.runner import Executor, Local, Progress, run_missing
from poolwise.studies.cell_simulation import Cells
from poolwise.studies.cell_store import CellStore
from poolwise.studies.results import StudyResult, measure
from poolwise.studies.study import Study


def run(
    study: Study,
    out: str | Path,
    jobs: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> StudyResult:
    """Run the missing cells of a study and measure all cells.

    Parameters
    ----------
    study
        Study to run.
    out
        Folder for cells, results and provenance; created if it does not exist. Cells that it already holds are not run again.
    jobs
        Number of local processes; all cores if None or -1. The results do not depend on it.
    progress
        Listener for the progress of the runs.
    executor
        Executor of the cells instead of local processes, see `poolwise.runner.find_executor`.

    Raises
    ------
    InputError
        If an input is invalid, or if another process writes to the same folder; errors of a cell name the cell.
    """
    executor = Local(jobs) if executor is None else executor
    store = CellStore(Path(out))
    with store.writing():
        run_missing(Cells(), study.runs, store, executor, progress)
        result = measure(study, store)
        result.write()
    return result
