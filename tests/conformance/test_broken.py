"""Objects that each break one promise: every check can fail, and says what it saw."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from poolwise.conformance import Check, check, check_backfill, check_model, check_order, check_placement, check_scheduler, cost
from poolwise.conformance.cases import Case, devices
from poolwise.conformance.findings import DETERMINISTIC, UNCHANGED
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel, PlacementPolicy, QueuePolicy
from poolwise.model import Changes, Job, Kind, Machine, Placement, Plan, Queue, Refusal, Run, Snapshot, Start, Workload
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.cost.model import Places, Tasks, Waiting
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler


def failed(results: tuple[Check, ...]) -> dict[str, str]:
    return {result.name: result.problem for result in results if not result.ok}


def only(results: tuple[Check, ...], name: str, says: str) -> None:
    """Exactly one promise is broken, and the sentence says so."""
    problems = failed(results)
    assert list(problems) == [name]
    assert says in problems[name]
    assert "\n" not in problems[name]
    assert any(str(result).startswith(f"failed  {name}: ") for result in results)


# Schedulers


@dataclass(frozen=True)
class Bent:
    """Delegates to a list scheduler; subclasses bend what it decides."""

    def open(self, machine: Machine, workload: Workload, seed: int) -> "Bent":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        return self.bend(
            ListScheduler().open(snapshot.machine, snapshot.workload, 0).schedule(queue, snapshot, changes), snapshot
        )

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        return plan


class Greedy(Bent):
    """Takes more nodes than there are."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        extra = [Start(d.job, d.tasks, Placement.of([(0, 0, 0, 99)])) for d in plan.decisions if isinstance(d, Start)]
        return Plan((*extra, *plan.decisions))


class Early(Bent):
    """Starts the last job of the trace at once."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        last = Start(len(snapshot.workload) - 1, (0,), Placement.of([(0, 0, 0, 1)]))
        return Plan((last, *plan.decisions)) if snapshot.now < snapshot.workload.submit[-1] else plan


class Twice(Bent):
    """Starts a job a second time in the same plan."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        return Plan((*plan.decisions, *(d for d in plan.decisions if isinstance(d, Start))))


class Idle(Bent):
    """Never starts anything."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        return Plan()


class Sleepless(Bent):
    """Wants to be woken for ever."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        return Plan(wake_at=snapshot.now + 1)


class Scribbler(Bent):
    """Makes free arrays writable and takes from them."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        snapshot.free.flags.writeable = True
        snapshot.free[0, 0] -= 1
        return plan


class Thief(Bent):
    """Takes jobs out of the queue."""

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        for job in changes.arrived:
            queue.take(job)
        return Plan()


class Crashing(Bent):
    """Divides by zero."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        raise ZeroDivisionError("division\nby zero")


class Remembering(Bent):
    """Its dispatcher counts passes and skips the third: no snapshot tells the count."""

    def open(self, machine: Machine, workload: Workload, seed: int) -> Bent:
        return Counting()


class Counting(Bent):
    passes = 0

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        self.__dict__["passes"] = self.passes + 1  # past the frozen dataclass
        return Plan(wake_at=snapshot.now + 1) if self.passes == 3 else plan


_draws = np.random.default_rng(0)


class Random(Bent):
    """Chooses the rack by a global generator."""

    def bend(self, plan: Plan, snapshot: Snapshot) -> Plan:
        return plan if _draws.random() < 0.5 else Plan(wake_at=snapshot.now + 1)


class Unpicklable(Bent):
    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("has a lock")


class NeverEqual(Bent):
    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None


def test_a_faultless_delegate_passes() -> None:
    assert failed(check_scheduler(Bent())) == {}


@pytest.mark.parametrize(
    ("scheduler", "name", "says"),
    [
        (Greedy(), "respects capacity", "capacity is not free"),
        (Early(), "starts only what waits", "tasks are not waiting"),
        (Twice(), "starts only what waits", "tasks are not waiting"),
        (Idle(), "serves or rejects every job", "40 jobs never started"),
        (Sleepless(), "serves or rejects every job", "would never end"),
        (Scribbler(), "leaves its inputs unchanged", "changed the queue or the snapshot"),
        (Thief(), "leaves its inputs unchanged", "changed the queue or the snapshot"),
        (Crashing(), "runs without an error", "raised ZeroDivisionError: division by zero"),
        (Unpicklable(), "is equal after pickling", "has a lock"),
        (NeverEqual(), "is equal after pickling", "its copy differs"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Bent) else None,
)
def test_a_broken_scheduler_is_found_out(scheduler: Bent, name: str, says: str) -> None:
    problems = failed(check_scheduler(scheduler))
    assert says in problems[name]


def test_memory_and_chance_are_found_out() -> None:
    assert "a freshly opened one" in failed(check_scheduler(Remembering()))["decides alike warm and freshly opened"]
    assert "is deterministic" in failed(check_scheduler(Random()))


def test_capacity_kept_at_the_end_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """No scheduler can keep capacity on a sound platform: break the platform."""
    from poolwise.engine.simulated import Simulation

    ended = Simulation._end

    def leak(self: Simulation, *arguments: object) -> object:
        event = ended(self, *arguments)
        self._free[0, 0] -= self.now > 0 and int(self._free[0, 0]) == 4
        return event

    monkeypatch.setattr(Simulation, "_end", leak)
    assert "gives everything back" in failed(check_scheduler(ListScheduler()))


# Queue orders


class Order(QueuePolicy):
    """Stateless orders of the tests are equal to their like."""

    kind: ClassVar = "opaque"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return np.zeros(len(queue))


class Short(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return np.zeros(1)


class Whole(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return np.zeros(len(queue), dtype=np.int64)


class NotANumber(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return np.where(queue.jobs == 5, np.nan, 0.0)


class Unkind(Order):
    kind: ClassVar = "cubic"


class NotStatic(Order):
    kind: ClassVar = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return queue.waited_s(snapshot.now)


class NotLinear(Order):
    kind: ClassVar = "linear"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return queue.waited_s(snapshot.now) ** 2


class NotFromZero(Order):
    kind: ClassVar = "linear"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return queue.waited_s(snapshot.now) + 1.0


class Falling(Order):
    kind: ClassVar = "linear"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return -queue.waited_s(snapshot.now)


class Dice(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return _draws.random(len(queue))


class Emptying(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        queue.count_pass()
        queue.add(0)
        return np.zeros(len(queue))


@pytest.mark.parametrize(
    ("order", "name", "says"),
    [
        (Short(), "gives every waiting job one float64 that is a number", "shape (1,)"),
        (Whole(), "gives every waiting job one float64 that is a number", "int64"),
        (NotANumber(), "gives every waiting job one float64 that is a number", "NaN for the job in row [5]"),
        (Unkind(), "keeps the promise of its kind", "kind is 'cubic'"),
        (NotStatic(), "keeps the promise of its kind", "static, but"),
        (NotLinear(), "keeps the promise of its kind", "linear, but"),
        (NotFromZero(), "keeps the promise of its kind", "linear, but"),
        (Falling(), "keeps the promise of its kind", "linear, but"),
        (Dice(), "is deterministic", "answered differently"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Order) else None,
)
def test_a_broken_order_is_found_out(order: Order, name: str, says: str) -> None:
    only(check_order(order), name, says)


def test_an_order_that_changes_the_queue_is_found_out() -> None:
    assert "leaves its inputs unchanged" in failed(check_order(Emptying()))


# Placements


@dataclass(frozen=True)
class Over(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        return super().place(job, snapshot.empty())

    def screen(self, jobs: np.ndarray, free: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        return PlacementPolicy.screen(self, jobs, free, snapshot)


@dataclass(frozen=True)
class Stingy(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        found = super().place(job, snapshot)
        return found if isinstance(found, Refusal) else Placement.of(found.rows()[:1])


@dataclass(frozen=True)
class Strict(RackPlacement):
    def screen(self, jobs: np.ndarray, free: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        return super().screen(jobs, free, snapshot) & (snapshot.workload.nodes[jobs] != 2)


@dataclass(frozen=True)
class Contrary(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        idle = bool((snapshot.free == snapshot.capacity).all())
        return Refusal("too quiet here") if idle else super().place(job, snapshot)


@pytest.mark.parametrize(
    ("placement", "name", "says"),
    [
        (Over(), "places only into what is free", "does not fit"),
        (Stingy(), "gives a job all its nodes", "nodes and got"),
        (Strict(), "screens out only what it cannot place", "says no to the job"),
        (Contrary(), "places on the empty machine what it places on a busy one", "refused by the empty machine"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, RackPlacement) else None,
)
def test_a_broken_placement_is_found_out(placement: RackPlacement, name: str, says: str) -> None:
    only(check_placement(placement), name, says)


# Backfills


@dataclass(frozen=True)
class Forward(Easy):
    """Places every job as if the others had not started."""

    def select(self, jobs, priority, snapshot, placement):
        found = ((job, placement.place(snapshot.workload.job(job), snapshot)) for job in jobs.tolist())
        return [Start(job, (0,), place) for job, place in found if isinstance(place, Placement)]


@dataclass(frozen=True)
class Doubling(Easy):
    def select(self, jobs, priority, snapshot, placement):
        starts = list(super().select(jobs, priority, snapshot, placement))
        return [*starts, *starts]


@dataclass(frozen=True)
class Spoiling(Easy):
    def select(self, jobs, priority, snapshot, placement):
        starts = list(super().select(jobs, priority, snapshot, placement))
        priority[:] = 0.0
        return starts


def test_broken_backfills_are_found_out() -> None:
    choice = "starts each waiting job at most once, within what is free"
    assert "do not fit what is free" in failed(check_backfill(Forward()))[choice]
    assert "was started already" in failed(check_backfill(Doubling()))[choice]
    assert "the priorities" in failed(check_backfill(Spoiling()))["leaves its inputs unchanged"]


# Models


@dataclass(frozen=True)
class Halfway(PerformanceModel):
    wait: object = 0
    slow: float = 0.0
    owners: tuple[int, ...] = field(default=())

    def setup(self, run: Run, view: Snapshot) -> int:
        return self.wait

    def slowdown(self, run: Run, view: Snapshot) -> float:
        return self.slow

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        return self.owners


@dataclass(frozen=True)
class Crowd(Halfway):
    """Slows down with the number of runs anywhere, and does not say so."""

    def slowdown(self, run: Run, view: Snapshot) -> float:
        return 0.1 * sum(1 for _ in view.runs())


@dataclass(frozen=True)
class OwnLinksOnly(NetworkSharing):
    """Names only the links that its run crosses: a throttled neighbour's other links matter too."""

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        if not super().touches(placement, view):
            return ()
        assert view.machine.fabric is not None
        devices = [o for o in placement.owners() if view.machine.kind[o] == Kind.DEVICE]
        path = view.machine.fabric.path(placement.owners()[0], devices[0])
        return view.machine.fabric.link_owners(sorted(path))


@dataclass(frozen=True)
class Moody(Halfway):
    def slowdown(self, run: Run, view: Snapshot) -> float:
        return float(_draws.random())


@pytest.mark.parametrize(
    ("model", "name", "says"),
    [
        (Halfway(wait=-1), "gives a setup of whole nanoseconds, at least 0", "setup -1"),
        (Halfway(wait=0.5), "gives a setup of whole nanoseconds, at least 0", "setup 0.5"),
        (Halfway(owners=(99,)), "names owners of the machine in touches", "(99,)"),
        (Crowd(), "names in touches all that its slowdown depends on", "while nothing changed"),
    ],
    ids=["negative", "fraction", "stranger", "crowd"],
)
def test_a_broken_model_is_found_out(model: PerformanceModel, name: str, says: str) -> None:
    problems = failed(check_model(model))
    assert says in problems[name]


@dataclass(frozen=True)
class InTurn(Bent):
    """Starts jobs on arrival at given (node, device)."""

    places: tuple[tuple[int, int], ...]

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        places = [(job, *self.places[job]) for job in queue.jobs.tolist()]
        return Plan(tuple(Start(j, (0,), Placement.of([(0, node, 0, 1), (0, device, 1, 0)])) for j, node, device in places))


def test_a_model_that_overlooks_what_throttles_its_neighbours_is_found_out() -> None:
    """A and B share port 0 (1250 MB/s), B and C port 2 (400). When C comes, B falls from 400 to 200 and A gains 200."""
    workload = Workload.of(np.arange(4), np.full(4, 90), requests={"bandwidth": np.full(4, 2000)})
    case = Case(devices().machine, workload, InTurn(((0, 5), (0, 6), (3, 6), (1, 5))))
    name = "names in touches all that its slowdown depends on"
    assert failed(check_model(NetworkSharing(), case)) == {}
    problem = failed(check_model(OwnLinksOnly(), case))[name]
    assert f"run 0 went from {2000 / 850 - 1} to {2000 / 1050 - 1} while nothing changed on the owners (8, 9)" in problem


def test_impossible_slowdowns_and_moods_are_found_out() -> None:
    for slowdown in (-1.0, float("inf"), float("nan")):
        assert failed(check_model(Halfway(slow=slowdown)))
    assert "is deterministic" in failed(check_model(Moody()))


def test_what_is_none_of_these_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no scheduler, order"):
        check(3)
    with pytest.raises(InputError, match="without settings"):
        check(type("Needy", (), {"__init__": lambda self, x: None}))
    assert failed(check(FCFS)) == {}


# Cost models


@dataclass(frozen=True)
class Cost:
    """A cost model that can break each of its promises."""

    fault: str = ""

    @property
    def looks_at(self) -> frozenset[str]:
        return frozenset({"colour"} if self.fault == "named" else ())

    def placing(self, tasks: Tasks, places: Places, copies: int) -> np.ndarray:
        each = np.ones((len(tasks), len(places), 1))
        match self.fault:
            case "shape":
                return each[:, :, 0]
            case "number":
                return each * np.nan
            case "random":
                return each * np.random.default_rng().random()
            case "changes":
                places.free[:] += 1
            case "looks":
                return each * (places.load[None, :, None] + places.running[None, :, None])
        return each

    def waiting(self, waiting: Waiting) -> np.ndarray:
        return np.full(len(waiting.passes), np.inf if self.fault == "waiting" else 1.0)


@pytest.mark.parametrize(
    ("fault", "name", "says"),
    [
        ("shape", cost.SHAPE, "returned shape (1, 2)"),
        ("number", cost.NUMBERS, "NaN"),
        ("random", DETERMINISTIC, "answered differently"),
        ("changes", UNCHANGED, "changed the tasks or the places"),
        ("looks", cost.LOOKS, "costs change with the running"),
        ("named", cost.LOOKS, "names colour, known: running, load, position"),
        ("waiting", cost.WAITING, "inf"),
    ],
)
def test_a_broken_cost_model(fault: str, name: str, says: str) -> None:
    assert not failed(check(Cost()))
    only(check(Cost(fault)), name, says)
