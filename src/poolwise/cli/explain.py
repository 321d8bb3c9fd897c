"""`poolwise explain`: why a job waited, in the results of a study, in a simulated log, or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.app import app
from poolwise.cli.output import print_json, provenance
from poolwise.cli.panels import OUTPUT
from poolwise.cli.shared_options import JsonOption
from poolwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from poolwise.explain import Explanation
    from poolwise.metrics import Outcomes
    from poolwise.studies.cells import Cell

explanations = typer.Typer(
    help="Explain why a job waited.\n\nLists, for each scheduling pass, the resource that was short, the amounts needed and "
    "free, and the blocking job.",
    no_args_is_help=True,
)

JobId = Annotated[int, typer.Argument(metavar="JOB", help="Id of the job in the log.")]


@dataclass(frozen=True)
class ExplainOutput:
    """Output options of an explained wait."""

    json: JsonOption = False
    all_: Annotated[bool, typer.Option("--all", help="Show all episodes of a long wait.", rich_help_panel=OUTPUT)] = False
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Write a page with the explanation and the node usage meanwhile.", rich_help_panel=OUTPUT
        ),
    ] = None


def explain_cell(cell: Cell, job: int, outcomes: Outcomes | None = None) -> Explanation:
    """Simulate a cell again and explain the wait of a job; with saved outcomes, part of the simulation is skipped."""
    from dataclasses import replace

    from poolwise.explain import explain_wait, memory_stretches
    from poolwise.studies.cell_simulation import simulate_again
    from poolwise.studies.cells import workload_of
    from poolwise.studies.description import ConfiguredRun

    configured, workload = ConfiguredRun.of(cell), workload_of(cell)
    varies = workload.memory_use is not None or configured.scheduler.resizes  # then the whole run is simulated and compared
    found = explain_wait(
        workload,
        cell.machine,
        configured.scheduler,
        job,
        truth=configured.truth,
        estimate=configured.estimate,
        seed=cell.seed,
        outcomes=None if varies else outcomes,
    )
    if not varies:
        return found
    return replace(found, memory=memory_stretches(simulate_again(cell, outcomes), found.job.index))


def check_explainable(cell: Cell, file: Path, remedy: str) -> None:
    """Raise InputError for a run with one scheduling pass per event, which explanations do not support."""
    if cell.scheduler.pass_per_event:
        raise InputError("only runs with one pass per instant can be explained", file=file, remedy=remedy)


def show_explanation(name: str, cell: Cell, found: Explanation, output: ExplainOutput, inputs: Iterable[Path]) -> None:
    """Print an explanation as text or JSON, and write its page if requested."""
    from poolwise.cli.explain_text import print_explanation
    from poolwise.explain.sentences import answer_sentence

    if output.report is not None:
        _write_report(output.report, name, cell, found)
    if output.json:
        print_json({"run": name, "answer": answer_sentence(found), **found.to_dict()}, provenance(cell.seed, inputs))
    else:
        print_explanation(name, found, output.all_)


def _write_report(file: Path, name: str, cell: Cell, found: Explanation) -> None:
    from poolwise.report.gantt import wait_answer
    from poolwise.report.page import write_report
    from poolwise.studies.cell_simulation import simulate_again

    write_report(wait_answer(found, simulate_again(cell), name), file)


app.add_typer(explanations, name="explain")
