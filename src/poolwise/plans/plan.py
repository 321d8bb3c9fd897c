"""Plans: purchases that meet stated targets. All kinds of plan share this interface and are found by name."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
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
from poolwise.files.fields import Section, check_version
from poolwise.hashing import Json, canonical, digest, pretty
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise.runner import Executor, Local
from poolwise.short_repr import fit_repr, short_repr
from poolwise.traces.parquet import sealed_parquet
from poolwise.version import __version__

CANDIDATES = "Candidates"
"""Title of the table of candidates."""
PlanStatus = Literal["decided", "undecided", "infeasible"]
ReportProgress = Callable[[str], None]
"""Receives a progress line."""


class PlanFile(Section):
    """Base of a self-contained plan file; other plans are a study or a run with a [plan]."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a plan, for people and programs.

    Attributes
    ----------
    status : decided; undecided within the budget; or infeasible: no candidate meets the targets
    headline : the answer in one line
    first : sentences to read before it: load, jobs that can never run, outliers, whether a few jobs decide the answer
    because : sentences that support it
    sections : heading -> further sentences
    notes : remarks on the numbers
    figures : figures of the report
    candidates : one row per judged candidate, usually by cost, with a column `verdict`
    chosen : row of `candidates` that is the answer, None without one
    content : the answer as plain data
    inputs : input file -> SHA-256
    seeds : seeds of the runs
    card : summary of the decision; None without one
    tables : tables of the report; unless one is titled `CANDIDATES`, the report shows `candidates` unchanged
    """

    __repr__ = short_repr

    status: PlanStatus
    headline: str
    because: Sequence[str]
    sections: Mapping[str, Sequence[str]]
    notes: Sequence[str]
    figures: Sequence[Figure]
    candidates: pl.DataFrame
    chosen: int | None
    content: Json = field(repr=False)
    inputs: Mapping[str, str] = field(repr=False)
    seeds: Sequence[int] = field(repr=False)
    first: Sequence[str] = ()
    card: Table | None = None
    tables: Sequence[Table] = ()


class Question(Protocol):
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
        """Count the jobs of the first run; raise InputError, also for an unreadable trace."""
        ...

    def answer(self, out: Path, executor: Executor, tell: ReportProgress) -> Answer:
        """Compute the answer.

        Parameters
        ----------
        out
            Folder of the cached runs; a repeated plan reuses them, so an interrupted plan resumes.
        executor
            Where runs are computed. The answer does not depend on it.
        tell
            Called with progress lines.
        """
        ...


@dataclass(frozen=True, eq=False)
class ResolvedPlan:
    """A plan file, resolved; `load_plan` returns it.

    Attributes
    ----------
    name, title : the file name without suffix, and the title
    kind : name of the kind
    question : what is asked
    content, sha256 : the resolved content of the file, with what --set replaced, and its hash

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
    question: Question
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
        return {
            "poolwise": __version__,
            "plan": self.plan.name,
            "plan_sha256": self.plan.sha256,
            "sources_sha256": sources(),
            "inputs_sha256": dict(self.answer.inputs),
            "seeds": list(self.answer.seeds),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "polars": pl.__version__,
        }

    def to_dict(self) -> Json:
        """Return the answer as plain data, as `poolwise plan --json` prints it."""
        return {
            "plan": self.plan.name,
            "title": self.plan.title,
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
        Dotted path -> value that replaces one of the file, as --set does.

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
    document = Document.read(find(path))
    check_version(document)
    for key, value in (set or {}).items():
        document.set(key, value, Origin(SET))
    content = deepcopy(document.tables)
    section = document.tables.get("plan")
    if not isinstance(section, dict):
        raise InputError("the file has no [plan]", file=document.file, field="plan", remedy='write [plan] with a kind = "..."')
    kind = section.get("kind")
    if not isinstance(kind, str) or kind not in registry.names("plans"):
        raise document.unknown(("plan", "kind"), "kind of plan", str(kind), registry.names("plans"))
    question: Question = registry.find("plans", kind).read(document)
    title = str(document.tables.get("title") or document.file.stem)
    return ResolvedPlan(document.file.stem, title, kind, question, content, digest(canonical(content)))


def find(path: str | Path) -> Path:
    """Return the path of a plan file, or of a shipped plan by its name."""
    file = Path(path)
    if file.is_file() or file.suffix or len(file.parts) > 1:
        return file
    return catalog.find("plans", str(path))


def run_plan(
    plan: ResolvedPlan,
    out: str | Path,
    jobs: int | None = None,
    tell: ReportProgress = lambda line: None,
    executor: Executor | None = None,
) -> PlanResult:
    """Answer a plan and write the answer; reuse the runs cached in the folder.

    Parameters
    ----------
    plan
        Resolved plan.
    out
        Folder of the answer and the cached runs.
    jobs, executor
        Number of processes, or where runs are computed; see `poolwise.studies.run`.
    tell
        Called with progress lines.

    Raises
    ------
    InputError
        For invalid input, and if another process is writing to the folder.
    """
    executor = Local(jobs) if executor is None else executor
    result = PlanResult(plan, Path(out), plan.question.answer(Path(out), executor, tell))
    result.write()
    return result


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
        Folder for runs and answer, made if it does not exist; runs that it holds are not repeated. By default results/PLAN.
    jobs
        Number of processes on this computer; all cores if not given. The answer does not depend on it.
    tell
        Called with a line of text on the progress.
    executor
        Computes the runs instead of this computer; see `poolwise.runner.find_executor`.
    set
        Dotted path -> value that replaces one of the file, such as {"plan.sensitivity": 0.2}.

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
    return run_plan(loaded, Path("results") / loaded.name if out is None else out, jobs, tell, executor)
