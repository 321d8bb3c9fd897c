"""Commands of the figures of a reproduction, with their recorded times and hashes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poolwise.hashing import digest
from poolwise.presentation.figure_data import figure_csv
from poolwise_reproductions import catalog
from poolwise_reproductions.reproduction import Reproduced

SCRIPT_COLUMNS = ("figure", "command", "seconds", "sha256")


@dataclass(frozen=True)
class FigureScript:
    """Command of a figure: its name, the command, CPU seconds (0 if not measured), and the SHA-256 of its CSV.

    A figure whose numbers vary between runs has no hash.
    """

    figure: str
    command: str
    seconds: float
    sha256: str


def scripts_of(done: Reproduced) -> list[FigureScript]:
    """Return the commands of the drawn figures."""
    recorded_figures = expected(done.name)
    scripts = []
    for figure in done.findings.figures:
        number = figure.artifact.removeprefix("Figure ")
        option = f' --figure "{number}"' if " " in number else f" --figure {number}" if number else ""
        recorded = recorded_figures.get(figure.name)
        scripts.append(
            FigureScript(
                figure.name,
                f"poolwise reproduce {done.name}{option}",
                0.0 if recorded is None else recorded.seconds,
                "" if figure.varies else digest(figure_csv(figure)),
            )
        )
    return scripts


def expected(name: str) -> Mapping[str, FigureScript]:
    """Return figure name -> command and recorded hash of a full run of this version."""
    path = catalog.find("figures", f"{name}.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["figure"]: FigureScript(row["figure"], row["command"], float(row["seconds"]), row["sha256"]) for row in rows}


def scripts_csv(scripts: Sequence[FigureScript]) -> str:
    """Return the text of figures.csv."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(SCRIPT_COLUMNS)
    table.writerows((s.figure, s.command, f"{s.seconds:g}", s.sha256) for s in scripts)
    return text.getvalue()


def compare_figures(done: Reproduced) -> list[str]:
    """Return one line per figure that states whether its numbers match the recorded ones."""
    recorded_figures, varies = expected(done.name), {figure.name: figure.varies for figure in done.findings.figures}
    lines = []
    for script in scripts_of(done):
        recorded = recorded_figures.get(script.figure)
        if varies[script.figure]:
            lines.append(f"{script.figure}: not compared, because its numbers are {varies[script.figure]}")
        elif recorded is None:
            lines.append(f"{script.figure}: not compared, no recorded hash")
        else:
            verdict = (
                "matches the recorded numbers" if recorded.sha256 == script.sha256 else "differs from the recorded numbers"
            )
            lines.append(f"{script.figure}: {verdict}")
    return lines
