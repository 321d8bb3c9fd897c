"""Interface of a reproduction, and its evaluation against a claims file that is fixed before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from poolwise.errors import UnknownNameError
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise.runner import Executor, Local, Progress
from poolwise_reproductions import catalog
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.causes import named_rows
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.headlines import Headline, agreement_figures, read_headlines
from poolwise_reproductions.published import SEPARATOR, ChangeTexts, Claim, ClaimRow, Key, compare
from poolwise_reproductions.results import KeyedRow, without_nan


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
    readings : other reading ("as run", "inferred") -> measurements under it, for the rows that it affects
    switches : name of a change, or of a package of changes -> measurements with it; a claims file may name one as a cause
    texts : causes that these changes verify
    beyond : names of figures without a counterpart in the paper; reports show them under a separate heading
    """

    measured: Mapping[Key, Measured]
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    explanation: Sequence[str] = ()
    tables: Sequence[Table] = ()
    readings: Mapping[str, Mapping[Key, Measured]] = field(default_factory=dict)
    switches: Mapping[str, Mapping[Key, Measured]] = field(default_factory=dict)
    texts: ChangeTexts = field(default_factory=ChangeTexts)
    beyond: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Part:
    """Figures, tables or sections of a paper that share their runs.

    Attributes
    ----------
    artifacts : figures, tables or sections, such as "Figure 8"
    cases : function from the plan to the cases to measure
    rows : functions from the results to measured rows of the claims file
    draw : functions from the results to figures
    switches : functions from the results to switch -> claim -> measurement with that single change
    conditions : artifact that several parts measure -> prefixes of the conditions of those rows that this part measures
    """

    artifacts: tuple[str, ...]
    cases: Callable[[Any], Iterable[Any]] = lambda plan: ()
    rows: tuple[Callable[[Any], Iterable[KeyedRow]], ...] = ()
    draw: tuple[Callable[[Any], Iterable[Figure]], ...] = ()
    switches: tuple[Callable[[Any], Mapping[str, Mapping[Key, Measured]]], ...] = ()
    conditions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def concerns(self, figure: str) -> bool:
        """Return whether a figure, or one of its panels, is among the artifacts; True for "", which means all figures."""
        return not figure or any(about(artifact, figure) or about(figure, artifact) for artifact in self.artifacts)

    def measures(self, key: Key) -> bool:
        """Return whether the part measures a row."""
        artifact, condition, _ = key
        return self.concerns(artifact) and condition.startswith(self.conditions.get(artifact, ("",)))


@dataclass(frozen=True)
class Wanted:
    """Figure, table or section to reproduce alone, and rows of other artifacts that verify the causes of its claims.

    The default names no figure and selects everything.
    """

    figure: str = ""
    evidence: frozenset[Key] = frozenset()

    @classmethod
    def of(cls, figure: str, claims: Sequence[Claim]) -> Wanted:
        """Return a figure with the rows that its claims name as evidence, or whose values the causes of its claims show."""
        rows = {SEPARATOR.join(claim.key): claim.key for claim in claims}
        mine = [claim for claim in claims if about(figure, claim.artifact)]
        named = (name for claim in mine for name in (claim.shown_by, *named_rows(claim.reason)))
        return cls(figure, frozenset(rows[name] for name in named if name in rows))

    def needs(self, part: Part) -> bool:
        """Return whether the figure, or the evidence for the causes of its claims, needs a part."""
        return part.concerns(self.figure) or any(part.measures(key) for key in self.evidence)

    def parts(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts that are needed, in their order."""
        return [part for part in parts if self.needs(part)]


def rows_of(parts: Sequence[Part], results: Any) -> dict[Key, Measured]:
    """Return the measured rows of some parts."""
    return without_nan(row for part in parts for rows in part.rows for row in rows(results))


def switches_of(parts: Sequence[Part], results: Any) -> dict[str, dict[Key, Measured]]:
    """Return, for some parts, switch -> claim -> measurement with that single change."""
    by_switch: dict[str, dict[Key, Measured]] = {}
    for switch, measured in (item for part in parts for switches in part.switches for item in switches(results).items()):
        by_switch.setdefault(switch, {}).update(measured)
    return by_switch


def figures_of(parts: Sequence[Part], results: Any) -> list[Figure]:
    """Return the figures of some parts."""
    return [figure for part in parts for draw in part.draw for figure in draw(results)]


ALL = Wanted()


class Reproduction(Protocol):
    """Reproduction of the results of a published system. Register with an entry point of the group `poolwise.reproductions`.

    `drawn` names figures of the paper that are drawn although no claim refers to them alone.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    drawn: ClassVar[tuple[str, ...]] = ()

    def run(self, measure: Measurer, *, quick: bool, wanted: Wanted = ALL) -> ReproductionResult:
        """Measure everything, or only the cases that one figure or table of the paper, such as "Figure 8", needs.

        With `quick`, use fewer seeds and sizes, and omit the rows that these do not cover. Running a figure alone gives the
        same rows as running everything with the same `quick`.
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

    `name` selects the files of claims, headlines and questions. With a figure or table ("8", "Figure 8", "Table III"), only its
    cases run, and the result contains only its claims and figures. Raises UnknownNameError if no claim refers to the figure and
    it is not drawn.
    """
    measure = Measurer(out, Local(jobs) if executor is None else executor, progress)
    claims = read_claims(catalog.find("claims", f"{name}.csv"))
    wanted = find_artifact(figure, [*(claim.artifact for claim in claims), *reproduction.drawn]) if figure else ""
    findings = reproduction.run(measure, quick=quick, wanted=Wanted.of(wanted, claims))
    rows = compare(claims, findings.measured, findings.readings, findings.switches, findings.texts)
    rows = [row for row in rows if not wanted or about(wanted, row.claim.artifact)]
    figures = [f for f in (*findings.figures, *agreement_figures(rows)) if not wanted or about(wanted, f.artifact)]
    findings = replace(findings, figures=figures, tables=[] if wanted else findings.tables)
    title = f"{reproduction.title}, quick run" if quick else reproduction.title
    headlines = read_headlines(catalog.find("headlines", f"{name}.csv"))
    questions = catalog.find("questions", f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return Reproduced(name, title, reproduction.paper, rows, findings, {}, () if wanted else headlines, questions)


def find_artifact(figure: str, artifacts: Sequence[str]) -> str:
    """Return the full name of a requested figure, which may be abbreviated: "8" for "Figure 8"."""
    names = list(dict.fromkeys(artifacts))
    for name in (figure, f"Figure {figure}", f"Table {figure}"):
        if any(about(name, artifact) for artifact in names):
            return name
    raise UnknownNameError.of("figure", figure, names, field="figure")


def about(wanted: str, artifact: str) -> bool:
    """Return whether an artifact is the wanted one or a panel of it, as Figure 5a is of Figure 5."""
    return artifact == wanted or (bool(wanted) and re.fullmatch(f"{re.escape(wanted)}[a-z]", artifact) is not None)
