"""Overview page of all reproductions: the number of claims of each paper that hold, and the causes of the others."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

from poolwise import registry
from poolwise.errors import InputError
from poolwise_reproductions import catalog
from poolwise_reproductions.causes import pattern
from poolwise_reproductions.headlines import (
    JUDGED,
    OURS,
    SPEC,
    Headline,
    HeadlineVerdict,
    answer_of,
    count_answers,
    read_headlines,
)
from poolwise_reproductions.published import COLUMNS, READINGS, SOURCE_COLUMNS

ANSWERS = get_args(HeadlineVerdict)
ComparisonRows = list[dict[str, str]]
"""Rows of a comparison.csv, column -> text."""

MAX_CAUSES = 6
"""Maximum number of causes listed per paper; the paper's page and CSV list all of them."""

_INDEPENDENT = """Many rows test one claim of a paper, so the independent claims are counted separately. The page of each
reproduction quotes them and states which rows each rests on, and whether all of them, most or one must hold. A claim is
reproduced if enough rows hold under the specification's reading, or under the paper's where the two differ: IRoP is judged by
relative slowdown, and DRMaestro by Algorithm 2 as printed. A claim that holds only under another reading is counted
separately. It is partly reproduced if some rows hold, and undetermined if no row holds but undetermined rows could decide.
The last column counts the tested claims that are not reproduced although each of their rows holds or has a verified cause;
packages and scatter of single runs do not count as verified.
"""
_HEAD = """# Reproduction results

Each published value and claim is a row of a claims file. The rule of the row computes a verdict from our 95 % interval over
seeds: the claim holds, fails, or is undetermined if the interval straddles the rule. The table counts the testable claims of
the papers; it excludes their inputs and arithmetic, and our own additions. The specification's reading of a paper comes first.
"As run" is what the authors' own runs did, where that is known to differ, and "inferred" is what we infer of them. A cause is
verified if a run with it alone changes the verdict, or another row shows what the cause states; its numbers are those of its
first row. Where only several changes at once change the verdict, the cause is a package. If the paper prints one run for a
claim and our single runs scatter as widely, the claim is counted separately: the scatter can explain the difference, but does
not change the verdict. `poolwise overview` generates this page from the `comparison.csv` and the notes of `poolwise reproduce`.
"""


def read_comparison(path: Path) -> ComparisonRows:
    """Read a comparison.csv; raise InputError for a missing file or other columns."""
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give a comparison.csv, or the folder of a reproduction")
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        rows = list(table)
        if tuple(table.fieldnames or ()) not in (COLUMNS, COLUMNS[: -len(SOURCE_COLUMNS)]):
            raise InputError("not a comparison.csv", file=path, line=1, remedy=f"its columns are {', '.join(COLUMNS)}")
    return rows


def read_notes(path: Path) -> tuple[str, ...]:
    """Read the notes of a comparison: notes.txt in its folder, or NAME.txt for NAME.csv; return () without a file."""
    notes = path.with_name("notes.txt") if path.name == "comparison.csv" else path.with_suffix(".txt")
    return tuple(notes.read_text(encoding="utf-8").splitlines()) if notes.is_file() else ()


def overview(
    comparisons: Mapping[str, ComparisonRows],
    titles: Mapping[str, str],
    notes: Mapping[str, tuple[str, ...]] | None = None,
    pages: Mapping[str, str] | None = None,
) -> str:
    """Return the Markdown of the page.

    Each argument maps the name of a reproduction to one thing: its rows, its title, notes on the run, or its report's address.
    """
    header = ("paper", "testable claims", "hold", *(f"hold, {reading}" for reading in READINGS), "undetermined", "fail")
    causes = ("cause verified", "package of causes", "scatter of single runs", "cause inferred", "cause unknown")
    lines = [_HEAD, f"| {' | '.join((*header, *causes))} |", "|---" * (len(header) + len(causes)) + "|"]
    for name, rows in comparisons.items():
        link = (pages or {}).get(name)
        title = titles.get(name, name)
        lines.append(f"| {' | '.join((f'[{title}]({link})' if link else title, *_counts(rows)))} |")
    lines += _independent(comparisons, titles)
    for name, rows in comparisons.items():
        lines += ["", f"## {titles.get(name, name)}{_reproduced(rows, name)}", "", f"`poolwise reproduce {name}`", ""]
        lines += [f"- {_escaped(note)}" for note in (notes or {}).get(name, ())]
        lines += [*_claims(rows, name), "", *_causes(rows)]
    return "\n".join(lines) + "\n"


def _reproduced(rows: ComparisonRows, name: str) -> str:
    """Return the text that ends a paper's heading: how many of its tested claims are reproduced; "" without headlines."""
    answers = [*_answers(rows, name).elements()]
    return f": {count_answers(answers)} claims reproduced" if answers else ""


def _paper(rows: ComparisonRows) -> ComparisonRows:
    """Return the testable claims of the paper."""
    return [row for row in rows if row["class"] == "paper" and row["verdict"] in JUDGED]


def verdict_in(row: Mapping[str, str], reading: str) -> str:
    """Return the verdict of a row under a reading; under the specification's if that reading does not affect it."""
    verdict = "" if reading == SPEC else row[f"{reading.replace(' ', '_')}_verdict"]
    return verdict or row["verdict"]


def held_in(row: Mapping[str, str], reading: str) -> bool:
    """Return whether a row holds under a reading."""
    return verdict_in(row, reading) == "holds"


def _counts(rows: ComparisonRows) -> list[str]:
    mine = _paper(rows)
    counts = [str(len(mine)), str(sum(held_in(row, SPEC) for row in mine))]
    for reading in READINGS:
        affected = any(row[f"{reading.replace(' ', '_')}_verdict"] for row in mine)
        counts.append(str(sum(held_in(row, reading) for row in mine)) if affected else "")
    failing = [row for row in mine if row["verdict"] == "fails"]
    basis = Counter(row["basis"] for row in failing)
    undetermined = sum(row["verdict"] == "undetermined" for row in mine)
    shown = (str(basis[name]) for name in ("verified", "package", "scatter", "inferred", "unknown"))
    return [*counts, str(undetermined), str(len(failing)), *shown]


def _independent(comparisons: Mapping[str, ComparisonRows], titles: Mapping[str, str]) -> Iterable[str]:
    """Yield the table of the independent claims of each paper by their answers; nothing without headlines."""
    by_paper = {name: _answers(rows, name) for name, rows in comparisons.items()}
    if not any(by_paper.values()):
        return
    header = ("paper", "claims", "reproduced, of tested", *ANSWERS[1:], "each cause verified")
    yield from ("", _INDEPENDENT, f"| {' | '.join(header)} |", "|---" * len(header) + "|")
    for name, answers in by_paper.items():
        if answers:
            explained = sum(_is_explained(comparisons[name], claim) for claim in _headlines(name))
            others = (answers[answer] for answer in ANSWERS[1:])
            counts = (answers.total(), count_answers([*answers.elements()]), *others, explained)
            yield f"| {' | '.join((titles.get(name, name), *map(str, counts)))} |"


def _answers(rows: ComparisonRows, name: str) -> Counter[HeadlineVerdict]:
    """Return answer -> number of the paper's headlines that have it."""
    return Counter(_answer(rows, claim) for claim in _headlines(name))


def _is_explained(rows: ComparisonRows, claim: Headline) -> bool:
    """Return whether a claim is not reproduced although each of its rows holds or has a verified cause."""
    if _answer(rows, claim) in ("reproduced", "cannot be tested"):
        return False
    mine = [row for row in rows if claim.names((row["artifact"], row["condition"], row["metric"]))]
    open_rows = [row for row in mine if row["verdict"] not in ("holds", "shown")]
    return all(row["basis"] == "verified" for row in open_rows)


def _headlines(name: str) -> list[Headline]:
    """Return a paper's own headlines, without those that we add; none for an unknown reproduction."""
    if name not in registry.names("reproductions"):
        return []
    return [headline for headline in read_headlines(catalog.find("headlines", f"{name}.csv")) if headline.where != OURS]


def _claims(rows: ComparisonRows, name: str) -> Iterable[str]:
    """Yield a table of the independent claims of a paper: place, answer, and rows that hold under the first reading."""
    headlines = _headlines(name)
    if headlines:
        yield from ("", "| claim | place | answer | rows that hold | rows that must hold |", "|---|---|---|---|---|")
    for claim in headlines:
        mine = [row["verdict"] for row in rows if claim.names((row["artifact"], row["condition"], row["metric"]))]
        judged = [verdict for verdict in mine if verdict in JUDGED]
        held, rule = (f"{judged.count('holds')} of {len(judged)}", claim.rule) if judged else ("", "")
        yield f"| {_escaped(claim.claim)} | {claim.where} | {_answer(rows, claim)} | {held} | {rule} |"


def _answer(rows: ComparisonRows, claim: Headline) -> HeadlineVerdict:
    """Answer a claim from the rows that it rests on."""
    mine = [row for row in rows if claim.names((row["artifact"], row["condition"], row["metric"]))]
    return answer_of([[verdict_in(row, reading) for row in mine] for reading in (SPEC, *READINGS)], claim.rule)


def _causes(rows: ComparisonRows) -> Iterable[str]:
    """Yield the causes of claims that do not hold, each once; causes that affect the most rows come first."""
    mine = [row for row in _paper(rows) if row["verdict"] != "holds"]
    if not mine:
        yield "Every testable claim holds."
        return
    groups: dict[tuple[str, str], ComparisonRows] = {}
    for row in mine:
        groups.setdefault((pattern(row["cause"]), row["basis"]), []).append(row)
    for (_, basis), group in sorted(groups.items(), key=lambda item: -len(item[1]))[:MAX_CAUSES]:
        artifacts = ", ".join(dict.fromkeys(row["artifact"] for row in group))
        many = f"{len(group)} {'row' if len(group) == 1 else 'rows'}"
        yield f"- **{artifacts}, {many}, {basis}:** {_escaped(group[0]['cause'] or 'no known cause')}"
    more = len(groups) - MAX_CAUSES
    if more > 0:
        yield f"- The CSV lists {more} more {'cause' if more == 1 else 'causes'}."


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
