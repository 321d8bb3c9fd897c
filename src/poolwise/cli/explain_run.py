"""`poolwise explain log` and `explain run`: a job of a log, which is simulated first, or of a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.examples import command
from poolwise.cli.explain import ExplainOutput, JobId, check_explainable, explain_cell, explanations, show_explanation
from poolwise.cli.run_options import LogOptions
from poolwise.cli.shared_options import LogArgument, setting
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.explain import Explanation
    from poolwise.studies.cells import Cell


@command(explanations, "poolwise explain log catalog:example-sacct.txt 48020 --machine cerit-racks")
def log(log: LogArgument, job: JobId, options: LogOptions, output: ExplainOutput) -> None:
    """Simulate a job log and explain the wait of a job.

    Takes the options of `poolwise simulate`.
    """
    cell = options.cell(log)
    check_explainable(cell, log, "remove pass_per_event from the scheduler file")
    show_explanation(options.policy, cell, explain_cell(cell, job), output, options.files(log))


@command(
    explanations,
    "poolwise simulate catalog:example-sacct.txt --machine cerit-racks --schedule fcfs.csv",
    "poolwise explain run fcfs.csv 48020",
)
def run(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of `poolwise run`, or a file of `poolwise simulate --schedule`.")
    ],
    job: JobId,
    output: ExplainOutput,
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH=VALUE", help="Run of the study: a varied value, seed=N, or a key; repeatable."),
    ] = None,
    study: Annotated[
        str | None, typer.Option(metavar="STUDY", help="Study of the results, if another study wrote to the folder since.")
    ] = None,
    set_: list[Any] = setting("Setting that --study was run with; repeatable."),
) -> None:
    """Explain the wait of a job in a saved run.

    If jobs change their memory while they run, also show the memory that the job held and used.
    """
    if run.is_dir():
        _explain_study(run, job, output, cell or [], study, set_)
        return
    if cell or study is not None or set_:
        raise InputError("not a folder of results", file=run, field="RUN", remedy="give the folder of `poolwise run --out`")
    name, found_cell, found = _explain_schedule(run, job)
    show_explanation(name, found_cell, found, output, [run])


def _explain_study(
    folder: Path, job: int, output: ExplainOutput, selection: list[str], study: str | None, settings: list[Any]
) -> None:
    from poolwise.cli.saved_run import run_in_folder, run_of_study
    from poolwise.studies.cell_store import CellStore

    if study is None:
        name, cell = run_in_folder(folder, selection)
    else:
        name, cell = run_of_study(folder, study, settings, selection)
    check_explainable(cell, folder, "remove scheduler.pass_per_event and run the study again")
    found = explain_cell(cell, job, CellStore(folder).outcomes(cell))
    show_explanation(f"{name} {cell.label}", cell, found, output, [folder / "provenance.json"])


def _explain_schedule(file: Path, job: int) -> tuple[str, Cell, Explanation]:
    from poolwise.cli.saved_run import check_recorded, simulated_run
    from poolwise.studies.cells import workload_of

    recorded = simulated_run(file)
    if recorded is None:
        remedy = "give a file of `poolwise simulate --schedule FILE`, or use `poolwise explain log` for a job log"
        raise InputError("the file has no provenance", file=file, field="RUN", remedy=remedy)
    cell = recorded.cell()
    check_explainable(cell, file, "remove pass_per_event from the scheduler file and simulate again")
    found = explain_cell(cell, job)
    check_recorded(file, job, found.last_start, found.placement is not None)
    return f"{workload_of(cell).name} on {cell.machine.name}", cell, found
