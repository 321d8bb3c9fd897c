"""Orders, placements, backfills and cost models that each break one promise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from poolwise.conformance import check, check_backfill, check_model, check_order, check_placement, cost
from poolwise.conformance.findings import DETERMINISTIC, UNCHANGED
from poolwise.errors import InputError
from poolwise.interfaces import AgingOrder, PlacementPolicy, QueuePolicy
from poolwise.model import Job, JobTable, Machine, Placement, Queue, Refusal, Snapshot, Start, Workload
from poolwise.model.rules import BackfillRule, FixedSlowdown, PoolScope, RackRule
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler
from tests.helpers.broken import draws, failed, only

pytestmark = pytest.mark.long

# Queue orders


class Order(QueuePolicy):
    """Base of stateless orders, which are equal if their classes are."""

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
    kind: ClassVar = "quadratic"


class NotStatic(Order):
    kind: ClassVar = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return queue.waited_s(snapshot.now)


class NotAging(Order):
    """An order of kind linear without the columns that engines read."""

    kind: ClassVar = "linear"

    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return queue.waited_s(snapshot.now)


@dataclass(frozen=True)
class OtherPriority(AgingOrder):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return queue.waited_s(snapshot.now) + 1.0


@dataclass(frozen=True)
class AmongOthers(AgingOrder):
    """An order whose pace depends on the other jobs of the call."""

    def pace(self, jobs: np.ndarray, table: Workload, machine: Machine) -> np.ndarray:
        return table.requested_s[jobs] / len(jobs)


@dataclass(frozen=True)
class Restless(AgingOrder):
    kind: ClassVar = "cubic"

    def weight(self, jobs: np.ndarray, table: Workload, machine: Machine) -> np.ndarray:
        return draws.random(len(jobs))


@dataclass(frozen=True)
class Standstill(AgingOrder):
    def pace(self, jobs: np.ndarray, table: Workload, machine: Machine) -> np.ndarray:
        return np.zeros(len(jobs))


@dataclass(frozen=True)
class Falling(AgingOrder):
    """Youngest first, which is valid."""

    def weight(self, jobs: np.ndarray, table: Workload, machine: Machine) -> np.ndarray:
        return np.where(jobs % 2 == 0, -1.0, 0.0)


class Dice(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        return draws.random(len(queue))


class Emptying(Order):
    def priority(self, queue: Queue, snapshot: Snapshot) -> np.ndarray:
        queue.count_pass()
        queue.add(0)
        return np.zeros(len(queue))


@pytest.mark.parametrize(
    ("order", "name", "says"),
    [
        (Short(), "returns one float64 priority without NaN per waiting job", "shape (1,)"),
        (Whole(), "returns one float64 priority without NaN per waiting job", "int64"),
        (NotANumber(), "returns one float64 priority without NaN per waiting job", "NaN for the job in row [5]"),
        (Unkind(), "keeps the promise of its kind", "kind is 'quadratic'"),
        (NotStatic(), "keeps the promise of its kind", "static, but"),
        (NotAging(), "keeps the promise of its kind", "does not derive from AgingOrder"),
        (OtherPriority(), "keeps the promise of its kind", "linear, but its priorities"),
        (AmongOthers(), "keeps the promise of its kind", "linear, but pace and weight"),
        (Dice(), "is deterministic", "different"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Order) else None,
)
def test_broken_order_is_detected(order: Order, name: str, says: str) -> None:
    only(check_order(order), name, says)


def test_order_with_random_weights_is_detected() -> None:
    assert "keeps the promise of its kind" in failed(check_order(Restless()))


def test_pace_of_zero_is_detected() -> None:
    only(check_order(Standstill()), "runs without an error", "paces between 1e-60 and 1e+60 in size")


def test_priority_may_fall_with_the_wait() -> None:
    assert not failed(check_order(Falling()))


def test_order_that_changes_the_queue_is_detected() -> None:
    assert "leaves its inputs unchanged" in failed(check_order(Emptying()))


# Placements


@dataclass(frozen=True)
class Over(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        return super().place(job, snapshot.empty())

    def prefilter(self, jobs: np.ndarray, free: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        return PlacementPolicy.prefilter(self, jobs, free, snapshot)


@dataclass(frozen=True)
class Stingy(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        placement = super().place(job, snapshot)
        return placement if isinstance(placement, Refusal) else Placement.of(placement.rows()[:1])


@dataclass(frozen=True)
class Strict(RackPlacement):
    def prefilter(self, jobs: np.ndarray, free: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        return super().prefilter(jobs, free, snapshot) & (snapshot.table.nodes[jobs] != 2)


@dataclass(frozen=True)
class Contrary(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        idle = bool((snapshot.free == snapshot.capacity).all())
        return Refusal("too quiet here") if idle else super().place(job, snapshot)


@dataclass(frozen=True)
class Raising(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        if set(job.table.requests) > {"nodes", "memory", "bandwidth"}:
            raise InputError("what is that?")
        return super().place(job, snapshot)


@dataclass(frozen=True)
class Careless(RackPlacement):
    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        return super().place(job, snapshot)

    def signatures(self, machine: Machine, table: JobTable) -> np.ndarray:
        return np.zeros(len(table), dtype=np.int64)


@pytest.mark.parametrize(
    ("placement", "name", "says"),
    [
        (Over(), "places only on free resources", "does not fit"),
        (Stingy(), "gives a job all its nodes", "nodes and got"),
        (Strict(), "filters out only jobs that it cannot place", "filters out the job"),
        (Careless(), "treats jobs with the same signature alike", "is treated differently from one with the same signature"),
        (Raising(), "refuses unknown requests without raising", "place raised: what is that?"),
        (Contrary(), "places on the empty machine every job that it places on a busy one", "the empty machine refuses the job"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, RackPlacement) else None,
)
def test_broken_placement_is_detected(placement: RackPlacement, name: str, says: str) -> None:
    only(check_placement(placement), name, says)


# Backfills


@dataclass(frozen=True)
class Forward(Easy):
    """A backfill that ignores its own starts."""

    def select(self, cycle):
        snapshot = cycle.snapshot
        placements = ((job, cycle.placement.place(snapshot.table.job(job), snapshot)) for job in cycle.queue.jobs.tolist())
        return [Start(job, (0,), place) for job, place in placements if isinstance(place, Placement)]


@dataclass(frozen=True)
class Doubling(Easy):
    def select(self, cycle):
        starts = list(super().select(cycle))
        return [*starts, *starts]


@dataclass(frozen=True)
class Spoiling(Easy):
    def select(self, cycle):
        starts = list(super().select(cycle))
        cycle.priority[:] = 0.0
        return starts


class FourArguments(Easy):
    """A backfill with the signature of earlier versions."""

    def select(self, queue, priority, snapshot, placement):
        return []


def test_broken_backfills_are_detected() -> None:
    choice = "starts each waiting job at most once, within the free resources"
    assert "exceed the free resources" in failed(check_backfill(Forward()))[choice]
    assert "was started already" in failed(check_backfill(Doubling()))[choice]
    assert "the priorities" in failed(check_backfill(Spoiling()))["leaves its inputs unchanged"]
    assert "instead of one SchedulingPass" in failed(check_backfill(FourArguments()))["runs without an error"]
    with pytest.raises(InputError, match=r"FourArguments.select takes \(queue, priority, snapshot, placement\)") as caught:
        ListScheduler(backfill=FourArguments()).open(Machine.flat(1), 0)
    assert "define select(self, cycle)" in str(caught.value.remedy)


EASY = BackfillRule("head")


@dataclass(frozen=True)
class Stated(Easy):
    """EASY that states a given rule."""

    said: BackfillRule = EASY

    def rule(self) -> BackfillRule:
        return self.said


@pytest.mark.parametrize(
    "rule",
    [BackfillRule("none"), BackfillRule("all"), BackfillRule("head", False), BackfillRule("head", counts_pools=False)],
)
def test_backfill_with_a_wrong_rule_is_detected(rule: BackfillRule) -> None:
    assert not failed(check_backfill(Stated()))
    only(check_backfill(Stated(said=rule)), "follows the rule that it states", "starts at a different time")


@dataclass(frozen=True)
class StatedRacks(RackPlacement):
    """Rack placement that states a given rule."""

    said: PoolScope = "rack"

    def rule(self) -> RackRule:
        return RackRule(self.said)


@dataclass(frozen=True)
class StatedModel(RemoteMemory):
    """Remote memory that states scaled slowdowns."""

    factor: float = 1.0

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
        fixed = super().fixed(table, rows, machine)
        return None if fixed is None else fixed._replace(weight=fixed.weight * self.factor)


def test_placement_and_model_with_wrong_rules_are_detected() -> None:
    assert not failed(check_placement(StatedRacks())) and not failed(check_model(StatedModel()))
    only(check_placement(StatedRacks(said="system")), "follows the rule that it states", "under its rule")
    only(check_model(StatedModel(factor=1.5)), "follows the rule that it states", "under its rule")


# Cost models


@dataclass(frozen=True)
class Cost(CostModel):
    """A cost model that breaks a chosen promise."""

    fault: str = ""

    @property
    def looks_at(self) -> frozenset[str]:
        return frozenset({"colour"} if self.fault == "named" else ())

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> np.ndarray:
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

    def hopeless(self, tasks: TaskClasses) -> np.ndarray:
        if self.fault == "despairs":
            tasks.demand[:] = 0
        return np.zeros((1, 1)) if self.fault == "hopeless" else super().hopeless(tasks)


@pytest.mark.parametrize(
    ("fault", "name", "says"),
    [
        ("shape", cost.SHAPE, "returned shape (1, 2)"),
        ("number", cost.NUMBERS, "NaN"),
        ("random", DETERMINISTIC, "different"),
        ("changes", UNCHANGED, "changed the tasks or the places"),
        ("looks", cost.LOOKS, "costs change with the running"),
        ("named", cost.LOOKS, "names colour, known: running, load, position"),
        ("waiting", cost.WAITING, "inf"),
        ("hopeless", cost.HOPELESS, "returned shape (1, 1) of float64"),
        ("despairs", UNCHANGED, "changed the tasks"),
    ],
)
def test_broken_cost_model_is_detected(fault: str, name: str, says: str) -> None:
    assert not failed(check(Cost()))
    only(check(Cost(fault)), name, says)
