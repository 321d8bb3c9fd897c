"""What the compiled engine takes, what it says about the rest, and what it says while compiling."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from poolwise.arrays import FloatArray
from poolwise.engines import Disturbance, simulate
from poolwise.engines.list_scheduling import replay as compiled
from poolwise.errors import InputError, PolicyError, UnknownNameError
from poolwise.interfaces import OrderKind, QueuePolicy
from poolwise.kernels import jit
from poolwise.model import Machine, Queue, Snapshot, Workload
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS, SJF
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.units import SECOND

MACHINE = Machine.of_racks(2, 4, local=64, pool=100)
JOBS = Workload.of(
    np.array([0, 1, 2, 3]) * SECOND, np.array([5, 5, 5, 5]) * SECOND, requests={"nodes": np.array([4, 6, 2, 20])}
)


@dataclass(frozen=True)
class Impatient(Easy):
    """A backfill of a user's own."""


def test_auto_takes_the_kernels_and_says_so() -> None:
    assert simulate(MACHINE, JOBS, ListScheduler()).engine == "compiled"
    assert simulate(MACHINE, JOBS, ListScheduler(), engine="reference").engine == "reference"


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("capacity changes", {"disturbances": [Disturbance(SECOND, 0, 0, -1)]}),
        ("observer", {"observer": lambda *_: None}),
        ("backfill Impatient", {"scheduler": ListScheduler(backfill=Impatient())}),
        ("performance model Combined", {"truth": Combined((Ideal(),))}),
        ("performance model Combined", {"estimate": Combined((Ideal(),))}),
        ("warm-up", {"scheduler": WarmUp(ListScheduler(), 2, ListScheduler(order=SJF(), backfill=NoBackfill()))}),
        ("several tasks", {"workload": Workload.of(np.array([0]), np.array([SECOND]), tasks=2)}),
        ("longer than", {"workload": Workload.of(np.array([0]), np.array([2**53 + 1]))}),
        ("empty", {"workload": Workload.of(np.zeros(0), np.zeros(0))}),
        ("latency is above", {"truth": RemoteMemory(far_ns=20_000)}),
    ],
)
def test_what_has_no_kernel_runs_on_the_reference_engine(reason: str, change: dict[str, Any]) -> None:
    study = {"machine": MACHINE, "workload": JOBS, "scheduler": ListScheduler(), **change}
    assert simulate(**study).engine == "reference"
    with pytest.raises(InputError, match=reason):
        simulate(**study, engine="compiled")


def test_an_unknown_engine_is_an_input_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'compiled'"):
        simulate(MACHINE, JOBS, ListScheduler(), engine="compild")


@pytest.mark.parametrize("kind", ["static", "opaque"])
def test_priorities_that_are_no_numbers_are_an_error(kind: OrderKind) -> None:
    class Broken(QueuePolicy):
        def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
            return np.full(len(queue), np.nan)

    Broken.kind = kind
    for engine in ("reference", "compiled"):
        with pytest.raises(PolicyError, match="Broken must return"):
            simulate(MACHINE, JOBS, ListScheduler(order=Broken()), engine=engine)


def test_an_opaque_order_sees_the_queue_and_the_machine_as_the_reference_shows_them() -> None:
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
        simulate(MACHINE, jobs, ListScheduler(order=witness), truth=RemoteMemory(), engine=engine)
        seen.append(witness.seen)
    assert len(seen[0]) > 20
    assert seen[0] == seen[1]


def test_time_without_end_is_refused() -> None:
    jobs = Workload.of(np.array([2**62 + 1]), np.array([SECOND]))
    with pytest.raises(InputError, match="146 years"):
        simulate(Machine.flat(1), jobs, ListScheduler(), engine="compiled")


def test_each_kernel_is_compiled_for_one_kind_of_arrays() -> None:
    from poolwise.kernels.list_scheduling.replay import replay

    for order in (FCFS(), SJF()):
        simulate(MACHINE, JOBS, ListScheduler(order=order), engine="compiled")
    if not jit.numba.config.DISABLE_JIT:
        assert len(replay.signatures) == 1


def test_compiling_is_announced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    marked: list[str] = []
    monkeypatch.setattr(jit, "is_compiled", lambda family: False)
    monkeypatch.setattr(jit, "mark_compiled", marked.append)
    compiled.load.cache_clear()
    with caplog.at_level(logging.WARNING):
        compiled.load()
    assert "once for this version" in caplog.text
    assert marked == ["list_scheduling"]
