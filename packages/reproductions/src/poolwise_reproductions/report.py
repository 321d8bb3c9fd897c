"""Report of a reproduction: headline claims, the paper's figures from our runs, causes of deviations, and commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from poolwise.atomic_write import write_whole
from poolwise.presentation.answer import Answer
from poolwise.presentation.figure import Figure, Panels
from poolwise.presentation.figure_data import figure_csv
from poolwise.presentation.table import RowMark, Table
from poolwise.report.figures import save
from poolwise.report.page import write_report
from poolwise_reproductions.causes import pattern
from poolwise_reproductions.claims_file import claims_csv
from poolwise_reproductions.contents import contents_table, rows_table
from poolwise_reproductions.figure_scripts import FigureScript, expected, scripts_csv, scripts_of
from poolwise_reproductions.headlines import JUDGED, answer_headlines, count_holding, readings_of
from poolwise_reproductions.page_head import claims_reproduced, page_head, result_sentence, row_counts
from poolwise_reproductions.papers import item_number, read_paper
from poolwise_reproductions.printed import with_printed
from poolwise_reproductions.published import ClaimRow
from poolwise_reproductions.reproduction import Reproduced


def verdict_counts(count: Mapping[str, int]) -> str:
    """Return the numbers of rows by verdict in words: "1 holds, 3 fail, 0 undetermined, ..."."""
    verbs = {"holds": "hold", "fails": "fail"}
    words = [
        f"{count.get(verdict, 0)} {verbs[verdict] if verdict in verbs and count.get(verdict, 0) != 1 else verdict}"
        for verdict in VERDICTS
    ]
    return ", ".join(words)


VERDICTS = ("holds", "fails", "undetermined", "not measured", "shown")
MARKS: Mapping[str, RowMark] = {
    "reproduced": "true",
    "under another reading": "partly",
    "partly": "partly",
    "undetermined": "partly",
    "not": "false",
    "cannot be tested": "",
}
CLASSES = {"paper": "claims of the paper", "input": "inputs and arithmetic of the paper", "ours": "our additions"}
SCRIPTS = "Commands of the figures"
MAX_CAUSES = 16
"""Maximum number of causes on the page; the CSV lists all."""


def write_reproduction(done: Reproduced, folder: Path) -> None:
    """Write comparison.csv, notes.txt, the figures (PNG, SVG, PDF, CSV), figures.csv and report.html into a folder."""
    write_whole(folder / "comparison.csv", claims_csv(done.rows).encode())
    write_whole(folder / "notes.txt", "".join(f"{note}\n" for note in done.findings.notes).encode())
    (folder / "figures").mkdir(exist_ok=True)
    for figure in with_printed(done.name, done.findings.figures, done.rows):
        save(figure, folder / "figures")
    for figure in done.findings.figures:
        write_whole(folder / "figures" / f"{figure.name}.csv", figure_csv(figure).encode())
    scripts = scripts_of(done)
    write_whole(folder / "figures.csv", scripts_csv(scripts).encode())
    write_report(reproduction_answer(done), folder / "report.html")


def reproduction_answer(
    done: Reproduced, scripts: Sequence[FigureScript] | None = None, files: tuple[str, str] = ("comparison.csv", "figures.csv")
) -> Answer:
    """Return which claims of a paper hold, with its figures from our runs.

    `scripts` are the commands of the figures, by default computed from them. `files` are the names of two files: the rows, and
    the hashes of the figures.
    """
    mine = [row for row in done.rows if row.claim.kind == "paper"]
    paper, counted = read_paper(done.name), claims_reproduced(done.headlines, done.rows)
    commands = scripts_of(done) if scripts is None else scripts
    figures = [numbered(figure) for figure in with_printed(done.name, as_printed(done.findings.figures), done.rows)]
    shown = [figure for figure in figures if figure.name not in done.findings.beyond]
    tables = [*done.findings.tables, rows_table(paper, done.rows), *_scripts(commands, done)]
    return Answer(
        title=f"{done.title}: {counted}" if counted else f"Reproduction: {done.title}",
        headline=result_sentence(done.headlines, done.rows) or row_counts(done.rows),
        decision=page_head(done.name, done.headlines, done.rows, done.provenance),
        head=[
            contents_table(paper, done.rows, figures, tables),
            *_headlines(done),
            _classes(done.rows),
            *_causes(mine),
        ],
        notes=done.findings.notes,
        figures=shown,
        further={"Beyond the paper": [figure for figure in figures if figure.name in done.findings.beyond]},
        tables=tables,
        after={"Findings": done.findings.explanation, "Questions to the authors": done.questions},
        links={f"All {len(done.rows)} rows as CSV": files[0], "Figures with their hashes as CSV": files[1]},
        provenance=done.provenance,
    )


_SEVERAL = re.compile(r"[;,]?\s*Figures \d+(?:, \d+)* and \d+(?=\.)")
"""Numbers of several figures, at the end of a sentence in a caption."""


def numbered(figure: Figure) -> Figure:
    """Return a figure whose title and caption name only the paper's figure that it reproduces."""
    number = item_number(figure.artifact)
    caption = _SEVERAL.sub("", figure.caption)
    if not number.startswith(("Figure", "Table")) or figure.title.startswith(number):
        return replace(figure, caption=caption)
    title = figure.title if figure.title[1:2].isupper() else f"{figure.title[:1].lower()}{figure.title[1:]}"
    return replace(figure, caption=caption, title=f"{number}: {title}")


def as_printed(figures: Sequence[Figure]) -> list[Figure]:
    """Combine consecutive panels, such as Figure 5a to 5f, into one figure as in the paper."""
    drawn: list[Figure] = []
    for number, group in groupby(figures, lambda figure: _number(figure) or figure.name):
        panels = list(group)
        if len(panels) == 1:
            drawn += panels
            continue
        titles = [replace(panel, title=panel.title.removeprefix(f"{number}")) for panel in panels]
        caption = " ".join(dict.fromkeys(panel.caption for panel in panels if panel.caption))
        name = number.lower().replace(" ", "-")
        drawn.append(Panels(name, number, caption, artifact=number, panels=titles, columns=min(3, len(panels))))
    return drawn


def _number(figure: Figure) -> str:
    """Return the paper's figure that contains this one as a panel; "" for other figures."""
    number = "" if isinstance(figure, Panels) else item_number(figure.artifact)
    return "" if number == figure.artifact else number


def _headlines(done: Reproduced) -> list[Table]:
    """Return the table of headline claims."""
    readings = readings_of(done.rows)
    rows, marks = [], {}
    for k, answer in enumerate(answer_headlines(done.headlines, done.rows)):
        counts = [f"{holds} of {judged}" if judged else "-" for holds, judged in answer.counts.values()]
        text = answer.headline
        quotation = f'{text.where}: "{text.quotation}"' if text.quotation else text.where
        rows.append([text.claim, quotation, answer.answer, text.rule if text.artifact else "-", *counts, text.why])
        marks[k] = MARKS[answer.answer]
    header = (
        "claim",
        "place and words of the paper",
        "answer",
        "rows that must hold",
        *(f"rows that hold, {reading}" for reading in readings),
        "note",
    )
    caption = (
        "Reproduced: the rows that must hold (all, most or any) hold under the specification's reading, or the paper's where "
        "the two differ. Under another reading: they hold only under it. Partly: some rows hold. "
        "Undetermined: no row holds, but undetermined rows could decide."
    )
    return [Table("Headline claims", header, rows, caption, marks=marks, text=True)] if rows else []


def _classes(rows: Sequence[ClaimRow]) -> Table:
    """Return a table of verdicts by class of the claims."""
    verdicts = ("holds", "fails", "undetermined", "shown", "not measured")
    table = []
    for kind, label in CLASSES.items():
        mine = [row for row in rows if row.claim.kind == kind]
        counts = [str(sum(row.verdict == verdict for row in mine)) for verdict in verdicts]
        others = [str(count_holding(mine, reading)[0]) for reading in readings_of(rows)[1:]]
        table.append([label, *counts, *others])
    header = ("class", *verdicts, *(f"holds, {reading}" for reading in readings_of(rows)[1:]))
    return Table("Verdicts by class", header, table)


def _causes(rows: Sequence[ClaimRow]) -> list[Table]:
    """Return a table of the causes of failed and undetermined claims, the most frequent first."""
    groups: dict[tuple[str, str], list[ClaimRow]] = {}
    for row in rows:
        if row.verdict in JUDGED[1:]:
            groups.setdefault((pattern(row.cause), row.basis), []).append(row)
    table = []
    for (_, basis), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        named = list(dict.fromkeys(f"{row.claim.artifact}: {row.claim.metric}" for row in group))
        shown = list(dict.fromkeys(row.shown_by for row in group if row.shown_by))
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        more_shown = f" and {len(shown) - 1} more" if len(shown) > 1 else ""
        table.append(
            [
                str(len(group)),
                named[0] + more,
                group[0].cause or "Not explained.",
                basis,
                (shown[0] + more_shown) if shown else "",
            ]
        )
    caption = (
        "Verified: the named change alone changes the verdict, or the named row shows what the cause states. Package: only "
        "several changes at once change the verdict. Scatter: the paper prints one run, and our single runs scatter as "
        "widely. Inferred: no run shows it yet. Numbers are those of the first row with the cause."
    )
    header = ("rows", "claims", "cause", "basis", "shown by")
    title = "Claims that do not hold, and their causes"
    if len(table) > MAX_CAUSES:
        caption += f" The table lists the {MAX_CAUSES} most frequent of {len(table)} causes."
    return [Table(title, header, table[:MAX_CAUSES], caption, text=True)] if table else []


def _scripts(scripts: Sequence[FigureScript], done: Reproduced) -> list[Table]:
    """Return a table of the commands that reproduce each figure."""
    recorded_figures = expected(done.name)
    rows = []
    for script in scripts:
        recorded = recorded_figures.get(script.figure)
        seconds = f"{recorded.seconds:.0f}" if recorded is not None and recorded.seconds else ""
        rows.append([script.figure, script.command, seconds, script.sha256[:16] or "varies"])
    caption = (
        "Approximate CPU seconds of a full run of the figure alone on one core, and the SHA-256 of its CSV (first 16 digits), "
        "which the command compares with the recorded one."
    )
    header = ("figure", "command", "CPU seconds", "SHA-256 of its CSV")
    return [Table(SCRIPTS, header, rows, caption, text=True)] if rows else []
