"""What can happen, in the order in which it counts within one instant: ends, arrivals, capacity, wake-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from poolwise.model.decision import Start


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"  # by a scheduler's Stop
    LOST = "lost"  # its capacity went away
    REFUSED = "refused"  # it was committed, and never became real
    OUT_OF_MEMORY = "out of memory"  # it used more than it asked for, or was stopped while it lacked memory


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job waits (row of the job table): it was submitted, or was waiting already when this loop began.

    `tasks` names those that wait where others are at work or done; None means all of them.
    """

    job: int
    tasks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was committed became real: all of its tasks are at work. A simulated start is real at once."""

    run: int
    job: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A run ended; `requeue` asks for its tasks to wait again.

    The outcome REFUSED undoes a start that was committed and could not be made real; `reason` says why.
    """

    run: int
    job: int
    tasks: tuple[int, ...]
    outcome: Outcome
    requeue: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A waiting job was taken back by whoever submitted it."""

    job: int


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """An owner's capacity of a resource changed by `amount` (negative: lost). Runs that no longer fit there are lost."""

    owner: int
    resource: int
    amount: int


@dataclass(frozen=True, slots=True)
class Stalled:
    """A run uses more memory than it holds: it stands still until it holds that, or is stopped."""

    run: int


@dataclass(frozen=True, slots=True)
class Joined:
    """An owner joined the machine, behind those that were there."""

    owner: int


@dataclass(frozen=True, slots=True)
class Left:
    """An owner left the machine; its number stays, with no capacity, until owners are renumbered."""

    owner: int


@dataclass(frozen=True, slots=True)
class Renumbered:
    """Rows of the job table were renumbered: old row -> new row, for all jobs that are still there."""

    rows: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Wake:
    """The time that a plan asked to be woken at."""


Event = Arrival | Started | Ended | Stalled | Withdrawn | CapacityChanged | Joined | Left | Renumbered | Wake


@dataclass(frozen=True, slots=True)
class EventBatch:
    """All events of one instant (or a single one where the platform is told to pass per event)."""

    time: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new since the last pass, for dispatchers that keep caches.

    It only says where to look: what a dispatcher decides follows from the queue and the snapshot alone.

    Attributes
    ----------
    arrived : rows of jobs that joined the queue for the first time
    requeued : rows of jobs some of whose tasks wait again
    ended : run numbers
    started : (start, run number) of the starts that the platform committed since
    resized : numbers of the runs to which the platform gave another placement since
    refused : (start, reason) of those that it refused, at once or later
    capacity, joined, left : owners whose capacity changed, that joined, that left
    woke : whether a wake-up is among the events
    """

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

    def beside(self, jobs: frozenset[int]) -> Changes:
        """Return what has happened besides the arrival of some jobs; the fate of the last plan's starts does not count."""
        arrived = tuple(job for job in self.arrived if job not in jobs)
        return replace(self, arrived=arrived, started=(), refused=(), resized=())

    @property
    def machine(self) -> bool:
        """Whether the machine has changed."""
        return bool(self.capacity or self.joined or self.left)
