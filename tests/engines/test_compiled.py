"""Runs that the compiled engine supports, obstacles of the others, and log messages during compilation."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines import Disturbance, load_kernels, select, simulate
from poolwise.engines.list_scheduling import loading
from poolwise.errors import InputError, PolicyError, UnknownNameError
from poolwise.interfaces import AgingOrder, OrderKind, QueuePolicy
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels import jit
from poolwise.model import Job, Machine, Placement, Queue, Refusal, Snapshot, Workload
from poolwise.model.rules import BackfillRule
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy, EasyNodesOnly, EasyNoExtra
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.priorities import FCFS, SJF
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.quantities import HORIZON, SECOND
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.traces import vinesim

MACHINE = Machine.of_racks(2, 4, local=64, pool=100)
JOBS = Workload.of(
    np.array([0, 1, 2, 3]) * SECOND, np.array([5, 5, 5, 5]) * SECOND, requests={"nodes": np.array([4, 6, 2, 20])}
)


@dataclass(frozen=True)
class Sparse(RackPlacement):
    """A user-defined placement that overrides a method, so it does not inherit the rule."""

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        return super().place(job, snapshot)


@dataclass(frozen=True)
class Impatient(Easy):
    """A user-defined backfill that overrides a method, so it does not inherit the rule."""

    def reservation_state(self, state: Snapshot) -> Snapshot:
        return state.empty()


@dataclass(frozen=True)
class Slower(RemoteMemory):
    """A user-defined model that overrides a method, so it does not inherit the slowdowns."""

    def setup(self, *seen: Any) -> Any:
        return super().setup(*seen)


@dataclass(frozen=True)
class Renamed(Easy):
    """A user-defined backfill that states its rule."""

    def rule(self) -> BackfillRule:
        return BackfillRule("head", extra=False)


@dataclass(frozen=True)
class Grandchild(Renamed):
    """A subclass that overrides nothing, so it inherits the rule."""


@dataclass(frozen=True)
class Documented(Easy):
    """A subclass that only adds a setting and a method."""

    note: str = ""

    def describe(self) -> str:
        return self.note


def test_auto_selects_the_compiled_engine() -> None:
    assert simulate(JOBS, MACHINE, ListScheduler()).engine == "compiled"
    assert simulate(JOBS, MACHINE, ListScheduler(), engine="reference").engine == "reference"


def test_backfill_is_replayed_by_its_stated_rule() -> None:
    g = np.random.default_rng(3)
    jobs = Workload.of(
        np.sort(g.integers(0, 60, 80)) * SECOND, g.integers(1, 20, 80) * SECOND, requests={"nodes": g.integers(1, 9, 80)}
    )
    schedules = [
        simulate(jobs, MACHINE, ListScheduler(backfill=backfill), engine="compiled").schedule
        for backfill in (Renamed(), EasyNoExtra(), Easy())
    ]
    assert schedules[0].job_start.tolist() == schedules[1].job_start.tolist() != schedules[2].job_start.tolist()


def test_rules_are_inherited_unless_a_method_is_overridden() -> None:
    several = BackfillRule("head", heads="partition")
    assert rule_of(Easy()) == several != rule_of(EasyNodesOnly()) == several._replace(counts_pools=False)
    assert rule_of(EasyNoExtra()) == rule_of(Easy(extra=False)) == several._replace(extra=False)
    assert rule_of(Easy(heads="machine")) == BackfillRule("head") and rule_of(NoBackfill(heads="machine")) == BackfillRule(
        "none"
    )
    assert rule_of(NoBackfill()) == BackfillRule("none", heads="partition") and rule_of(Conservative()) == BackfillRule("all")
    assert rule_of(Grandchild()) == BackfillRule("head", extra=False)
    assert rule_of(Documented()) == several == rule_of(Documented(note="mine"))
    for backfill in (Impatient(), Skip(), Conservative(True).open()):
        assert rule_of(backfill) is None


def test_empty_subclasses_run_compiled_with_the_same_schedule() -> None:
    class Mine(Easy):
        pass

    class MyRacks(RackPlacement):
        pass

    class MyList(ListScheduler):
        pass

    result = simulate(JOBS, MACHINE, MyList(backfill=Mine(), placement=MyRacks()))
    assert result.engine == "compiled"
    assert result.schedule.job_start.tolist() == simulate(JOBS, MACHINE, ListScheduler()).schedule.job_start.tolist()


def test_linear_order_without_pace_is_an_error() -> None:
    class Longest(QueuePolicy):
        kind: ClassVar[OrderKind] = "linear"

        def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
            return queue.waited_s(snapshot.now)

    with pytest.raises(PolicyError, match="Longest is linear but not an AgingOrder"):
        simulate(JOBS, MACHINE, ListScheduler(order=Longest()))


@pytest.mark.parametrize(("pace", "weight"), [(0.0, 1.0), (np.nan, 1.0), (1e61, 1.0), (1.0, np.inf), (1.0, 1e-61)])
def test_extreme_paces_and_weights_are_an_error(pace: float, weight: float) -> None:
    class Extreme(AgingOrder):
        def pace(self, jobs: IntArray, table: Workload, machine: Machine) -> FloatArray:
            return np.full(len(jobs), pace)

        def weight(self, jobs: IntArray, table: Workload, machine: Machine) -> FloatArray:
            return np.full(len(jobs), weight)

    for engine in ("reference", "compiled"):
        with pytest.raises(PolicyError, match=r"Extreme must return . (paces|weights) between 1e-60 and 1e\+60"):
            simulate(JOBS, MACHINE, ListScheduler(order=Extreme()), engine=engine)


def test_static_and_aging_orders_are_called_once() -> None:
    """Static orders are called once for priorities, aging ones once for their columns."""

    class Once(QueuePolicy):
        kind: ClassVar[OrderKind] = "static"
        asked = 0

        def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
            Once.asked += 1
            return -queue.table.requested_s[queue.jobs]

    class Aging(AgingOrder):
        asked = 0

        def weight(self, jobs: IntArray, table: Workload, machine: Machine) -> FloatArray:
            Aging.asked += 1
            return -np.ones(len(jobs))

    submit = np.arange(50) * SECOND
    jobs = Workload.of(submit, np.full(50, 9 * SECOND), requests={"nodes": np.full(50, 3)})
    for order in (Once(), Aging()):
        assert simulate(jobs, MACHINE, ListScheduler(order=order)).engine == "compiled"
        assert type(order).asked == 1


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("pass_per_event", {"disturbances": [Disturbance(SECOND, 0, 0, -1)], "pass_per_event": True}),
        ("observer", {"observer": lambda *_: None}),
        ("backfill Impatient", {"scheduler": ListScheduler(backfill=Impatient())}),
        ("performance model Combined", {"model": Combined((Ideal(),))}),
        ("performance model Combined", {"estimate": Combined((Ideal(),))}),
        ("placement Sparse", {"scheduler": ListScheduler(placement=Sparse())}),
        ("scheduler WarmUp", {"scheduler": WarmUp(ListScheduler(), 2, ListScheduler(order=SJF(), backfill=NoBackfill()))}),
        ("empty", {"workload": Workload.of(np.zeros(0), np.zeros(0))}),
        ("model RemoteMemory", {"model": RemoteMemory(far_ns=-1)}),
        ("model Slower", {"model": Slower()}),
    ],
)
def test_unsupported_runs_use_the_reference_engine(reason: str, change: dict[str, Any]) -> None:
    study = {"machine": MACHINE, "workload": JOBS, "scheduler": ListScheduler(), **change}
    assert simulate(**study).engine == "reference"
    with pytest.raises(InputError, match=reason):
        simulate(**study, engine="compiled")


def test_unsupported_scheduler_is_named() -> None:
    with pytest.raises(InputError, match="no kernel runs this: scheduler CompositionScheduler has no kernel"):
        simulate(JOBS, MACHINE, CompositionScheduler(), engine="compiled")


def test_only_needed_engines_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    watched = tuple(replace(family, load=lambda spec, name=family.name: loaded.append(name)) for family in select.ENGINES)
    monkeypatch.setattr(select, "ENGINES", watched)
    case = vinesim.VineSimCase.of(
        vinesim.UnitList.of([(0, 0, 0)]), vinesim.TaskList.of_jobs([1], 2, 10), np.ones((6, 7)), "1us"
    )
    lists, dispatches = (MACHINE, ListScheduler()), (case.machine, Dispatch())
    load_kernels([(MACHINE, ListScheduler(backfill=Skip())), (MACHINE, CompositionScheduler()), (MACHINE, Dispatch())])
    assert loaded == []
    load_kernels([lists])
    assert loaded == ["list scheduling"]
    load_kernels([dispatches, lists])
    assert loaded == ["list scheduling", "task dispatch", "list scheduling"]


def test_an_unknown_engine_is_an_input_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'compiled'"):
        simulate(JOBS, MACHINE, ListScheduler(), engine="compild")


@pytest.mark.parametrize("kind", ["static", "opaque"])
def test_nan_priorities_are_an_error(kind: OrderKind) -> None:
    class Broken(QueuePolicy):
        def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
            return np.full(len(queue), np.nan)

    Broken.kind = kind
    for engine in ("reference", "compiled"):
        with pytest.raises(PolicyError, match="Broken must return"):
            simulate(JOBS, MACHINE, ListScheduler(order=Broken()), engine=engine)


def test_opaque_order_sees_the_same_state_in_both_engines() -> None:
    class Witness(QueuePolicy):
        kind: ClassVar[OrderKind] = "opaque"

        def __init__(self) -> None:
            self.seen: list[object] = []

        def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
            runs = [(r.job, r.start, r.expected_end, r.placement.rows(), snapshot.work_left(r.id)) for r in snapshot.runs()]
            queued = queue.jobs.tolist(), queue.passes().tolist(), queue.waited_s(snapshot.now).tolist()
            self.seen.append((snapshot.now, queued, snapshot.free.tolist(), runs))
            return -queue.jobs.astype(np.float64)

    g = np.random.default_rng(1)
    jobs = Workload.of(
        np.sort(g.integers(0, 90, 60)) * SECOND,
        g.integers(1, 20, 60) * SECOND,
        requested=g.integers(1, 20, 60) * SECOND,
        requests={"nodes": g.integers(1, 9, 60), "memory": g.choice([0, 64, 80], 60)},
    )
    seen = []
    for engine in ("reference", "compiled"):
        witness = Witness()
        simulate(jobs, MACHINE, ListScheduler(order=witness), model=RemoteMemory(), engine=engine)
        seen.append(witness.seen)
    assert len(seen[0]) > 20
    assert seen[0] == seen[1]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("submit", "duration"), [(HORIZON + 1, SECOND), (HORIZON, 1), (1, HORIZON), (0, 2**63 - 1)])
def test_times_beyond_the_horizon_are_an_error(engine: str, submit: int, duration: int) -> None:
    jobs = Workload.of(np.array([submit]), np.array([duration]))
    with pytest.raises(InputError, match="290 years"):
        simulate(jobs, Machine.flat(1), ListScheduler(), engine=engine)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_job_of_290_years_runs_after_one_with_a_longer_request(engine: str) -> None:
    day = 86_400 * SECOND
    jobs = Workload.of(np.array([0, 1]), np.array([day, HORIZON - 2 * day]), requested=np.array([2**63 - 1, HORIZON]))
    schedule = simulate(jobs, Machine.flat(1), ListScheduler(), engine=engine).schedule
    assert schedule.start.tolist() == [0, day] and schedule.end.tolist() == [day, HORIZON - day]


def test_tasks_of_a_job_run_together() -> None:
    jobs = Workload.of(np.array([0, 0]), np.array([9, 1]), tasks=np.array([3, 2]), requests={"nodes": np.array([2, 2])})
    for engine in ("reference", "compiled"):
        schedule = simulate(jobs, MACHINE, ListScheduler(), engine=engine).schedule
        assert schedule.job.tolist() == [0, 1] and schedule.tasks.tolist() == [3, 2] and schedule.start.tolist() == [0, 9]
        assert schedule.amount[: schedule.offset[1]].sum() == 6 and schedule.done.all()


def test_each_kernel_has_one_signature() -> None:
    from poolwise.kernels.list_scheduling.replay import replay

    for order in (FCFS(), SJF()):
        simulate(JOBS, MACHINE, ListScheduler(order=order), engine="compiled")
    simulate(JOBS, MACHINE, ListScheduler(backfill=SlurmBackfill()), engine="compiled")
    loading.load_all()
    loading.load_all(mixed=True)
    if not jit.numba.config.DISABLE_JIT:
        assert len(replay.signatures) == len(loading.KINDS)


def test_only_kernels_that_the_runs_may_need_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(loading, "load_kernels", loaded.append)
    load_kernels([(MACHINE, ListScheduler(order=order, backfill=Easy())) for order in (FCFS(), SJF())])
    assert set(loaded) == {"short queues", "deep queues"}
    loaded.clear()
    load_kernels([(MACHINE, ListScheduler(backfill=Conservative()))])
    assert loaded == ["reservations"]


def test_compiling_is_announced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    marked: list[tuple[str, str]] = []
    monkeypatch.setattr(jit, "is_compiled", lambda family, kind: False)
    monkeypatch.setattr(jit, "mark_compiled", lambda *names: marked.append(names))
    loading.load_kernels.cache_clear()
    with caplog.at_level(logging.WARNING):
        loading.load_kernels("short queues")
    assert "once for this version" in caplog.text
    assert marked == [("list_scheduling", "short queues")]
