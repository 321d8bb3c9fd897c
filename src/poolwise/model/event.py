"""Events, in the order in which they apply within one instant: ends, arrivals, changes of capacity, wake-ups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from poolwise.model.decision import Start
from poolwise.short_repr import short_repr


class Outcome(StrEnum):
    """Ways in which a run ends."""

    FINISHED = "finished"
    STOPPED = "stopped"  # by a scheduler's Stop
    LOST = "lost"  # its capacity was lost
    REFUSED = "refused"  # its start was committed but never bound
    OUT_OF_MEMORY = "out of memory"  # it used more than it requested, or was stopped while it lacked memory


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job (row of the job table) waits: it was submitted, or was waiting when the loop began.

    `tasks` are the waiting tasks, for a job whose other tasks run or are done; None means that all of its tasks wait.
    """

    job: int
    tasks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """All tasks of a committed run are bound and running. A simulated start is bound at once."""

    run: int
    job: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A run ended; with `requeue` its tasks wait again.

    The outcome REFUSED undoes a committed start that could not be bound; `reason` says why.
    """

    run: int
    job: int
    tasks: tuple[int, ...]
    outcome: Outcome
    requeue: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobWithdrawn:
    """The user canceled a waiting job."""

    job: int


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """An owner's capacity of a resource changed by `amount` (negative: lost). Runs that no longer fit there are lost."""

    owner: int
    resource: int
    amount: int


@dataclass(frozen=True, slots=True)
class RunStalled:
    """A run needs more memory than it holds: it makes no progress until it gets the memory or is stopped."""

    run: int


@dataclass(frozen=True, slots=True)
class OwnerJoined:
    """An owner joined the machine, with the next free number."""

    owner: int


@dataclass(frozen=True, slots=True)
class OwnerLeft:
    """An owner left the machine; it keeps its number, without capacity, until owners are renumbered."""

    owner: int


@dataclass(frozen=True, slots=True)
class Wakeup:
    """The wake-up time that a pass set has come."""


Event = Arrival | Started | Ended | RunStalled | JobWithdrawn | CapacityChanged | OwnerJoined | OwnerLeft | Wakeup


@dataclass(frozen=True, slots=True)
class EventBatch:
    """All events of one instant, or a single one if the platform makes a pass per event."""

    time: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes since the last pass, for dispatchers that keep caches.

    It is a hint only: decisions must depend on the queue and the snapshot alone.

    Attributes
    ----------
    arrived : rows of jobs that joined the queue for the first time
    requeued : rows of jobs some of whose tasks wait again
    ended : numbers of runs that ended
    started : (start, run number) of the starts that the platform committed
    refused : (start, reason) of the starts that it refused, at once or later
    capacity, joined, left : owners whose capacity changed, owners that joined, and owners that left
    woke : whether the wake-up time that a pass set has come
    resized : numbers of the runs whose placement the platform changed
    explain : rows of waiting jobs whose wait the decisions must explain (`Decisions.reasons`); empty in ordinary passes

    Examples
    --------
    >>> from poolwise.interfaces import Changes
    >>> Changes(arrived=(3, 4)).machine
    False
    """

    __repr__ = short_repr

    arrived: tuple[int, ...] = ()
    requeued: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    started: tuple[tuple[Start, int], ...] = ()
    refused: tuple[tuple[Start, str], ...] = ()
    capacity: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    woke: bool = False
    resized: tuple[int, ...] = ()
    explain: frozenset[int] = frozenset()

    def without_arrivals(self, jobs: frozenset[int]) -> Changes:
        """Return the changes without the arrival of some jobs and without the results of the last decisions."""
        arrived = tuple(job for job in self.arrived if job not in jobs)
        return replace(self, arrived=arrived, started=(), refused=(), resized=())

    @property
    def machine(self) -> bool:
        """True if the machine changed."""
        return bool(self.capacity or self.joined or self.left)
