"""`poolwise overview`: summarize several reproductions on one page."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.atomic_write import check_writable, write_whole
from poolwise.cli.app import app
from poolwise.cli.examples import command


@command(app, "poolwise overview irop.csv --out overview.md")
def overview(
    results: list[Path] = typer.Argument(
        metavar="RESULT...", help="Results of `poolwise reproduce`: folders, or comparison files named after the reproduction."
    ),
    out: Path | None = typer.Option(None, metavar="FILE", help="Write the page (Markdown) to a file instead of stdout."),
) -> None:
    """Summarize reproductions on one page.

    Counts the published values and claims that hold, and lists each that fails, with the reason.
    """
    from poolwise import registry
    from poolwise_reproductions.overview import overview as page
    from poolwise_reproductions.overview import read_comparison, read_notes

    names = registry.names("reproductions")
    titles = {name: registry.find("reproductions", name).title for name in names}
    folders = {path.name: path / "comparison.csv" for path in results if path.is_dir()}
    files = folders | {path.stem: path for path in results if not path.is_dir()}
    text = page(
        {name: read_comparison(path) for name, path in files.items()},
        titles,
        {name: read_notes(path) for name, path in files.items()},
        {name: report.name for name, path in files.items() if (report := path.with_name(f"{name}.html")).is_file()},
    )
    if out is None:
        typer.echo(text, nl=False)
    else:
        check_writable(out)
        write_whole(out, text.encode())
