"""The report of a reproduction: our values beside the published ones, and the paper's figures drawn from our runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from poolwise.atomic import write_whole
from poolwise.compare.published import COLUMNS, ClaimRow, claims_csv
from poolwise.report.figures import save
from poolwise.report.page import Page, PageSection, PageTable, write_page
from poolwise.report.page import TableRow as PageRow
from poolwise.reproductions.reproduction import Reproduced

SHOWN = 3
"""Claims named with a reason; the table below has all of them."""


def write_reproduction(done: Reproduced, folder: Path) -> None:
    """Write comparison.csv, notes.txt, the figures (PNG, SVG, PDF) and report.html into a folder."""
    write_whole(folder / "comparison.csv", claims_csv(done.rows).encode())
    write_whole(folder / "notes.txt", "".join(f"{note}\n" for note in done.findings.notes).encode())
    (folder / "figures").mkdir(exist_ok=True)
    for figure in done.findings.figures:
        save(figure, folder / "figures")
    write_page(reproduction_page(done), folder / "report.html")


def reproduction_page(done: Reproduced) -> Page:
    """Put the report of a reproduction together."""
    count = done.count()
    judged = count["true"] + count["false"]
    lead = f"{count['true']} of {judged} published values and claims hold."
    failing = _by_reason(done.rows)
    because = [f"{count['shown']} more are only shown, {count['not_measured']} were not measured.", f"Source: {done.paper}."]
    sections = [PageSection("What does not hold, and why", failing)] if failing else []
    if done.findings.explanation:
        sections.append(PageSection("What the runs teach", done.findings.explanation))
    rows = [PageRow(row.cells(), row.holds if row.holds in ("true", "false") else "") for row in done.rows]
    shown = [PageTable(t.title, t.columns, [PageRow(row) for row in t.rows], t.note) for t in done.findings.tables]
    claims = PageTable("Every claim beside our value", [name.replace("_", " ") for name in COLUMNS], rows)
    return Page(
        title=f"{done.title}: reproduced",
        lead=lead,
        because=because,
        sections=sections,
        notes=done.findings.notes,
        figures=done.findings.figures,
        tables=[*shown, claims],
        provenance=done.provenance,
    )


def _by_reason(rows: Sequence[ClaimRow]) -> list[str]:
    """A sentence for each reason why claims do not hold, with the claims it explains; the most frequent first."""
    groups: dict[str, list[ClaimRow]] = {}
    for row in rows:
        if row.holds == "false":
            groups.setdefault(row.claim.reason or "Not explained yet.", []).append(row)
    said = []
    for why, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        named = dict.fromkeys(f"{row.claim.artifact}: {row.claim.metric}" for row in found)
        shown = "; ".join(list(named)[:SHOWN]) + ("; ..." if len(named) > SHOWN else "")
        said.append(f"{why[:1].upper()}{why[1:].rstrip('.')}. {len(found)} of the claims ({shown}).")
    return said
