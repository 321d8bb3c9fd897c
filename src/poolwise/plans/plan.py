"""Plans: what to buy so that a stated target is kept. All kinds share this frame; a kind is found by its name."""

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
from poolwise.traces.parquet import sealed_parquet
from poolwise.version import __version__

CANDIDATES = "Candidates"
"""Title of the table of candidates."""
PlanStatus = Literal["decided", "undecided", "infeasible"]
Tell = Callable[[str], None]
"""Takes a line about how far a plan is."""


class PlanFile(Section):
    """A plan that stands for itself; others are a study or a run with a [plan]."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a plan, for people and programs.

    Attributes
    ----------
    status : decided; undecided within the budget; infeasible: nothing that may be chosen keeps the target
    headline : the answer in one line
    first : sentences to read before it: load, jobs that can never run, outliers, whether a few jobs decide it
    because : sentences that support it
    sections : heading -> further sentences
    notes : what a reader must know beside the numbers
    figures : to be drawn
    candidates : one row for each candidate that was judged, such as the cheapest first, with a column `verdict`
    chosen : row of `candidates` that is the answer, None without one
    content : the answer as plain data
    inputs : what was read -> SHA-256
    seeds : seeds of the runs
    card : the decision at a glance; None where there is none
    tables : of the report; where none is titled `CANDIDATES`, the report shows `candidates` as they are
    """

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
    file : what its files may say, for `poolwise schema`
    """

    file: ClassVar[type[Section]]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raises InputError naming file, line, field and remedy."""
        ...

    def count_jobs(self) -> int:
        """Jobs of its first run; raises InputError, also for a trace that cannot be read."""
        ...

    def answer(self, out: Path, executor: Executor, tell: Tell) -> Answer:
        """Find the answer.

        Parameters
        ----------
        out
            Folder for cells, kept so that a plan that was stopped goes on where it was.
        executor
            Where runs are computed. The answer does not depend on it.
        tell
            Called with a line on how far the plan is.
        """
        ...


@dataclass(frozen=True, eq=False)
class ResolvedPlan:
    """A plan file, resolved.

    Attributes
    ----------
    name, title : the file's name without ending, and its title
    kind : name of the kind
    question : what is asked
    content, sha256 : the resolved content of the file, with what --set replaced, and its hash
    """

    name: str
    title: str
    kind: str
    question: Question
    content: Json
    sha256: str


@dataclass(frozen=True, eq=False)
class PlanResult:
    """A plan and its answer."""

    plan: ResolvedPlan
    folder: Path
    answer: Answer

    def provenance(self) -> Json:
        """Where the answer comes from: version, hashes of all inputs, seeds."""
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
        """Plain data: the answer, as `poolwise plan --json` prints it."""
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
        """Write plan.json, candidates.csv, candidates.parquet and provenance.json, each whole or not at all."""
        frame = self.answer.candidates
        write_whole(self.folder / "candidates.parquet", sealed_parquet(frame))
        write_whole(self.folder / "candidates.csv", frame.write_csv().encode())
        write_whole(self.folder / "plan.json", pretty(self.to_dict()))
        write_whole(self.folder / "provenance.json", pretty({**self.provenance(), "content": self.plan.content}))


def load_plan(path: str | Path, set: Mapping[str, Any] | None = None) -> ResolvedPlan:
    """Read a plan file, or a shipped plan by its name; `set` replaces values by dotted path, as --set does.

    Raises InputError naming file, line, field and remedy.
    """
    document = Document.read(find(path))
    check_version(document)
    for key, value in (set or {}).items():
        document.set(key, value, Origin(SET))
    content = deepcopy(document.tables)
    section = document.tables.get("plan")
    if not isinstance(section, dict):
        raise InputError("this file has no [plan]", file=document.file, field="plan", remedy='write [plan] with a kind = "..."')
    kind = section.get("kind")
    if not isinstance(kind, str) or kind not in registry.names("plans"):
        raise document.unknown(("plan", "kind"), "kind of plan", str(kind), registry.names("plans"))
    question: Question = registry.find("plans", kind).read(document)
    title = str(document.tables.get("title") or document.file.stem)
    return ResolvedPlan(document.file.stem, title, kind, question, content, digest(canonical(content)))


def find(path: str | Path) -> Path:
    """Path of a plan file, or of a shipped plan by its name."""
    file = Path(path)
    if file.is_file() or file.suffix or len(file.parts) > 1:
        return file
    return catalog.find("plans", str(path))


def run_plan(
    plan: ResolvedPlan,
    out: str | Path,
    jobs: int | None = None,
    tell: Tell = lambda line: None,
    executor: Executor | None = None,
) -> PlanResult:
    """Answer a plan and write the answer; what the folder holds from before is not run again.

    `jobs` and `executor` are those of `poolwise.studies.run`. Raises InputError, also where another process writes to the
    same folder.
    """
    executor = Local(jobs) if executor is None else executor
    result = PlanResult(plan, Path(out), plan.question.answer(Path(out), executor, tell))
    result.write()
    return result
