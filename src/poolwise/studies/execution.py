"""Execution of a study: runs missing cells and measures all cells."""

from __future__ import annotations

from pathlib import Path

from poolwise.runner import Executor, Local, Progress, run_missing
from poolwise.studies.cell_simulation import Cells
from poolwise.studies.cell_store import CellStore
from poolwise.studies.results import StudyResult, measure
from poolwise.studies.study import Study, load


def run(
    study: str | Path | Study,
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> StudyResult:
    """Run the cells of a study that are missing, measure all cells and write the results; re-run to resume.

    Parameters
    ----------
    study
        STUDY.toml, the name of a shipped study, or what `load` returned.
    out
        Folder for cells, results and provenance, made if it does not exist; cells that it holds are not repeated. By default
        results/STUDY.
    jobs
        Number of processes on this computer; all cores if not given or -1. The results do not depend on it.
    progress
        Receives the progress, such as `poolwise.runner.progress.ConsoleProgress`.
    executor
        Simulates the cells instead of this computer; see `poolwise.runner.find_executor`.

    Returns
    -------
    StudyResult

    Raises
    ------
    InputError
        The study is invalid, a cell cannot run (the error names the cell), or another process writes to the same folder.

    Examples
    --------
    >>> import poolwise
    >>> settings = {"workload.jobs": 600, "scheduler.order": "fm", "machine.pool.memory.memory": "768 GiB"}
    >>> result = poolwise.run(poolwise.load("cerit-pools", settings), "results/fm", jobs=1)
    >>> result.frame().select("key", "mean_bounded_slowdown").shape
    (1, 2)
    """
    study = study if isinstance(study, Study) else load(study)
    executor = Local(jobs) if executor is None else executor
    store = CellStore(Path("results") / study.name if out is None else Path(out))
    with store.writing():
        run_missing(Cells(), study.runs, store, executor, progress)
        result = measure(study, store)
        result.write()
    return result
