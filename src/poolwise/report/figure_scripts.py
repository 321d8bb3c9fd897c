"""A command for each figure of a reproduction, with the hash of the numbers that a full run puts in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poolwise import catalog
from poolwise.hashing import digest
from poolwise.presentation.figure_data import figure_csv
from poolwise.reproductions.reproduction import Reproduced

SCRIPT_COLUMNS = ("figure", "command", "seconds", "sha256")


@dataclass(frozen=True)
class FigureScript:
    """How a figure is made: its name, the command, CPU seconds (0 where not measured), SHA-256 of its CSV.

    A figure whose numbers vary from run to run has no hash.
    """

    figure: str
    command: str
    seconds: float
    sha256: str


def scripts_of(done: Reproduced) -> list[FigureScript]:
    """Scripts of the figures that were drawn."""
    known = expected(done.name)
    found = []
    for figure in done.findings.figures:
        wanted = figure.artifact.removeprefix("Figure ")
        option = f' --figure "{wanted}"' if " " in wanted else f" --figure {wanted}" if wanted else ""
        before = known.get(figure.name)
        found.append(
            FigureScript(
                figure.name,
                f"poolwise reproduce {done.name}{option}",
                0.0 if before is None else before.seconds,
                "" if figure.varies else digest(figure_csv(figure)),
            )
        )
    return found


def expected(name: str) -> Mapping[str, FigureScript]:
    """Figure -> its script, with the hash that a full run of this version has."""
    path = catalog.find("reproductions/figures", f"{name}.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["figure"]: FigureScript(row["figure"], row["command"], float(row["seconds"]), row["sha256"]) for row in rows}


def scripts_csv(scripts: Sequence[FigureScript]) -> str:
    """figures.csv as text."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(SCRIPT_COLUMNS)
    table.writerows((s.figure, s.command, f"{s.seconds:g}", s.sha256) for s in scripts)
    return text.getvalue()


def compared(done: Reproduced) -> list[str]:
    """Say of each figure whether its numbers are the expected ones."""
    known, varies = expected(done.name), {figure.name: figure.varies for figure in done.findings.figures}
    said = []
    for script in scripts_of(done):
        before = known.get(script.figure)
        if varies[script.figure]:
            said.append(f"{script.figure}: not compared, its numbers are {varies[script.figure]}")
        elif before is None:
            said.append(f"{script.figure}: nothing is expected of it yet")
        else:
            same = "as expected" if before.sha256 == script.sha256 else "other numbers than expected"
            said.append(f"{script.figure}: {same}")
    return said
