"""Reproductions of published results: one module or package for each paper here, claims fixed in a data file beforehand."""

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
    """What a reproduction measured.

    Attributes
    ----------
    measured : (artifact, condition, metric) -> value with its interval, under the specification's reading; every key is a row
        of the claims file
    figures : figures to draw, in the order of the paper
    notes : sentences that a reader must know (what was assumed, what was shortened)
    explanation : paragraphs on what the runs teach beyond the claims
    tables : tables to show before the claims, such as the paper's with our values in them
    readings : other reading ("as run", "inferred") -> what was measured under it, for the rows that it concerns
    switches : what is switched alone, each a cause that a claims file may name -> what was measured then
    beyond : names of figures that the paper has not, which a report shows behind a heading
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
    """A published system's results, measured anew. Register with `@register("reproductions", NAME)`.

    `drawn` names the paper's figures that are drawn though no claim is about them alone.
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
            Fewer seeds and sizes; rows that are then not measured are left out.
        executor
            Where the measurements are computed.
        progress
            Is told how far the measurements are.
        figure
            Figure or table of the paper, such as "Figure 8", that alone is wanted; what it does not need may be left out.
        """
        ...


@dataclass(frozen=True)
class Reproduced:
    """A reproduction that has run: claims beside measurements."""

    name: str
    title: str
    paper: str
    rows: Sequence[ClaimRow]
    findings: ReproductionResult
    provenance: Mapping[str, str] = field(default_factory=dict)
    headlines: Sequence[Headline] = ()
    questions: Sequence[str] = ()

    def count(self) -> dict[str, int]:
        """How many rows hold, do not, were not measured, are only shown."""
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
    """Run a reproduction and judge each of its claims; what its folder holds from before is not measured again.

    With a `figure` ("8", "Figure 8", "Table III") only what that one needs is run, and only its claims and drawings stay.
    Raises UnknownNameError for one that no claim is about and that is not drawn.
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
    """Find the figure that is meant: by its whole name, or "8" for "Figure 8"."""
    names = list(dict.fromkeys(known))
    for name in (figure, f"Figure {figure}", f"Table {figure}"):
        if any(_about(name, artifact) for artifact in names):
            return name
    raise UnknownNameError.of("figure", figure, names, field="figure")


def _about(wanted: str, artifact: str) -> bool:
    """Whether an artifact is the wanted one or a panel of it: Figure 5 has Figure 5a."""
    return artifact == wanted or (artifact.startswith(wanted) and artifact[len(wanted) :].isalpha())
