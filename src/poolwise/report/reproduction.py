"""The report of a reproduction: ours beside the published, claim by claim, with the paper's figures drawn from our runs."""

from __future__ import annotations

from pathlib import Path

from poolwise.files import write_whole
from poolwise.report.figures import save
from poolwise.report.page import Page, Section, Table, write
from poolwise.report.page import Row as PageRow
from poolwise.studies.comparison import COLUMNS, Row, to_csv
from poolwise.studies.reproduction import Reproduced


def write_reproduction(done: Reproduced, folder: Path) -> None:
    """Write comparison.csv, the figures (PNG, SVG, PDF) and report.html into a folder."""
    write_whole(folder / "comparison.csv", to_csv(done.rows).encode())
    (folder / "figures").mkdir(exist_ok=True)
    for figure in done.findings.figures:
        save(figure, folder / "figures")
    write(reproduction_page(done), folder / "report.html")


def reproduction_page(done: Reproduced) -> Page:
    """Put the report of a reproduction together."""
    count = done.count()
    judged = count["true"] + count["false"]
    lead = f"{count['true']} of {judged} published values and claims hold."
    failing = [_sentence(row) for row in done.rows if row.holds == "false"]
    because = [f"{count['shown']} more are only shown, {count['not_measured']} were not measured.", f"Source: {done.paper}."]
    sections = [Section("What does not hold, and why", failing)] if failing else []
    if done.findings.explanation:
        sections.append(Section("What the runs teach", done.findings.explanation))
    rows = [PageRow(row.cells(), row.holds if row.holds in ("true", "false") else "") for row in done.rows]
    table = Table("Every claim beside our value", [name.replace("_", " ") for name in COLUMNS], rows)
    return Page(
        title=f"{done.title}: reproduced",
        lead=lead,
        because=because,
        sections=sections,
        notes=done.findings.notes,
        figures=done.findings.figures,
        tables=[table],
        provenance=done.provenance,
    )


def _sentence(row: Row) -> str:
    claim, cells = row.claim, row.cells()
    published = f"published {cells[4]}, " if cells[4] else ""
    where = f"{claim.artifact}, {claim.condition}, {claim.metric}"
    return f"{where}: {published}measured {cells[5]} {claim.unit}. {row.note or 'Not explained yet.'}"
