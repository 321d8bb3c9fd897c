"""Plans of kind "pools": the cheapest sizes of parts of a machine that keep stated targets, by search over simulations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from poolwise import registry
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import today_heading, today_sentences
from poolwise.errors import InputError
from poolwise.files import study as study_file
from poolwise.files.document import Document
from poolwise.files.fields import Count, Section, validate
from poolwise.plans.candidates import CandidateRuns, CertaintySection
from poolwise.plans.leave_out_check import leave_out
from poolwise.plans.plan import Answer, Tell
from poolwise.plans.pools_answer import pools_answer
from poolwise.plans.prices import Prices, bought_today
from poolwise.plans.search import search
from poolwise.plans.sizes import Size, SizeSection, bought, priced, read_sizes
from poolwise.plans.targets import Target, TargetSection, read_targets
from poolwise.runner import Executor, Local
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import workload_of
from poolwise.studies.study import resolve
from poolwise.units import SECOND


class PoolsSection(Section):
    """The cheapest sizes that keep the targets."""

    kind: Literal["pools"]
    size: list[SizeSection] = Field(default=[], description="what may be chosen")
    target: list[TargetSection] = Field(default=[], description="what must be kept; all of them")
    reference: dict[str, Any] = Field(default={}, description="dotted path -> value: what relative targets refer to")
    certainty: CertaintySection = CertaintySection()
    sensitivity: float = Field(default=0.1, ge=0, lt=1, description="share by which targets are moved; 0 for not at all")
    checks: Count = Field(default=2, description="candidates to run that were ruled out by assumption only")


class PoolsFile(study_file.RunFile):
    """A run on a machine whose sizes may be chosen."""

    plan: PoolsSection


@registry.register("plans", "pools")
@dataclass(frozen=True, eq=False)
class Pools:
    """The cheapest sizes of pools, nodes or devices that keep stated targets.

    Attributes
    ----------
    document : the plan without [plan]: a study of one run, its machine in place
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
        """Read a plan file; raises InputError naming file, line, field and remedy."""
        section = validate(PoolsSection, document, ("plan",))
        for name in ("vary", "seeds"):
            if name in document.tables:
                remedy = "write what may be chosen as [[plan.size]]" if name == "vary" else "write [plan.certainty]"
                raise document.error((name,), f"a plan has no [{name}]", remedy)
        study = document.copy()
        del study.tables["plan"]
        if study_file.check(study).measure.population != "common":
            message = "a plan measures the jobs that its largest candidate finishes"
            raise document.error(("measure", "population"), message, 'leave it out, or write "common"')
        resolve(study)
        _merge(document, study)
        sizes = read_sizes(section.size, document)
        targets = read_targets(section.target, bool(section.reference), document)
        question = cls(study, section, sizes, targets)
        question._check()
        return question

    def count_jobs(self) -> int:
        """Jobs on the smallest candidate."""
        trials = self._trials(CellStore(Path()), Local(), lambda line: None)
        return len(workload_of(trials.cells((0,) * len(self.sizes))[0]))

    def answer(self, out: Path, executor: Executor, tell: Tell) -> Answer:
        """Search; see `poolwise.plans.search`."""
        store = CellStore(out)
        with store.writing():
            trials = self._trials(store, executor, tell)
            prices = Prices(self.sizes, bought(self.sizes, self.document))
            cost = priced(self.sizes, prices.amounts)
            found = search(trials, cost, self.section.sensitivity, self.section.checks, prices.other_costs)
            changes = None
            if found.best is not None:
                changes = trials.changes(found.best, found.verdicts[found.best].seeds)
                if (today := trials.today(found.best)) is not None:
                    prices = replace(prices, today=bought_today(self.sizes, self.document, today.machine_tables))
            answer = pools_answer(trials, prices, found, leave_out(trials, cost, found))
            return answer if changes is None else _with_today(answer, changes)

    def _trials(self, store: CellStore, executor: Executor, tell: Tell) -> CandidateRuns:
        tau = study_file.check(self.document).measure.tau / SECOND
        reference: Mapping[str, Any] = self.section.reference
        return CandidateRuns(
            self.document, self.sizes, self.targets, self.section.certainty, reference, store, executor, tell, tau
        )

    def _check(self) -> None:
        """See that the smallest, the largest and the reference machine can be built, before anything is run."""
        trials = self._trials(CellStore(Path()), Local(), lambda line: None)
        trials.cells((0,) * len(self.sizes))
        trials.cells(trials.largest)
        if self.section.reference:
            try:
                trials.cells(None)
            except InputError as error:
                where = ("plan", "reference", str(error.field))
                raise self.document.error(where, error.message, error.remedy) from error


def _with_today(answer: Answer, changes: Comparison) -> Answer:
    """Add what the answer changes against today."""
    sections = {today_heading(changes): today_sentences(changes), **answer.sections}
    return replace(answer, sections=sections, content={**answer.content, "today": changes.to_dict(0)})


def _merge(document: Document, study: Document) -> None:
    """Let paths into the machine that resolving put in its place be found from the plan's own document."""
    document.tables["machine"] = study.tables["machine"]
    document.parts |= study.parts
