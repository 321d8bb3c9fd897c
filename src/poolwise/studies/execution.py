"""Runs the cells of a study that are not done yet, and measures all of them."""

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
    """Run what is missing of a study and measure everything.

    Raises InputError, also where another process writes to the same folder; errors of a cell name the cell.

    Parameters
    ----------
    out
        Folder for cells, results and provenance; made if it does not exist. Cells that it holds already are not run again.
    jobs
        Processes on this computer; all cores if not given or -1. The results do not depend on it.
    executor
        Where the cells are simulated in the place of this computer, see `poolwise.runner.find_executor`.
    """
    executor = Local(jobs) if executor is None else executor
    store = CellStore(Path(out))
    with store.writing():
        run_missing(Cells(), study.runs, store, executor, progress)
        result = measure(study, store)
        result.write()
    return result
