"""Random studies that compare the two engines, and the comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines import Result, simulate
from poolwise.errors import InputError
from poolwise.interfaces import (
    AffineOrder,
    AgingOrder,
    BackfillPolicy,
    OrderKind,
    PerformanceModel,
    QueuePolicy,
    RecalculatedOrder,
    Scheduler,
)
from poolwise.model import Accounting, JobTable, Machine, Queue, Schedule, Snapshot, Workload
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.slurm import LINEAR, SlurmBackfill
from poolwise.policies.order.affine import Affine, LogTerm, PowerTerm
from poolwise.policies.order.priorities import Capped
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp

UNITS = (1, SECOND // 10, SECOND, 60 * SECOND)
Draw = Callable[[np.random.Generator, int], tuple[Machine, Workload]]
EASY_FAMILY = ("none", "easy", "easy", "easy_no_extra", "easy_nodes_only")


class Curious(QueuePolicy):
    """Reads everything that an opaque order may read: runs, free capacity, work left, passes."""

    kind: ClassVar[OrderKind] = "opaque"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        runs = list(snapshot.runs())
        told = sum(run.expected_end % 7 + run.start % 3 + len(run.placement) for run in runs)
        left = sum(int(snapshot.work_left(run.id)) for run in runs)
        seen = (told + left + int(snapshot.free.sum())) % 17
        return ((queue.jobs * 7919 + queue.passes() * 13 + seen) % 17).astype(np.float64)


@dataclass(frozen=True)
class Wide(AgingOrder):
    """A user-defined order linear in the waiting time; the slope is the number of nodes."""

    def weight(self, jobs: IntArray, table: Workload, machine: Machine) -> FloatArray:
        return table.nodes[jobs].astype(np.float64)


@dataclass(frozen=True)
class Signed(AgingOrder):
    """A user-defined order with negative, zero and positive slopes, many equal or almost equal.

    `least` and `most` are the bounds of the weights, `near` how many last bits of the paces differ.
    """

    least: int = -2
    most: int = 2
    near: int = 0

    def pace(self, jobs: IntArray, table: Workload, machine: Machine) -> FloatArray:
        size = np.array([1.0, 3.0, 7.5, 1e3])[jobs * 31 % 4] * (1 + 2.0**-52 * (jobs % (self.near + 1)))
        return np.where(jobs % 5 == 0, -size, size)

    def weight(self, jobs: IntArray, table: Workload, machine: Machine) -> FloatArray:
        weight: FloatArray = self.least + (jobs * 7919 % (self.most - self.least + 1)).astype(np.float64)
        return weight


@dataclass(frozen=True)
class SignedCubic(Signed):
    """The same with the cube of the wait."""

    kind: ClassVar[OrderKind] = "cubic"


class Stepped(RecalculatedOrder):
    """A user-defined order shuffled at each recalculation, depending on ended and current runs."""

    def last(self, now: int) -> int:
        return (now - 7) // (20 * SECOND) * 20 * SECOND + 7

    def following(self, recalculated: int) -> int:
        return recalculated + 20 * SECOND

    def at(self, recalculated: int, jobs: IntArray, accounting: Accounting) -> FloatArray:
        past = accounting.ended
        assert past is not None
        told = int((past.end[past.end < recalculated] % 11).sum())
        told += int((past.start[(past.end >= recalculated) & (past.start < recalculated)] % 3).sum())
        told += int((accounting.start[accounting.start < recalculated] % 3).sum())
        return ((jobs * 7919 + told + recalculated // SECOND) % 17).astype(np.float64)


class Coarse(QueuePolicy):
    """A user-defined static order with many ties, of both signs."""

    kind: ClassVar[OrderKind] = "static"

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        return (queue.table.nodes[queue.jobs] % 3 - 1).astype(np.float64)


@dataclass(frozen=True)
class Lines(AffineOrder):
    """A user-defined affine order with negative, zero and positive slopes and offsets, many equal or almost equal.

    `least` and `most` are the bounds of the slopes, `far` the size of the offsets, `near` how many last bits of them differ.
    """

    least: int = -2
    most: int = 2
    far: float = 50.0
    near: int = 0

    def offset(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        offset: FloatArray = self.far * (jobs * 31 % 7 - 3.0) * (1 + 2.0**-52 * (jobs % (self.near + 1)))
        return offset

    def slope(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        slope: FloatArray = self.least + (jobs * 7919 % (self.most - self.least + 1)).astype(np.float64)
        return slope


OWN = (
    Wide(),
    Coarse(),
    Signed(),
    Signed(-1, -1),
    Signed(-3, 0, near=2),
    Signed(0, 0),
    Signed(-2, 2, near=3),
    SignedCubic(),
    SignedCubic(-3, -1, near=2),
    Lines(),
    Lines(-3, -1, near=2),
    Lines(0, 3, 1e6),
    Lines(0, 0),
    Affine(PowerTerm(1.0, -1.0, -0.2), PowerTerm(-0.1, 1.0, 1.0, -0.5, 0.3), LogTerm(-30.0, 2.0)),
    Affine(PowerTerm(-0.5, 0.2), logs=LogTerm(memory=1.0, pool=-3.0)),
)
"""User-defined orders that kernels compute without callbacks."""


def machine(g: np.random.Generator) -> Machine:
    racks, nodes, local = int(g.integers(1, 6)), int(g.integers(1, 17)), int(g.choice([0, 50, 64, 100]))
    pool = None if g.random() < 0.15 else int(g.choice([0, 200, 1000, 3000]))
    whole = Machine.of_racks(racks, nodes, local=local, pool=pool)
    if pool is None or g.random() < 0.8:
        return whole
    capacity = whole.capacity.copy()  # unequal racks
    capacity[:racks, 0] = g.integers(1, nodes + 1, racks)
    capacity[racks:, 1] = g.integers(0, pool + 1, racks)
    return whole.with_capacity(capacity)


YEAR = 365 * 86_400 * SECOND


def workload(g: np.random.Generator, on: Machine, jobs: int, units: Sequence[int] = UNITS) -> Workload:
    """Draw jobs with many ties in every column, some too large for the machine, and requests that may be too short.

    Times are counted in one of the `units`, ns; where these are long ones, jobs may have several tasks.
    """
    unit, tasks = int(g.choice(units)), 1
    span = max(1, int(jobs * 30 * g.choice([0.05, 0.3, 1, 3])))
    duration = _ns(g.integers(1, int(g.choice([3, 30, 200])), jobs), unit)
    if g.random() < 0.5:
        duration = duration + g.integers(0, 3, jobs)
    guess = np.maximum(1, _ns(duration, g.choice([0.3, 0.5, 1, 1, 2, 5], jobs)))
    nodes = np.minimum(g.integers(1, int(on.capacity[:, 0].sum()) + 2, jobs), g.choice([1, 2, 3, 4, 8, 100], jobs))
    if unit > YEAR // 1000:
        tasks = g.integers(1, 4, jobs)
    memory = g.choice([0, 30, 60, 64, 65, 80, 120, 200, 500], jobs) * int(g.random() < 0.8)
    return Workload.of(
        _ns(g.integers(0, span, jobs), unit),
        duration,
        tasks=tasks,
        requested=None if g.random() < 0.4 else guess,
        requests={"nodes": nodes, "memory": memory},
        attributes={} if g.random() < 0.3 else {"u": g.random(jobs)},
    )


def _ns(counts: IntArray, unit: float | FloatArray) -> IntArray:
    """Convert counts of a unit to ns, at most 291 years."""
    return np.minimum(counts * np.asarray(unit, dtype=np.float64), 291.0 * YEAR).astype(np.int64)


def model(g: np.random.Generator) -> PerformanceModel:
    if g.random() < 0.15:
        return Ideal()
    return RemoteMemory(
        seed=int(g.integers(3)),
        curve=g.choice(["quantile", "linear"]).item(),
        near_ns=int(g.choice([0, 100, 180, 200])),
        far_ns=int(g.choice([180, 240, 280])),
        expect=g.choice(["own", "mean", "none"]).item(),
        spread=g.choice(["worst", "mean", "paper"]).item(),
    )


def backfill(name: str) -> BackfillPolicy:
    """Return a backfill by name; "kept" is conservative with held reservations, "apart" backfills the shortest jobs first."""
    if name == "apart":
        return Easy(order=make("orders", "sjf"))
    return Conservative(keep_reservations=True) if name == "kept" else make("backfills", name)


def at_intervals(g: np.random.Generator, *, limited: bool = False) -> SlurmBackfill:
    """Return Slurm's schedulers with random times of their passes, and short or long intervals, windows and periods.

    The main scheduler considers all jobs, unless it is `limited`.
    """
    settings = {
        "bf_interval": int(g.choice([1, 2, 7, 30, 1000])),
        "bf_window": int(g.choice([1, 2, 10, 1440, 10**6])),
        "bf_max_job_test": int(g.choice([1, 2, 5, 9, 1000])),
        "bf_resolution": int(g.choice([1, 2, 7, 60, 300])),
    }
    if limited:
        settings["default_queue_depth"] = int(g.choice([0, 1, 2, 5]))
        settings["sched_interval"] = int(g.choice([-1, 1, 5, 30, 1000]))
    every = float(g.choice([0, 0, 0, 0.5, 4, 100]))
    times = float(g.choice([0, 0.5, -3, 40])), every, float(g.choice([0, 1.25, -2]))
    return SlurmBackfill(None, settings, *times, select_type=LINEAR if settings["bf_resolution"] in (2, 60) else "")


def scheduler(
    g: np.random.Generator, jobs: int, backfills: tuple[str, ...], orders: Sequence[QueuePolicy] | None = None
) -> Scheduler:
    named = [make("orders", name) for name in ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")]
    orders = [*named, Curious(), *OWN] if orders is None else orders
    order, name = orders[int(g.integers(len(orders)))], g.choice(backfills).item()
    filling = at_intervals(g) if name == "slurm" else backfill(name)
    if g.random() < 0.3:
        order = Capped(order, float(g.choice([0.0, 0.5, 30.0, 1e3])), float(g.choice([0.0, 0.3, 2.0])))
    if isinstance(filling, Easy) and g.random() < 0.3:
        filling = replace(filling, order=[named[1], named[2], *OWN][int(g.integers(2 + len(OWN)))])
    listed = ListScheduler(
        order,
        filling,
        make("placements", "racks", scope=g.choice(["rack", "system"]).item()),
    )
    return WarmUp.before(listed, int(g.integers(0, jobs + 10))) if g.random() < 0.35 else listed


def compare(
    seed: int,
    backfills: tuple[str, ...] = EASY_FAMILY,
    most: int = 150,
    orders: Sequence[QueuePolicy] | None = None,
    units: Sequence[int] = UNITS,
    draw: Draw | None = None,
) -> str:
    """Run one random study in both engines, which must produce the same schedule or error; return the error.

    `draw` draws the machine and that many jobs; by default racks of identical nodes.
    """
    g = np.random.default_rng(seed)
    jobs = int(g.integers(1, most))
    if draw is None:
        on = machine(g)
        load = workload(g, on, jobs, units)
    else:
        on, load = draw(g, jobs)
    how, truth = scheduler(g, jobs, backfills, orders), model(g)
    estimate = None if g.random() < 0.5 else model(g)
    per_event = bool(g.random() < 0.25)
    results: list[Result | str] = []
    for engine in ("reference", "compiled"):
        try:
            results.append(simulate(load, on, how, model=truth, estimate=estimate, pass_per_event=per_event, engine=engine))
        except InputError as error:
            results.append(str(error))
    plain, fast = results
    if isinstance(plain, str) or isinstance(fast, str):
        assert plain == fast, f"seed {seed}: {on.name}, {how}"
        return plain
    assert (plain.engine, fast.engine) == ("reference", "compiled")
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    return ""


def one_head(backfill: BackfillPolicy) -> BackfillPolicy:
    """Return a backfill with one head: no kernel supports several with pools of shared nodes or changing capacity."""
    return replace(backfill, heads="machine") if isinstance(backfill, NoBackfill | Easy) else backfill


def difference(a: Schedule, b: Schedule) -> str:
    """Return the first field in which two schedules differ, empty if they are equal byte for byte."""
    for name in ("job", "start", "end", "offset", "owner", "resource", "amount"):
        x, y = getattr(a, name), getattr(b, name)
        if x.dtype != y.dtype or x.tobytes() != y.tobytes():
            return name
    for name in ("outcome", "waiting", "passes", "refused"):
        if getattr(a, name) != getattr(b, name):
            return name
    return "" if list(a.rejected.items()) == list(b.rejected.items()) else "rejected"
