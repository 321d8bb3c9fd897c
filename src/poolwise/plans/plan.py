"""Plans: purchases that meet stated targets. All kinds of plan share this interface and are found by name."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

import numpy as np
import polars as pl
from pydantic import Field

from poolwise import catalog, registry
from poolwise.atomic_write import write_whole
from poolwise.code_fingerprint import sources
from poolwise.errors import InputError
from poolwise.files.document import SET, Document, Origin
from poolwise.files.fields import Section
from poolwise.hashing import Json, canonical, digest, pretty
from poolwise.presentation.answer import Answer
from poolwise.runner import Executor, Local, TaskRunner
from poolwise.runner.progress import LineProgress
from poolwise.short_repr import fit_repr, short_repr
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell
from poolwise.traces.parquet import sealed_parquet
from poolwise.version import __version__

ReportProgress = Callable[[str], None]
"""Function that receives a line of progress."""


class PlanFile(Section):
    """Base of self-contained plan files; other plan files are a study or a run with a section [plan]."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""


class PlanKind(Protocol):
    """A kind of plan, read from its file. Register the class with `@register("plans", KIND)`.

    Attributes
    ----------
    file : schema of its files, for `poolwise schema`
    """

    file: ClassVar[type[Section]]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        ...

    def count_jobs(self) -> int:
        """Count the jobs of the first run; raise InputError for invalid input, including an unreadable trace."""
        ...

    def sample_runs(self) -> Sequence[Cell]:
        """Return some of the runs behind the answer, at least one of each scheduler; none if the answer simulates no queue."""
        ...

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Compute the answer, which does not depend on the executor; a repeated plan reuses the records that are stored."""
        ...


@dataclass(frozen=True, eq=False)
class ResolvedPlan:
    """A plan file, resolved; `load_plan` returns it.

    Attributes
    ----------
    name, title : the file name without suffix, and the title
    kind : name of the kind
    problem : the candidates, the targets and how both are measured
    content, sha256 : the resolved content of the file, including the values of --set, and its hash

    Examples
    --------
    >>> import poolwise
    >>> poolwise.load_plan("gpu-share").kind
    'deployment'
    """

    __repr__ = short_repr

    name: str
    title: str
    kind: str
    problem: PlanKind
    content: Json
    sha256: str


@dataclass(frozen=True, eq=False)
class PlanResult:
    """A plan and its answer; `plan` returns it.

    Attributes
    ----------
    plan : the plan
    folder : folder of its runs and its answer
    answer : status, headline, sentences, candidates and figures

    Examples
    --------
    >>> import poolwise
    >>> result = poolwise.plan("gpu-share", jobs=1, set={"plan.seeds": 2, "plan.jobs.count": 50})
    >>> "verdict" in result.answer.candidates.columns
    True
    """

    def __repr__(self) -> str:
        return fit_repr(f"PlanResult '{self.plan.name}' in {self.folder}: {self.answer.status}\n  {self.answer.headline}")

    plan: ResolvedPlan
    folder: Path
    answer: Answer

    def provenance(self) -> Json:
        """Return the provenance of the answer: version, hashes of all inputs, seeds."""
        return dict(self.answer.provenance)

    def to_dict(self) -> Json:
        """Return the answer as plain data, as `poolwise plan --json` prints it."""
        return {
            "plan": self.plan.name,
            "title": self.answer.title,
            "kind": self.plan.kind,
            "status": self.answer.status,
            "headline": self.answer.headline,
            **self.answer.content,
            "notes": list(self.answer.notes),
        }

    def write(self) -> None:
        """Write plan.json, candidates.csv, candidates.parquet and provenance.json, each atomically."""
        frame = self.answer.candidates
        write_whole(self.folder / "candidates.parquet", sealed_parquet(frame))
        write_whole(self.folder / "candidates.csv", frame.write_csv().encode())
        write_whole(self.folder / "plan.json", pretty(self.to_dict()))
        write_whole(self.folder / "provenance.json", pretty({**self.provenance(), "content": self.plan.content}))


def load_plan(path: str | Path, set: Mapping[str, Any] | None = None) -> ResolvedPlan:
    """Read a plan file, or a shipped plan by its name, without running it.

    Parameters
    ----------
    path
        PLAN.toml, or the name of a shipped plan.
    set
        Dotted path -> value that replaces the one in the file, as --set does.

    Returns
    -------
    ResolvedPlan

    Raises
    ------
    InputError
        The plan is invalid; the error names file, line, field and remedy.

    Examples
    --------
    >>> import poolwise
    >>> poolwise.load_plan("gpu-share", {"plan.seeds": 3}).name
    'gpu-share'
    """
    document = Document.read(catalog.file("plans", path))
    document.check_version()
    for key, value in (set or {}).items():
        document = document.with_value(key, value, Origin(SET))
    section = document.tables.get("plan")
    if not isinstance(section, dict):
        raise InputError("the file has no [plan]", file=document.file, field="plan", remedy='write [plan] with a kind = "..."')
    kind = section.get("kind")
    if not isinstance(kind, str) or kind not in registry.names("plans"):
        raise document.unknown(("plan", "kind"), "kind of plan", str(kind), registry.names("plans"))
    problem: PlanKind = registry.find("plans", kind).read(document)
    title = str(document.tables.get("title") or document.file.stem)
    return ResolvedPlan(document.file.stem, title, kind, problem, document.tables, digest(canonical(document.tables)))


def plan(
    plan: str | Path | ResolvedPlan,
    out: str | Path | None = None,
    jobs: int | None = None,
    tell: ReportProgress = lambda line: None,
    executor: Executor | None = None,
    *,
    set: Mapping[str, Any] | None = None,
) -> PlanResult:
    """Find the cheapest machine that meets the targets of a plan, and write the answer; re-run to resume.

    Parameters
    ----------
    plan
        PLAN.toml, the name of a shipped plan, or what `load_plan` returned.
    out
        Folder for runs and answer, created if necessary; runs that it already contains are not repeated. By default
        results/PLAN.
    jobs
        Number of processes on this computer; all cores if not given. The answer does not depend on it.
    tell
        Function that receives progress as lines of text.
    executor
        Computes the runs instead of this computer; see `poolwise.runner.find_executor`.
    set
        Dotted path -> value that replaces the one in the file, such as {"plan.sensitivity": 0.2}.

    Returns
    -------
    PlanResult

    Raises
    ------
    InputError
        The plan is invalid (the error names file, line and field), or another process writes to the same folder.

    Examples
    --------
    >>> import poolwise
    >>> result = poolwise.plan("gpu-share", jobs=1, set={"plan.seeds": 2, "plan.jobs.count": 50})
    >>> result.answer.status
    'undecided'
    """
    if isinstance(plan, ResolvedPlan):
        if set:
            raise TypeError("plan() takes set= only with a file or a name; pass it to load_plan instead")
        loaded = plan
    else:
        loaded = load_plan(plan, set)
    store = CellStore(Path("results") / loaded.name if out is None else Path(out))
    with store.writing():
        runner = TaskRunner(store, Local(jobs) if executor is None else executor, LineProgress(tell))
        answer = loaded.problem.answer(runner, tell)
    provenance = {
        "poolwise": __version__,
        "plan": loaded.name,
        "plan_sha256": loaded.sha256,
        "sources_sha256": sources(),
        "inputs_sha256": dict(answer.inputs),
        "seeds": list(answer.seeds),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "polars": pl.__version__,
    }
    result = PlanResult(loaded, store.folder, replace(answer, title=loaded.title, provenance=provenance))
    result.write()
    return result
