"""`poolwise reproduce`: measure a paper's results again and judge them claim by claim."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.examples import examples
from poolwise.cli.executors import ExecutorAddress, ExecutorName


def reproduce(
    name: str = typer.Argument(help="Name of a reproduction (`poolwise list reproductions`)."),
    quick: bool = typer.Option(False, "--quick", help="Fewer seeds and sizes: minutes instead of hours."),
    out: Path | None = typer.Option(None, help="Folder for the results; results/NAME by default."),
    figure: str = typer.Option(
        "", help="Only this figure or table of the paper, such as 8 or 'Table III'; its numbers are compared with the expected."
    ),
    set_: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="A setting of the reproduction, such as seeds=5 for nvme-composition."
    ),
    jobs: int | None = typer.Option(None, help="Worker processes; all cores if not given."),
    executor: ExecutorName = "local",
    executor_address: ExecutorAddress = None,
) -> None:
    """Reproduce a published system's results: figures, a report, and comparison.csv with every claim beside our value."""
    from collections import Counter
    from dataclasses import replace

    from rich.table import Table

    from poolwise import registry
    from poolwise.cli.console import err, resumable
    from poolwise.cli.console import out as stdout
    from poolwise.cli.output import provenance, write_provenance
    from poolwise.code_fingerprint import sources
    from poolwise.files.component import Component
    from poolwise.report import write_reproduction
    from poolwise.report.figure_scripts import compared
    from poolwise.reproductions.reproduction import Reproduction
    from poolwise.reproductions.reproduction import reproduce as run
    from poolwise.runner import find_executor
    from poolwise.runner.progress import ConsoleProgress
    from poolwise.studies.study import parse_setting

    registry.find("reproductions", name)
    reproduction: Reproduction = Component.of(name, dict(parse_setting(text) for text in set_)).make("reproductions")
    folder = out if out is not None else Path("results") / name
    folder.mkdir(parents=True, exist_ok=True)
    with (
        resumable(folder),
        find_executor(executor, executor_address, jobs) as where,
        ConsoleProgress(err) as progress,
    ):
        done = run(name, reproduction, folder, quick=quick, executor=where, progress=progress, figure=figure)
    source = {key: str(value) for key, value in provenance(0, []).items()}
    source["sources_sha256"] = sources(type(reproduction).__module__)
    with resumable(folder):
        write_reproduction(replace(done, provenance=source), folder)
        write_provenance(folder / "comparison.csv", source)
    failing = [row for row in done.rows if row.verdict == "fails"]
    if failing:
        table = Table(
            "what does not hold", "published", "measured", title=done.title, box=None, pad_edge=False, title_justify="left"
        )
        for row in failing:
            claim, cells = row.claim, row.cells()
            table.add_row(f"{claim.artifact}, {claim.condition}: {claim.metric} ({claim.unit})", cells[4], cells[5])
        stdout.print(table)
    if figure and not quick:
        for line in compared(done):
            stdout.print(line)
    count = Counter(row.verdict for row in done.rows)
    begin = "quick run: " if quick else ""
    stdout.print(
        f"{begin}{count['holds']} hold, {count['fails']} do not, {count['undetermined']} undetermined, "
        f"{count['not measured']} not measured, {count['shown']} shown",
        style="bold",
    )
    err.print(f"report: {folder / 'report.html'}", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise reproduce irop --quick --out results/irop"))(reproduce)
