"""`poolwise explain`: why a job waited, in the results of a study, in a simulated log, or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.app import app
from poolwise.cli.examples import command
from poolwise.cli.live_cluster import ClusterName, KubeconfigOption, observe
from poolwise.cli.output import provenance, show_answer
from poolwise.cli.panels import OUTPUT
from poolwise.cli.run_options import LogOptions
from poolwise.cli.shared_options import (
    ClusterSchedulerOption,
    JsonOption,
    LogArgument,
    PartitionOption,
    PodSchedulerOption,
    setting,
)
from poolwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from poolwise.explain import Explanation
    from poolwise.live.platform import LivePlatform
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
            metavar="FILE.html",
            help="Write an HTML page with the explanation and the node usage during the wait.",
            rich_help_panel=OUTPUT,
        ),
    ] = None


def explain_cell(cell: Cell, job: int, outcomes: Outcomes | None = None) -> Explanation:
    """Simulate a cell again and explain the wait of a job; saved outcomes, if given, let it skip part of the simulation."""
    from dataclasses import replace

    from poolwise.explain import explain_wait, memory_stretches
    from poolwise.studies.cell_simulation import simulate_again
    from poolwise.studies.cells import workload_of
    from poolwise.studies.description import ConfiguredRun

    configured, workload = ConfiguredRun.of(cell), workload_of(cell)
    varies = workload.memory_use is not None or configured.scheduler.resizes  # then the whole run is simulated and compared
    explanation = explain_wait(
        workload,
        cell.machine,
        configured.scheduler,
        job,
        model=configured.model,
        estimate=configured.estimate,
        seed=cell.seed,
        outcomes=None if varies else outcomes,
    )
    if not varies:
        return explanation
    return replace(explanation, memory=memory_stretches(simulate_again(cell, outcomes), explanation.job.index))


def check_explainable(cell: Cell, file: Path, remedy: str) -> None:
    """Raise InputError for a run with one scheduling pass per event, which explanations do not support."""
    if cell.scheduler.pass_per_event:
        raise InputError("only runs with one pass per instant can be explained", file=file, remedy=remedy)


def show_explanation(name: str, cell: Cell, explanation: Explanation, output: ExplainOutput, inputs: Iterable[Path]) -> None:
    """Print an explanation as text or JSON, and write its page if requested."""
    from poolwise.explain import wait_answer

    answer = wait_answer(explanation, name)
    if output.report is not None:
        from poolwise.report.gantt import with_wait_figures
        from poolwise.report.page import write_report
        from poolwise.studies.cell_simulation import simulate_again

        write_report(with_wait_figures(answer, explanation, simulate_again(cell)), output.report)
    content, more = answer.content if output.json else None, None if output.all_ else "--all shows them"
    show_answer(answer, content, provenance(cell.seed, inputs), output.report, answer.tables, more)


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
        typer.Option(metavar="PATH=VALUE", help="Select a run of the study by a varied value, seed=N, or a key; repeatable."),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="STUDY", help="Study that produced the results, if another study has since written to the folder."
        ),
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
        raise InputError("not a results folder", file=run, field="RUN", remedy="give the folder of `poolwise run --out`")
    name, explained_cell, wait = _explain_schedule(run, job)
    show_explanation(name, explained_cell, wait, output, [run])


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
    explanation = explain_cell(cell, job, CellStore(folder).outcomes(cell))
    show_explanation(f"{name} {cell.label}", cell, explanation, output, [folder / "provenance.json"])


def _explain_schedule(file: Path, job: int) -> tuple[str, Cell, Explanation]:
    from poolwise.cli.saved_run import check_recorded, simulated_run
    from poolwise.studies.cells import workload_of

    recorded = simulated_run(file)
    if recorded is None:
        remedy = "give a file of `poolwise simulate --schedule FILE`, or use `poolwise explain log` for a job log"
        raise InputError("the file has no provenance", file=file, field="RUN", remedy=remedy)
    cell = recorded.cell()
    check_explainable(cell, file, "remove pass_per_event from the scheduler file and simulate again")
    explanation = explain_cell(cell, job)
    check_recorded(file, job, explanation.last_start, explanation.placement is not None)
    return f"{workload_of(cell).name} on {cell.machine.name}", cell, explanation


live = typer.Typer(help="Explain why a job waits on a cluster now.", no_args_is_help=True)


@command(live, "poolwise explain live slurm 4711 --scheduler catalog:fm-easy")
def slurm(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Id of the waiting job.")],
    scheduler: ClusterSchedulerOption,
    partition: PartitionOption = None,
    json: JsonOption = False,
) -> None:
    """Explain why a job waits on a Slurm cluster."""
    _explain(job, observe(ClusterName.SLURM, partition, scheduler), scheduler, json)


@command(live, "poolwise explain live kubernetes default/p5 --scheduler catalog:fm-easy")
def kubernetes(
    pod: Annotated[str, typer.Argument(metavar="POD", help="Waiting pod, as NAMESPACE/NAME.")],
    scheduler: ClusterSchedulerOption,
    name: PodSchedulerOption = "poolwise",
    kubeconfig: KubeconfigOption = None,
    json: JsonOption = False,
) -> None:
    """Explain why a pod waits on a Kubernetes cluster."""
    _explain(pod, observe(ClusterName.KUBERNETES, name, scheduler, kubeconfig), scheduler, json)


def _explain(job: str, platform: LivePlatform, scheduler: str, json: bool) -> None:
    """Print the reason why a job waits under the given scheduler."""
    from poolwise.cli.live import named_scheduler
    from poolwise.live.platform import LiveView
    from poolwise.live.wait_reasons import WaitReasons
    from poolwise.loop import Loop
    from poolwise.presentation.answer import Answer

    chosen = named_scheduler(scheduler)
    loop = Loop(platform, chosen)
    loop.step(next(iter(platform.events())))  # an observed platform refuses every start
    snapshot = platform.snapshot()
    rejected = {snapshot.table.name(row): why for row, why in loop.result.rejected.items()}
    wait = None
    if job not in rejected:
        row = LiveView(loop.queue, snapshot).find(job)
        wait = WaitReasons(chosen, loop, snapshot, (row,)).of(row)
    text = wait.text if wait is not None else rejected.get(job, "it can start now")
    content: dict[str, object] = {"job": job, "text": text, "cause": None}
    if wait is not None:
        reason = wait.reason
        content |= {"cause": reason.cause.value} | {name: getattr(reason, name) for name in ("resource", "needed", "free")}
    show_answer(Answer(headline=f"job {job}: {text}"), content if json else None, provenance(None, []))


explanations.add_typer(live, name="live")
app.add_typer(explanations, name="explain")
