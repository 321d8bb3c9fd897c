"""All reproductions on one page: how many claims hold, and every one that does not, with its reason."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from poolwise.compare.published import COLUMNS
from poolwise.errors import InputError

ComparisonRows = list[dict[str, str]]
"""Rows of a comparison.csv, column -> text."""

_HEAD = """# Reproduction results

Each published value and claim is a row of a claims file that was fixed before the runs that it judges; the rule of the row
computes whether it holds. Rows that are "shown" are not judged. `poolwise overview` makes this page from the `comparison.csv`
and the notes of runs of `poolwise reproduce`; the notes say how many seeds there were.
"""


def read_comparison(path: Path) -> ComparisonRows:
    """Read a comparison.csv; raises InputError where it is not one."""
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a comparison.csv, or the folder of a reproduction")
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        rows = list(table)
        if tuple(table.fieldnames or ()) != COLUMNS:
            raise InputError("this is not a comparison.csv", file=path, line=1, remedy=f"its columns are {', '.join(COLUMNS)}")
    return rows


def read_notes(path: Path) -> tuple[str, ...]:
    """Read the notes beside a comparison: notes.txt in its folder, or NAME.txt beside NAME.csv; none if there are none."""
    beside = path.with_name("notes.txt") if path.name == "comparison.csv" else path.with_suffix(".txt")
    return tuple(beside.read_text(encoding="utf-8").splitlines()) if beside.is_file() else ()


def overview(
    comparisons: Mapping[str, ComparisonRows], titles: Mapping[str, str], notes: Mapping[str, tuple[str, ...]] | None = None
) -> str:
    """Markdown of the page.

    Parameters
    ----------
    comparisons
        Name of a reproduction -> its rows.
    titles
        Name -> title; the name itself where it is missing.
    notes
        Name -> what a reader must know of the run.
    """
    lines = [_HEAD, "| paper | rows | judged | hold | do not | not measured | shown |", "|---|---|---|---|---|---|---|"]
    for name, rows in comparisons.items():
        count = Counter(row["holds"] for row in rows)
        judged = count["true"] + count["false"]
        cells = [len(rows), judged, count["true"], count["false"], count["not_measured"], count["shown"]]
        lines.append(f"| {titles.get(name, name)} | {' | '.join(map(str, cells))} |")
    for name, rows in comparisons.items():
        lines += ["", f"## {titles.get(name, name)}", "", f"`poolwise reproduce {name}`", ""]
        lines += [f"- {_escaped(note)}" for note in (notes or {}).get(name, ())]
        lines += ["", *_failing(rows)]
    return "\n".join(lines) + "\n"


def _failing(rows: ComparisonRows) -> Iterable[str]:
    """Describe the rows that do not hold, each reason once, most rows first."""
    by_reason: dict[str, ComparisonRows] = {}
    for row in rows:
        if row["holds"] == "false":
            by_reason.setdefault(row["note"] or "No reason is known.", []).append(row)
    if not by_reason:
        yield "Every claim that was judged holds."
        return
    for reason, failing in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        yield f"**{len(failing)} {'row' if len(failing) == 1 else 'rows'}:** {_escaped(reason)}"
        yield ""
        yield "| artifact | condition | metric | published | measured | 95 % interval |"
        yield "|---|---|---|---|---|---|"
        for row in failing:
            interval = f"{row['ci95_low']} to {row['ci95_high']}" if row["ci95_low"] else ""
            metric = f"{row['metric']} ({row['unit']})" if row["unit"] else row["metric"]
            cells = (row["artifact"], row["condition"], metric, row["published"], row["measured"], interval)
            yield f"| {' | '.join(_escaped(cell) for cell in cells)} |"
        yield ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
