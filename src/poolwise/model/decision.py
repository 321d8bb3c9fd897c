"""What a scheduler may say. Decisions are data: the platform commits them, a test compares them, a log keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from poolwise.arrays import IntArray
from poolwise.model.placement import Placement, Refusal


@dataclass(frozen=True, slots=True)
class Start:
    """Start tasks of a job at a placement now; atomic: every row of it or nothing.

    All tasks of one start form one run and end together; a job whose tasks end separately gets one start for each task.
    """

    job: int
    tasks: tuple[int, ...]
    placement: Placement


@dataclass(frozen=True, slots=True)
class Stop:
    """Take a run off its placement. Its work is lost; `requeue` says whether its tasks wait again."""

    run: int
    requeue: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Resize:
    """Change what a run holds to another placement, from now on; atomic: every row of it or nothing.

    Only memory may change: how much, and where it lies. All other rows are those that the run has.
    """

    run: int
    placement: Placement


@dataclass(frozen=True, slots=True)
class Reject:
    """Never run a job; it leaves the queue and is counted under the reason."""

    job: int
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave a job waiting and say why. Waiting is what happens to an undecided job; this only explains it."""

    job: int
    refusal: Refusal


Decision = Start | Stop | Resize | Reject | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of one pass, committed in order, and when to be asked again if nothing else happens.

    `wake_at` (ns) serves rounds, delay scheduling and postponement.
    """

    decisions: tuple[Decision, ...] = ()
    wake_at: int | None = None

    @property
    def starts(self) -> tuple[Start, ...]:
        """Starts, in their order."""
        return tuple(decision for decision in self.decisions if isinstance(decision, Start))

    @property
    def rejected(self) -> tuple[int, ...]:
        """Rows of the jobs that are rejected, in their order."""
        return tuple(decision.job for decision in self.decisions if isinstance(decision, Reject))

    @property
    def waits(self) -> dict[int, Refusal]:
        """Row -> reason given for a job that is left waiting."""
        return {decision.job: decision.refusal for decision in self.decisions if isinstance(decision, Wait)}

    def only(self, jobs: IntArray) -> Plan:
        """Return the decisions about some waiting jobs, (k,) rows of the job table."""
        rows = frozenset(jobs.tolist())
        about = (d for d in self.decisions if not isinstance(d, Stop | Resize))
        return replace(self, decisions=tuple(d for d in about if d.job in rows))


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of committing a plan.

    Attributes
    ----------
    committed : decisions that took effect
    rejected : (decision, reason); a start that no longer fits changes nothing
    started : (start, run number) of the starts among the committed; what they take is held from now on, though the run
        may still have to become real
    aside : row -> why, of jobs that lack something which no scheduler counts, and will for as long as nothing changes: the
        others are decided about once more without them
    """

    committed: tuple[Decision, ...] = ()
    rejected: tuple[tuple[Decision, str], ...] = ()
    started: tuple[tuple[Start, int], ...] = ()
    aside: Mapping[int, str] = field(default_factory=dict)

    def then(self, after: CommitResult) -> CommitResult:
        """Return the result of this commit and the next one of the same pass."""
        return CommitResult(
            (*self.committed, *after.committed),
            (*self.rejected, *after.rejected),
            (*self.started, *after.started),
            {**self.aside, **after.aside},
        )
