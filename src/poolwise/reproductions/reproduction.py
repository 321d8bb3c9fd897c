"""Interface of a reproduction, and its evaluation against a claims file that is fixed before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Protocol

from poolwise import catalog
from poolwise.comparison.agreement import agreement_figures
from poolwise.comparison.headlines import Headline, read_headlines
from poolwise.comparison.published import ClaimRow, Key, compare, read_claims
from poolwise.comparison.verdicts import Measured
from poolwise.errors import UnknownNameError
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise.runner import Executor, Local, Progress


@dataclass(frozen=True)
class ReproductionResult:
    """Measurements, figures and texts of a reproduction.

    Attributes
    ----------
    measured : (artifact, condition, metric) -> value with its interval, under the specification's reading; every key is a row
        of the claims file
    figures : figures to draw, in the order of the paper
    notes : assumptions and restrictions that a reader must know
    explanation : paragraphs with findings beyond the claims
    tables : tables to show before the claims, such as the paper's tables with our values
    readings : other reading ("as run", "inferred") -> measurements under it, for the rows that it concerns
    switches : name of a single change that a claims file may give as a cause -> measurements with this change alone
    beyond : names of figures that the paper does not have; reports show them under a separate heading
    """

    measured: Mapping[Key, Measured]
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    explanation: Sequence[str] = ()
    tables: Sequence[Table] = ()
    readings: Mapping[str, Mapping[Key, Measured]] = field(default_factory=dict)
    switches: Mapping[str, Mapping[Key, Measured]] = field(default_factory=dict)
    beyond: frozenset[str] = frozenset()


class Reproduction(Protocol):
    """Reproduction of the results of a published system. Register with `@register("reproductions", NAME)`.

    `drawn` names figures of the paper that are drawn although no claim refers to them alone.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    drawn: ClassVar[tuple[str, ...]] = ()

    def run(
        self, out: Path, *, quick: bool, executor: Executor, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Measure everything.

        Parameters
        ----------
        out
            Folder for resumable intermediate results.
        quick
            Use fewer seeds and sizes; rows that this does not cover are omitted.
        executor
            Where the measurements run.
        progress
            Receives progress reports.
        figure
            Single figure or table of the paper to measure, such as "Figure 8"; anything that it does not need may be
            omitted.
        """
        ...


@dataclass(frozen=True)
class Reproduced:
    """Completed reproduction: claims with their measurements."""

    name: str
    title: str
    paper: str
    rows: Sequence[ClaimRow]
    findings: ReproductionResult
    provenance: Mapping[str, str] = field(default_factory=dict)
    headlines: Sequence[Headline] = ()
    questions: Sequence[str] = ()

    def count(self) -> dict[str, int]:
        """Return the number of rows that hold, do not hold, were not measured, and are only shown."""
        counts = dict.fromkeys(("true", "false", "not_measured", "shown"), 0)
        for row in self.rows:
            counts[row.holds] += 1
        return counts


def reproduce(
    name: str,
    reproduction: Reproduction,
    out: Path,
    *,
    quick: bool = False,
    jobs: int = -1,
    progress: Progress | None = None,
    figure: str = "",
    executor: Executor | None = None,
) -> Reproduced:
    """Run a reproduction and judge each of its claims, reusing the measurements that its folder already holds.

    Parameters
    ----------
    name
        Registered name; selects the files of claims, headlines and questions.
    reproduction
        The reproduction to run.
    out
        Folder for resumable intermediate results.
    quick
        Use fewer seeds and sizes.
    jobs
        Number of worker processes if no `executor` is given; -1 uses all cores.
    progress
        Receives progress reports.
    figure
        Single figure or table ("8", "Figure 8", "Table III"): only its runs are made, and the result holds only its claims and
        figures.
    executor
        Where the measurements run.

    Raises
    ------
    UnknownNameError
        If no claim refers to `figure` and it is not drawn.
    """
    executor = Local(jobs) if executor is None else executor
    claims = read_claims(catalog.find("reproductions", f"{name}.csv"))
    wanted = _artifact(figure, [*(claim.artifact for claim in claims), *reproduction.drawn]) if figure else ""
    findings = reproduction.run(out, quick=quick, executor=executor, progress=progress, figure=wanted)
    rows = compare(claims, findings.measured, findings.readings, findings.switches)
    if wanted:
        rows = [row for row in rows if _about(wanted, row.claim.artifact)]
    figures = [*findings.figures, *agreement_figures(rows)]
    if wanted:
        findings = replace(findings, figures=[f for f in figures if _about(wanted, f.artifact)], tables=[])
    else:
        findings = replace(findings, figures=figures)
    title = f"{reproduction.title}, quick run" if quick else reproduction.title
    headlines = read_headlines(catalog.find("reproductions/headlines", f"{name}.csv"))
    questions = catalog.find("reproductions/questions", f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return Reproduced(name, title, reproduction.paper, rows, findings, {}, () if wanted else headlines, questions)


def _artifact(figure: str, known: Sequence[str]) -> str:
    """Return the full name of a requested figure, which may be abbreviated: "8" for "Figure 8"."""
    names = list(dict.fromkeys(known))
    for name in (figure, f"Figure {figure}", f"Table {figure}"):
        if any(_about(name, artifact) for artifact in names):
            return name
    raise UnknownNameError.of("figure", figure, names, field="figure")


def _about(wanted: str, artifact: str) -> bool:
    """Return whether an artifact is the wanted one or one of its panels, such as Figure 5a of Figure 5."""
    return artifact == wanted or (artifact.startswith(wanted) and artifact[len(wanted) :].isalpha())
