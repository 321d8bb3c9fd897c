"""What can happen, in the order in which it counts within one instant: ends, arrivals, capacity, wake-ups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"  # by a scheduler's Stop
    LOST = "lost"  # its capacity went away


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job was submitted (row number in the workload)."""

    job: int


@dataclass(frozen=True, slots=True)
class Started:
    """A run began (live platforms report it; a simulated start is immediate)."""

    run: int
    job: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A run ended; `requeue` asks for its tasks to wait again."""

    run: int
    job: int
    tasks: tuple[int, ...]
    outcome: Outcome
    requeue: bool = False


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """An owner's capacity of a resource changed by `amount` (negative: lost). Runs that no longer fit there are lost."""

    owner: int
    resource: int
    amount: int


@dataclass(frozen=True, slots=True)
class Wake:
    """The time that a plan asked to be woken at."""


Event = Arrival | Started | Ended | CapacityChanged | Wake


@dataclass(frozen=True, slots=True)
class EventBatch:
    """All events of one instant (or a single one where the platform is told to pass per event)."""

    time: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new since the last pass, for dispatchers that keep caches.

    Attributes
    ----------
    arrived : rows of jobs that joined the queue for the first time
    requeued : rows of jobs some of whose tasks wait again
    ended : run numbers
    capacity : owners whose capacity changed
    woke : whether a wake-up is among the events
    """

    arrived: tuple[int, ...] = ()
    requeued: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    capacity: tuple[int, ...] = ()
    woke: bool = False
