"""Decisions of a scheduler, as data: the platform commits them, a test compares them, a log records them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from poolwise.model.placement import Placement, Refusal
from poolwise.model.reason import Reason, WaitCause
from poolwise.short_repr import short_repr


@dataclass(frozen=True, slots=True)
class Start:
    """Start tasks of a job at a placement now, all of them or none.

    All tasks of one start form one run and end together; a job whose tasks end separately gets one start per task.

    Attributes
    ----------
    job : row of the job table
    tasks : numbers of the tasks; `queue.tasks(job)` gives those that wait
    placement : the placement of all these tasks

    Examples
    --------
    >>> from poolwise.interfaces import Placement, Start
    >>> start = Start(job=0, tasks=(0,), placement=Placement.of([(0, 3, 0, 2)]))
    >>> start.placement.owners()
    (3,)
    """

    __repr__ = short_repr

    job: int
    tasks: tuple[int, ...]
    placement: Placement


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a run and release its placement. Its work is lost.

    Attributes
    ----------
    run : number of the run
    requeue : whether its tasks wait again
    reason : a few words for logs and reports

    Examples
    --------
    >>> from poolwise.interfaces import Stop
    >>> Stop(run=4, requeue=True, reason="preempted").requeue
    True
    """

    __repr__ = short_repr

    run: int
    requeue: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Resize:
    """Give a run a different placement from now on; the change applies completely or not at all.

    Only its memory may change: the amount, and the owners that provide it. All other rows must equal those of the run.

    Attributes
    ----------
    run : number of the run
    placement : its new placement

    Examples
    --------
    >>> from poolwise.interfaces import Placement, Resize
    >>> Resize(run=4, placement=Placement.of([(0, 3, 1, 4096)])).run
    4
    """

    __repr__ = short_repr

    run: int
    placement: Placement


@dataclass(frozen=True, slots=True)
class Reject:
    """Reject a job: it never runs, leaves the queue, and is counted under the reason.

    Attributes
    ----------
    job : row of the job table
    reason : a few words; reports count jobs by reason

    Examples
    --------
    >>> from poolwise.interfaces import Reject
    >>> Reject(job=2, reason="never fits").reason
    'never fits'
    """

    __repr__ = short_repr

    job: int
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Give the reason why a job is left waiting. A job without any decision also waits, but without a reason.

    Attributes
    ----------
    job : row of the job table
    refusal : why the job cannot be placed

    Examples
    --------
    >>> from poolwise.interfaces import Refusal, Wait
    >>> str(Wait(1, Refusal("no rack has the nodes", "nodes", needed=4, free=2)).refusal)
    'no rack has the nodes (nodes: needs 4, 2 free)'
    """

    __repr__ = short_repr

    job: int
    refusal: Refusal


Decision = Start | Stop | Resize | Reject | Wait


@dataclass(frozen=True)
class Decisions:
    """The decisions of one scheduling pass, in the order in which they are committed.

    Attributes
    ----------
    entries : starts, stops, resizes, rejections and explanations of waits
    next_wakeup : time (ns) of the next pass if no event occurs before; for rounds, delay scheduling and postponement
    reasons : row -> reason, for the jobs in `Changes.explain` that are left waiting

    Examples
    --------
    >>> from poolwise.interfaces import Placement, Decisions, Reject, Start
    >>> decisions = Decisions((Start(0, (0,), Placement.of([(0, 0, 0, 1)])), Reject(1, "never fits")))
    >>> decisions.rejected
    (1,)
    """

    __repr__ = short_repr

    entries: tuple[Decision, ...] = ()
    next_wakeup: int | None = None
    reasons: Mapping[int, Reason] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.entries)

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """The starts, in order."""
        return tuple(decision for decision in self.entries if isinstance(decision, Start))

    @cached_property
    def rejected(self) -> tuple[int, ...]:
        """Rows of the rejected jobs, in order."""
        return tuple(decision.job for decision in self.entries if isinstance(decision, Reject))

    @cached_property
    def waits(self) -> dict[int, Refusal]:
        """Row -> reason, for the jobs that the decisions leave waiting and give a reason for."""
        return {decision.job: decision.refusal for decision in self.entries if isinstance(decision, Wait)}

    def reason(self, job: int, dispatcher: object) -> Reason:
        """Return why a job waits: the recorded reason, else that of its `Wait`, else that the dispatcher gives no reason."""
        if job in self.reasons:
            return self.reasons[job]
        refusal = self.waits.get(job)
        if refusal is not None:
            return Reason.of(WaitCause.SHORT if refusal.resource else WaitCause.UNREPORTED, refusal.reason, refusal)
        return Reason(WaitCause.UNREPORTED, f"{type(dispatcher).__name__.removesuffix('Dispatcher')} gives no reason")


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of committing the decisions of a pass.

    Attributes
    ----------
    committed : decisions that took effect
    rejected : (decision, reason); a start that no longer fits changes nothing
    started : (start, run number) of the committed starts; their resources are held from now on, even before the run is bound
    aside : row -> reason, for jobs that lack a resource which the scheduler does not model; the scheduler decides again
        without them, and they stay excluded until something changes
    """

    committed: tuple[Decision, ...] = ()
    rejected: tuple[tuple[Decision, str], ...] = ()
    started: tuple[tuple[Start, int], ...] = ()
    aside: Mapping[int, str] = field(default_factory=dict)

    def then(self, after: CommitResult) -> CommitResult:
        """Combine this result with that of the next commit of the same pass."""
        return CommitResult(
            (*self.committed, *after.committed),
            (*self.rejected, *after.rejected),
            (*self.started, *after.started),
            {**self.aside, **after.aside},
        )
