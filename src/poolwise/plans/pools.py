"""Plans of kind "pools": the cheapest sizes of machine parts that meet stated targets, found by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from poolwise import registry
from poolwise.comparison.sentences import today_heading, today_sentences
from poolwise.errors import InputError, Problems
from poolwise.files.document import Document
from poolwise.files.fields import Count, Section
from poolwise.files.study import MeasureSection, RunFile, inline_all
from poolwise.files.validation import validate
from poolwise.plans.candidates import CandidateRuns, CertaintySection
from poolwise.plans.leave_out_check import leave_out
from poolwise.plans.plan import ReportProgress
from poolwise.plans.pools_answer import pools_answer
from poolwise.plans.prices import Prices, bought_today
from poolwise.plans.search import search
from poolwise.plans.sizes import Size, SizeSection, bought, priced, read_sizes
from poolwise.plans.targets import Target, TargetSection, read_targets
from poolwise.presentation.answer import Answer
from poolwise.quantities import SECOND
from poolwise.runner import Local, TaskRunner
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.study import resolve


class PoolsSection(Section):
    """The cheapest sizes that meet the targets."""

    kind: Literal["pools"]
    size: list[SizeSection] = Field(default=[], description="sizes to choose")
    target: list[TargetSection] = Field(default=[], description="targets, all of which must be met")
    reference: dict[str, Any] = Field(default={}, description="dotted path -> value of the reference of relative targets")
    certainty: CertaintySection = CertaintySection()
    sensitivity: float = Field(
        default=0.1, ge=0, lt=1, description="share by which targets are tightened and loosened; 0 for none"
    )
    checks: Count = Field(default=2, description="number of candidates to simulate although the assumption rules them out")


class PoolsFile(RunFile):
    """A run on a machine whose sizes are to be chosen."""

    plan: PoolsSection


@registry.register("plans", "pools")
@dataclass(frozen=True, eq=False)
class Pools:
    """The cheapest sizes of pools, nodes or devices that meet stated targets.

    Attributes
    ----------
    document : the plan without [plan]: a study of one run, with its machine resolved
    section : [plan]
    sizes, targets : resolved
    """

    file: ClassVar[type[Section]] = PoolsFile

    document: Document
    section: PoolsSection
    sizes: tuple[Size, ...]
    targets: tuple[Target, ...]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        problems = Problems()
        with problems.attempt():
            section = validate(PoolsSection, document, ("plan",))
        for name in ("vary", "seeds"):
            if name in document.tables:
                remedy = "write the sizes to choose as [[plan.size]]" if name == "vary" else "write [plan.certainty]"
                raise document.error((name,), f"a plan cannot have [{name}]", remedy)
        with problems.attempt():
            document = inline_all(document, problems)  # the keys of sizes lead into the machine
            measure = resolve(document.without("plan")).measure
        problems.finish()
        if measure.population != "common":
            message = "a plan measures the jobs that its largest candidate finishes"
            raise document.error(("measure", "population"), message, 'omit it, or write "common"')
        sizes = read_sizes(section.size, document)
        targets = read_targets(section.target, bool(section.reference), document)
        problem = cls(document.without("plan"), section, sizes, targets)
        problem._check()
        return problem

    def count_jobs(self) -> int:
        """Count the jobs on the smallest candidate."""
        runs = self._candidate_runs(TaskRunner(CellStore(Path()), Local()))
        return len(workload_of(runs.cells((0,) * len(self.sizes))[0]))

    def sample_runs(self) -> Sequence[Cell]:
        """Return the runs of the smallest candidate."""
        runs = self._candidate_runs(TaskRunner(CellStore(Path()), Local()))
        return runs.cells((0,) * len(self.sizes))

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Search for the cheapest sizes; see `poolwise.plans.search`."""
        runs = self._candidate_runs(runner, tell)
        prices = Prices(self.sizes, bought(self.sizes, self.document))
        cost = priced(self.sizes, prices.amounts)
        searched = search(runs, cost, self.section.sensitivity, self.section.checks, prices.other_costs)
        changes = None
        if searched.best is not None:
            changes = runs.compare_with_today(searched.best, searched.verdicts[searched.best].seeds)
            if (today := runs.today(searched.best)) is not None:
                prices = replace(prices, today=bought_today(self.sizes, self.document, today.machine_tables))
        answer = pools_answer(runs, prices, searched, leave_out(runs, cost, searched))
        if changes is None:
            return answer
        sections = {today_heading(changes): today_sentences(changes), **answer.sections}
        return replace(answer, sections=sections, content={**answer.content, "today": changes.to_dict(0)})

    def _candidate_runs(self, runner: TaskRunner[CellStore], report: ReportProgress = lambda line: None) -> CandidateRuns:
        tau_s = MeasureSection.model_validate(self.document.tables.get("measure", {})).tau / SECOND
        section = self.section
        return CandidateRuns(
            self.document, self.sizes, self.targets, section.certainty, section.reference, runner, report, tau_s
        )

    def _check(self) -> None:
        """Check that the smallest, the largest and the reference machine are valid, before any simulation."""
        runs = self._candidate_runs(TaskRunner(CellStore(Path()), Local()))
        runs.cells((0,) * len(self.sizes))
        runs.cells(runs.largest)
        if self.section.reference:
            try:
                runs.cells(None)
            except InputError as error:
                path = ("plan", "reference", str(error.field))
                raise self.document.error(path, error.message, error.remedy) from error
