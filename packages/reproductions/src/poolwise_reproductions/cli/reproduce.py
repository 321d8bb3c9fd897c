"""`poolwise reproduce`: measure the results of a paper again and assess each claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from poolwise.cli.app import app
from poolwise.cli.console import err, print_line, resumable
from poolwise.cli.console import progress as show
from poolwise.cli.examples import command
from poolwise.cli.output import provenance, write_provenance
from poolwise.cli.shared_options import ComputeOptions, setting
from poolwise.cli.tables import print_table
from poolwise.presentation.table import Table


@command(app, "poolwise reproduce irop --quick --out results/irop")
def reproduce(
    name: str = typer.Argument(metavar="NAME", help="Name of a reproduction (`poolwise list reproductions`)."),
    quick: bool = typer.Option(False, "--quick", help="Use fewer seeds and sizes: minutes instead of hours."),
    out: Path | None = typer.Option(None, metavar="DIR", help="Folder for the results; defaults to results/NAME."),
    figure: str = typer.Option(
        "",
        metavar="FIGURE",
        help="Only this figure or table of the paper, such as 8 or 'Table III', compared with the expected numbers.",
    ),
    set_: list[Any] = setting("Setting of the reproduction, such as seeds=5 for nvme-composition; repeatable."),
    compute: ComputeOptions = ComputeOptions(),
) -> None:
    """Reproduce the published results of a system.

    Writes figures, a report, and comparison.csv with each published value and the measured one.
    """
    from collections import Counter
    from dataclasses import replace

    from poolwise import registry
    from poolwise.code_fingerprint import sources
    from poolwise.files.component import Component
    from poolwise.runner.progress import ConsoleProgress
    from poolwise_reproductions.figure_scripts import compare_figures
    from poolwise_reproductions.report import verdict_counts, write_reproduction
    from poolwise_reproductions.reproduction import Reproduction
    from poolwise_reproductions.reproduction import reproduce as run

    registry.find("reproductions", name)
    reproduction: Reproduction = Component.of(name, dict(set_)).make("reproductions")
    folder = out if out is not None else Path("results") / name
    folder.mkdir(parents=True, exist_ok=True)
    with resumable(folder), compute.workers() as workers, ConsoleProgress(err) as progress:
        done = run(name, reproduction, folder, quick=quick, executor=workers, progress=progress, figure=figure)
    source = {key: str(value) for key, value in provenance(0, []).items()}
    source["sources_sha256"] = sources(type(reproduction).__module__)
    with resumable(folder):
        write_reproduction(replace(done, provenance=source), folder)
        write_provenance(folder / "comparison.csv", source)
    failing = [row for row in done.rows if row.verdict == "fails"]
    if failing:
        rows = [
            [f"{claim.artifact}, {claim.condition}: {claim.metric} ({claim.unit})", *row.cells()[4:6]]
            for row in failing
            for claim in [row.claim]
        ]
        print_table(Table(done.title, ["claims that fail", "published", "measured"], rows))
    if figure and not quick:
        for line in compare_figures(done):
            print_line(line)
    count: Counter[str] = Counter(row.verdict for row in done.rows)
    begin = "quick run: " if quick else ""
    print_line(f"{begin}{verdict_counts(count)}", style="bold")
    show(f"report: {folder / 'report.html'}")
