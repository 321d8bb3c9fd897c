"""`poolwise explain`: why a job waited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.live_cluster import ClusterName, see
from poolwise.cli.run_options import RunOptions, ScopeChoice

if TYPE_CHECKING:
    from rich.table import Table

    from poolwise.explain import Episode, Explanation
    from poolwise.metrics import Outcomes
    from poolwise.studies.cells import Cell

LINES = 40
"""Episodes that the table shows without --all."""


@dataclass(frozen=True)
class StudyOptions:
    """Which run of a study: a selection of its cells; a study file and its settings where the folder holds several."""

    cell: tuple[str, ...]
    study: str | None
    settings: tuple[str, ...]


def explain(
    run: Path | None = typer.Argument(
        None,
        metavar="RUN",
        help="Folder of `poolwise run`, a file of `poolwise simulate --schedule`; or a trace, with --machine.",
    ),
    job: int | None = typer.Argument(None, metavar="JOB", help="Id of the job, as in the trace."),
    cell: list[str] = typer.Option([], metavar="PATH=VALUE", help="Which run of the study: what it varies, seed=N, or a key."),
    study: str | None = typer.Option(None, help="Study file of the results, if another study wrote to the folder since."),
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="What --study was run with."),
    machine: Path | None = typer.Option(None, help="With a trace: MACHINE.toml, or the name of a shipped machine."),
    processors: int | None = typer.Option(None, min=1, max=2**40, help="With a trace: N processors without memory."),
    order: str | None = typer.Option(None, help="With a trace: queue order, as in `poolwise simulate`.", show_default="fcfs"),
    backfill: str = typer.Option("easy", help="With a trace: backfilling."),
    placement: str = typer.Option("racks", help="With a trace: placement policy."),
    scope: ScopeChoice = typer.Option(ScopeChoice.RACK, help="With a trace: pools that a node may use."),
    format: str = typer.Option("auto", help="With a trace: its format."),
    map_: str | None = typer.Option(
        None, "--map", metavar="FIELD=COLUMN:UNIT,...", help="With a trace: its columns, as in `poolwise simulate`."
    ),
    seed: int = typer.Option(0, min=0, help="With a trace: seed of the jobs' sensitivities to remote memory."),
    all_: bool = typer.Option(False, "--all", help="Show all episodes of a long wait."),
    live: str | None = typer.Option(
        None, "--live", metavar="JOB", help="Instead of RUN and JOB: a job that waits on a cluster."
    ),
    cluster: ClusterName = typer.Option(ClusterName.SLURM, help="With --live: the kind of cluster."),
    partition: str | None = typer.Option(None, help="With --live: the partition; the cluster's default if not given."),
    scheduler: str | None = typer.Option(None, help="With --live: what decides there, SCHEDULER.toml or catalog:NAME."),
    report: Path | None = typer.Option(None, metavar="FILE.html", help="Write a page: the answer, and the nodes meanwhile."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
) -> None:
    """Explain why a job waited: what was short at each pass, how much was needed and free, and which job was in the way.

    Where running jobs' memory may change, also what it held and used over its run.
    """
    from poolwise.cli.output import print_json
    from poolwise.errors import InputError
    from poolwise.explain.sentences import answer_sentence
    from poolwise.studies.cell_store import CellStore

    if live is not None:
        if run is not None or scheduler is None:
            raise InputError("a job of a cluster is asked for", field="--live", remedy="give --live JOB and --scheduler alone")
        _explain_live(live, cluster, partition, scheduler, json)
        return
    if run is None or job is None:
        raise InputError("RUN and JOB are missing", field="RUN", remedy="give both, or --live JOB")
    if run.is_dir():
        if machine is not None or processors is not None or order is not None:
            raise InputError("results of a study have their machine and order", field="--machine", remedy="select with --cell")
        what, here = _in_study(run, StudyOptions(tuple(cell), study, tuple(set_)))
        outcomes = CellStore(run).outcomes(here)
        found = _explain(here, job, outcomes)
    else:
        if cell or study is not None or set_:
            raise InputError(
                f"{run} is not a folder of results", field="RUN", remedy="give the folder that `poolwise run --out` named"
            )
        if order is None and machine is None and processors is None:
            what, here, found = _simulated(run, job)
        else:
            options = RunOptions(
                run, machine, processors, order, backfill, placement, scope, format=format, map=map_, seed=seed
            )
            what, here = f"{order or 'fcfs'} {backfill} {scope.value}", options.cell()
            found = _explain(here, job)
    if report is not None:
        _write_report(report, what, here, found)
    if json:
        print_json({"run": what, "answer": answer_sentence(found), **found.to_dict()})
    else:
        _print(what, found, all_)


def _explain_live(name: str, cluster: ClusterName, partition: str | None, scheduler: str, json: bool) -> None:
    """Say why a job waits on a cluster now, if this scheduler decides there."""
    from poolwise.cli.live import named_scheduler
    from poolwise.cli.output import print_json, print_sentences
    from poolwise.live.platform import LiveView
    from poolwise.live.wait_reasons import WaitReasons
    from poolwise.loop import Loop

    platform, chosen = see(cluster, partition, scheduler), named_scheduler(scheduler)
    loop = Loop(platform, chosen)
    loop.apply_events(next(iter(platform.events())))  # a platform that is only seen refuses to start anything
    snapshot = platform.snapshot()
    rejected = {snapshot.table.name(row): why for row, why in loop.result.rejected.items()}
    found = None if name in rejected else WaitReasons(chosen, loop, snapshot).of(LiveView(loop.queue, snapshot).find(name))
    text = found.text if found is not None else rejected.get(name, "it can start now")
    if json:
        facts = (
            {}
            if found is None
            else {"resource": found.reason.resource, "needed": found.reason.needed, "free": found.reason.free}
        )
        print_json({"job": name, "text": text, "rule": None if found is None else found.reason.rule.value, **facts})
    else:
        print_sentences([f"job {name}: {text}"])


def _write_report(file: Path, what: str, cell: Cell, found: Explanation) -> None:
    from poolwise.report.gantt import wait_page
    from poolwise.report.page import write_page
    from poolwise.studies.cell_simulation import simulate_again

    write_page(wait_page(found, simulate_again(cell), what), file)


def _in_study(folder: Path, options: StudyOptions) -> tuple[str, Cell]:
    from poolwise.cli.saved_run import in_folder, of_study
    from poolwise.errors import InputError

    if options.study is None:
        name, cell = in_folder(folder, options.cell)
    else:
        name, cell = of_study(folder, options.study, options.settings, options.cell)
    if cell.scheduler.pass_per_event:
        remedy = "leave scheduler.pass_per_event out and run the study again"
        raise InputError("only runs with one pass an instant can be explained", field="--cell", remedy=remedy)
    return f"{name} {cell.label}", cell


def _simulated(file: Path, job: int) -> tuple[str, Cell, Explanation]:
    from poolwise.cli.saved_run import check_recorded, simulated
    from poolwise.errors import InputError
    from poolwise.studies.cells import workload_of

    run = simulated(file)
    if run is None:
        remedy = "give a file of `poolwise simulate --schedule FILE`, or a trace with --machine as in `poolwise simulate`"
        raise InputError("no file says how this was run", file=file, field="--order", remedy=remedy)
    cell = run.cell()
    if cell.scheduler.pass_per_event:
        remedy = "leave pass_per_event out of the scheduler file and simulate again"
        raise InputError("only runs with one pass an instant can be explained", file=file, field="RUN", remedy=remedy)
    found = _explain(cell, job)
    check_recorded(file, job, found.last_start, found.placement is not None)
    return f"{workload_of(cell).name} on {cell.machine.name}", cell, found


def _explain(cell: Cell, job: int, outcomes: Outcomes | None = None) -> Explanation:
    from dataclasses import replace

    from poolwise.explain import explain_wait, memory_stretches
    from poolwise.studies.cell_simulation import simulate_again
    from poolwise.studies.cells import workload_of
    from poolwise.studies.description import Configured

    what, workload = Configured.of(cell), workload_of(cell)
    changing = workload.memory_use is not None or what.scheduler.resizes  # then all of the run is simulated, and compared
    found = explain_wait(
        cell.machine,
        workload,
        what.scheduler,
        job,
        truth=what.truth,
        estimate=what.estimate,
        seed=cell.seed,
        outcomes=None if changing else outcomes,
    )
    if not changing:
        return found
    return replace(found, memory=memory_stretches(simulate_again(cell, outcomes), found.job.index))


def _print(what: str, found: Explanation, everything: bool) -> None:
    from rich.table import Table

    from poolwise.cli.console import out
    from poolwise.explain.sentences import answer_sentence, duration, held_by, memory_sentence

    def say(text: str) -> None:
        out.print(text, markup=False, highlight=False, soft_wrap=True)

    job, episodes = found.job, found.episodes
    say(answer_sentence(found))
    say(f"{what}: job {job.id}, submitted {duration(job.submit)} after the trace began")
    if episodes:
        table = Table(box=None, pad_edge=False)
        for heading in ("after", "for", "passes", "ahead"):
            table.add_column(heading, justify="right", overflow="fold")
        table.add_column("held back by", ratio=1, overflow="fold")
        for heading in ("needed", "free"):
            table.add_column(heading, justify="right", overflow="fold")
        table.add_column("in the way", overflow="fold")
        shown = len(episodes) if everything else LINES // 2
        hidden = max(0, len(episodes) - 2 * shown)
        for k, episode in enumerate(episodes):
            if k < shown or k >= shown + hidden:
                table.add_row(*_row(found, episode))
            elif k == shown:
                table.add_row("...", "", "", "", f"{hidden:,} more: --all shows them", "", "", "")
        out.print(table)
        for (rule, resource), ns in found.totals().items():
            say(f"  {duration(ns)} {held_by(rule, resource)}")
    say(_outcome(found))
    if found.memory:
        say(memory_sentence(found.memory))
        out.print(_memory_table(found, everything))


def _memory_table(found: Explanation, everything: bool) -> Table:
    """What the job held and used, stretch by stretch."""
    from rich.table import Table

    from poolwise.explain.sentences import duration
    from poolwise.units import format_memory

    table, stretches = Table(box=None, pad_edge=False), found.memory
    for heading in ("after", "for", "in nodes", "in pools", "used"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("", ratio=1, overflow="fold")
    shown = len(stretches) if everything else LINES // 2
    hidden = max(0, len(stretches) - 2 * shown)
    for k, one in enumerate(stretches):
        if shown <= k < shown + hidden:
            if k == shown:
                table.add_row("...", "", "", "", "", f"{hidden:,} more: --all shows them")
            continue
        held = [format_memory(one.local), format_memory(one.pooled), "" if one.used is None else format_memory(one.used)]
        last = k + 1 == len(stretches) or stretches[k + 1].run != one.run
        said = ["stands still for want of memory"] * one.stood_still + [f"then {one.outcome}"] * last
        table.add_row(duration(one.begin - found.job.submit), duration(one.end - one.begin), *held, ", ".join(said))
    return table


def _row(found: Explanation, episode: Episode) -> Iterator[str]:
    from poolwise.explain.sentences import duration

    reason, written = episode.reason, found.machine.amount_text
    yield duration(episode.start - found.job.submit)
    yield duration(episode.end - episode.start)
    yield f"{episode.passes:,}"
    yield _span(*(f"{n:,}" for n in episode.ahead))
    yield reason.text
    yield written(reason.resource, reason.needed) if reason.resource else ""
    yield _span(*(written(reason.resource, n) for n in episode.free)) if reason.resource else ""
    if reason.blocker is None:
        yield ""
        return
    held = "" if episode.reserved is None else _span(*(duration(ns - found.job.submit) for ns in episode.reserved))
    yield f"job {found.job.table.id[reason.blocker]}" + (f", reserved after {held}" if held else "")


def _outcome(found: Explanation) -> str:
    from poolwise.explain.sentences import duration

    if found.placement is not None:
        machine = found.machine
        where = [
            f"{machine.owners[owner]} {machine.amount_text(machine.resources[resource], taken)}"
            for _, owner, resource, taken in found.placement.rows()
        ]
        return f"started after {duration(found.wait)} on {', '.join(where)}"
    if found.rejected:
        return f"rejected after {duration(found.wait)}: {found.rejected}"
    return f"never started; the last pass was after {duration(found.wait)}"


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise explain catalog:example-sacct.txt 48020 --machine cerit-racks"))(explain)
