"""All reproductions on one page: how many of each paper's claims are reproduced, and what decides the others."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from poolwise.comparison.headlines import JUDGED, SPEC
from poolwise.comparison.published import COLUMNS, ONE_RUN, READINGS
from poolwise.errors import InputError

ComparisonRows = list[dict[str, str]]
"""Rows of a comparison.csv, column -> text."""

CAUSES = 6
"""Causes named for a paper; its page and its CSV have all."""

_HEAD = """# Reproduction results

Each published value and claim is a row of a claims file; the rule of the row computes its verdict from our 95 % interval over
seeds: it holds, fails, or is undetermined, where the interval straddles. Counted here are the claims of the papers that can be
tested, not their inputs and arithmetic nor what we add. The specification's reading of a paper comes first; "as run" is what
its authors' own runs did, where that is known to differ, and "inferred" what we infer of them. A cause is verified where a
run turns the claim or shows what the cause says; counted apart are those where the paper prints one run and single runs of
ours scatter as far, which says that nothing need be wrong, but turns nothing. `poolwise overview` makes this page from the
`comparison.csv` and the notes of runs of `poolwise reproduce`.
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
    comparisons: Mapping[str, ComparisonRows],
    titles: Mapping[str, str],
    notes: Mapping[str, tuple[str, ...]] | None = None,
    pages: Mapping[str, str] | None = None,
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
    pages
        Name -> address of its report, to be linked.
    """
    header = ("paper", "claims testable", "hold", *(f"hold, {reading}" for reading in READINGS), "undetermined", "fail")
    causes = ("cause verified by a run", "by the scatter of single runs", "inferred", "unknown")
    lines = [_HEAD, f"| {' | '.join((*header, *causes))} |", "|---" * (len(header) + len(causes)) + "|"]
    for name, rows in comparisons.items():
        link = (pages or {}).get(name)
        title = titles.get(name, name)
        lines.append(f"| {' | '.join((f'[{title}]({link})' if link else title, *_counts(rows)))} |")
    for name, rows in comparisons.items():
        lines += ["", f"## {titles.get(name, name)}", "", f"`poolwise reproduce {name}`", ""]
        lines += [f"- {_escaped(note)}" for note in (notes or {}).get(name, ())]
        lines += ["", *_causes(rows)]
    return "\n".join(lines) + "\n"


def _paper(rows: ComparisonRows) -> ComparisonRows:
    """Claims of the paper that can be tested."""
    return [row for row in rows if row["class"] == "paper" and row["verdict"] in JUDGED]


def held_in(row: Mapping[str, str], reading: str) -> bool:
    """Whether a row holds under a reading; under the specification's where the reading does not concern it."""
    verdict = "" if reading == SPEC else row[f"{reading.replace(' ', '_')}_verdict"]
    return (verdict or row["verdict"]) == "holds"


def _counts(rows: ComparisonRows) -> list[str]:
    mine = _paper(rows)
    found = [str(len(mine)), str(sum(held_in(row, SPEC) for row in mine))]
    for reading in READINGS:
        concerned = any(row[f"{reading.replace(' ', '_')}_verdict"] for row in mine)
        found.append(str(sum(held_in(row, reading) for row in mine)) if concerned else "")
    failing = [row for row in mine if row["verdict"] == "fails"]
    basis = Counter("scatter" if row["shown_by"].startswith(ONE_RUN) else row["basis"] for row in failing)
    undetermined = sum(row["verdict"] == "undetermined" for row in mine)
    shown = (str(basis[name]) for name in ("verified", "scatter", "inferred", "unknown"))
    return [*found, str(undetermined), str(len(failing)), *shown]


def _causes(rows: ComparisonRows) -> Iterable[str]:
    """Causes of what does not hold, each once, most rows first."""
    mine = [row for row in _paper(rows) if row["verdict"] != "holds"]
    if not mine:
        yield "Every claim that can be tested holds."
        return
    groups: dict[tuple[str, str], ComparisonRows] = {}
    for row in mine:
        groups.setdefault((row["cause"] or "no cause is known", row["basis"]), []).append(row)
    for (cause, basis), found in sorted(groups.items(), key=lambda item: -len(item[1]))[:CAUSES]:
        artifacts = ", ".join(dict.fromkeys(row["artifact"] for row in found))
        many = f"{len(found)} {'row' if len(found) == 1 else 'rows'}"
        yield f"- **{artifacts}, {many}, {basis}:** {_escaped(cause)}"
    if len(groups) > CAUSES:
        yield f"- {len(groups) - CAUSES} more causes stand in the CSV."


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
