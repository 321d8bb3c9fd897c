"""Schedulers that each break one promise: every check can fail, and reports the violation."""

import pytest

from poolwise.conformance import check, check_scheduler
from poolwise.errors import InputError
from poolwise.model import Changes, Decisions, Machine, Placement, Queue, Resize, Snapshot, Start
from poolwise.policies.order.priorities import FCFS
from poolwise.schedulers.list import ListScheduler
from tests.helpers.broken import Bent, draws, failed

pytestmark = pytest.mark.long


class Greedy(Bent):
    """Allocates more nodes than the machine has."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        extra = [Start(d.job, d.tasks, Placement.of([(0, 0, 0, 99)])) for d in decisions if isinstance(d, Start)]
        return Decisions((*extra, *decisions))


class Swelling(Bent):
    """Resizes running jobs beyond the memory of the machine."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        wide = [Resize(run.id, Placement.of([*run.placement.rows(), (0, 5, 1, 10**9)])) for run in snapshot.runs()]
        return Decisions((*wide, *decisions))


class Moving(Bent):
    """Moves running jobs to other nodes."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        moved = [Resize(run.id, Placement.of([(0, 2, 0, 1)])) for run in snapshot.runs()]
        return Decisions((*moved, *decisions))


class Early(Bent):
    """Starts the next job of the trace before it is submitted."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        return Decisions((Start(len(snapshot.table), (0,), Placement.of([(0, 0, 0, 1)])), *decisions))


class Twice(Bent):
    """Starts a job a second time in the same pass."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        return Decisions((*decisions, *(d for d in decisions if isinstance(d, Start))))


class Idle(Bent):
    """Never starts anything."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        return Decisions()


class Sleepless(Bent):
    """Requests a wake-up in every pass."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        return Decisions(next_wakeup=snapshot.now + 1)


class Scribbler(Bent):
    """Makes the free amounts writable and changes them."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        snapshot.free.flags.writeable = True
        snapshot.free[0, 0] -= 1
        return decisions


class Thief(Bent):
    """Removes jobs from the queue."""

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        for job in changes.arrived:
            queue.remove_tasks(job)
        return Decisions()


class Crashing(Bent):
    """Divides by zero."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        raise ZeroDivisionError("division\nby zero")


class Remembering(Bent):
    """Counts passes and skips every third: hidden state."""

    def open(self, machine: Machine, seed: int) -> Bent:
        return Counting()


class Counting(Bent):
    passes = 0

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        self.__dict__["passes"] = self.passes + 1  # bypasses the frozen dataclass
        return Decisions(next_wakeup=snapshot.now + 1) if self.passes == 3 else decisions


class Random(Bent):
    """Chooses the rack by a global random generator."""

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        return decisions if draws.random() < 0.5 else Decisions(next_wakeup=snapshot.now + 1)


class Unpicklable(Bent):
    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("has a lock")


class NeverEqual(Bent):
    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None


def test_correct_delegate_passes() -> None:
    assert failed(check_scheduler(Bent())) == {}


@pytest.mark.parametrize(
    ("scheduler", "name", "says"),
    [
        (Greedy(), "respects capacity", "capacity is not free"),
        (Swelling(), "respects capacity", "capacity is not free"),
        (Moving(), "respects capacity", "only memory can be resized"),
        (Early(), "starts only waiting tasks", "tasks are not waiting"),
        (Twice(), "starts only waiting tasks", "tasks are not waiting"),
        (Idle(), "serves or rejects every job", "40 jobs never started"),
        (Sleepless(), "serves or rejects every job", "would never end"),
        (Scribbler(), "leaves its inputs unchanged", "changed the queue or the snapshot"),
        (Thief(), "leaves its inputs unchanged", "changed the queue or the snapshot"),
        (Crashing(), "runs without an error", "ZeroDivisionError: division by zero"),
        (Unpicklable(), "is equal after pickling", "has a lock"),
        (NeverEqual(), "is equal after pickling", "its copy is not equal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Bent) else None,
)
def test_broken_scheduler_is_detected(scheduler: Bent, name: str, says: str) -> None:
    problems = failed(check_scheduler(scheduler))
    assert says in problems[name]


def test_hidden_state_and_global_randomness_are_detected() -> None:
    assert (
        "a newly opened dispatcher" in failed(check_scheduler(Remembering()))["decides alike before and after it is reopened"]
    )
    assert "is deterministic" in failed(check_scheduler(Random()))


def test_capacity_held_at_the_end_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a correct platform no scheduler can hold capacity, so the platform is broken here."""
    from poolwise.platforms.simulated import Simulation

    ended = Simulation._end

    def leak(self: Simulation, *arguments: object) -> object:
        event = ended(self, *arguments)
        self._free[0, 0] -= self.now > 0 and int(self._free[0, 0]) == 4
        return event

    monkeypatch.setattr(Simulation, "_end", leak)
    assert "releases all resources" in failed(check_scheduler(ListScheduler()))


def test_object_of_no_known_kind_is_an_input_error() -> None:
    with pytest.raises(InputError, match="is not a scheduler, order"):
        check(3)
    with pytest.raises(InputError, match="settings without defaults"):
        check(type("Needy", (), {"__init__": lambda self, x: None}))
    assert failed(check(FCFS)) == {}
