"""Warm starts: from each tested intermediate state, the rest equals a replay of the whole log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.list_scheduling import columns
from poolwise.errors import InputError
from poolwise.model import Initial, InitialRun, Machine, Placement, Workload
from poolwise.performance.ideal import Ideal
from poolwise.policies.order.priorities import Capped
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.mid_state import check_every_engine, instants
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import backfill, machine, model, one_head, workload
from tests.helpers.shared_studies import PLACEMENTS

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")
ORDERS = ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")
BACKFILLS = ("none", "easy", "easy", "easy_no_extra", "easy_nodes_only", "conservative", "slurm")


def with_u(load: Workload, g: np.random.Generator) -> Workload:
    """Store the sensitivities of jobs in the workload, since random ones depend on the row, which differs in the rest."""
    return replace(load, attributes={**load.attributes, "u": g.random(len(load))})


def on_racks(seed: int) -> None:
    g = np.random.default_rng(seed)
    on, jobs = machine(g), int(g.integers(2, 90))
    load = with_u(workload(g, on, jobs), g)
    scope = g.choice(["rack", "system"]).item()
    how = ListScheduler(
        make("orders", g.choice(ORDERS).item()), backfill(g.choice(BACKFILLS).item()), make("placements", "racks", scope=scope)
    )
    truth, estimate = model(g), model(g) if g.random() < 0.5 else None
    whole = simulate(load, on, how, model=truth, estimate=estimate, engine="reference").schedule
    for time in instants(whole, 4, g):
        check_every_engine(whole, time, how, truth, estimate, ("reference", "compiled"))


def on_shared_nodes(seed: int) -> None:
    g = np.random.default_rng(seed)
    pools, name = bool(seed % 2), g.choice(["none", "easy", "easy", "easy_no_extra", "conservative", "slurm"]).item()
    pools = pools and name not in ("conservative", "slurm")
    on = random_machine(g, 9, pools=pools, devices=name != "conservative")
    load = with_u(random_jobs(g, on, int(g.integers(2, 70))), g)
    filling = one_head(backfill(name)) if pools else backfill(name)
    how = ListScheduler(make("orders", g.choice(ORDERS).item()), filling, make("placements", PLACEMENTS[seed % 4]))
    truth = model(g) if pools else Ideal()
    estimate = model(g) if pools and g.random() < 0.5 else None
    whole = simulate(load, on, how, model=truth, estimate=estimate, engine="reference").schedule
    for time in instants(whole, 4, g):
        check_every_engine(whole, time, how, truth, estimate, ("reference", "compiled"))


@pytest.mark.long
@pytest.mark.parametrize("deep", [0, 8, 10_000])
def test_warm_start_on_racks_matches_the_full_run(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    for seed in range(7000 + deep, 7030 + deep):
        on_racks(seed)


@pytest.mark.long
def test_warm_start_on_shared_nodes_matches_the_full_run() -> None:
    for seed in range(7100, 7140):
        on_shared_nodes(seed)


def two_at_work(end: int = 5) -> tuple[Machine, Workload, Initial]:
    on = Machine.flat(4)
    nodes = on.resource("nodes")
    load = Workload.of(
        np.array([0, 1, 2, 3]) * SECOND, np.array([end, 9, 4, 4]) * SECOND, requests={"nodes": np.array([2, 2, 4, 1])}
    )
    runs = [InitialRun(k, k * SECOND, Placement.of([(0, 0, nodes, 2)])) for k in range(2)]
    return on, load, Initial(4 * SECOND, runs)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_initial_runs_come_first_and_waiting_jobs_are_scheduled_at_once(engine: str) -> None:
    on, load, initial = two_at_work()
    schedule = simulate(load, on, ListScheduler(), engine=engine, initial=initial).schedule
    assert (schedule.start // SECOND).tolist() == [0, 1, 5, 10]
    assert schedule.job.tolist() == [0, 1, 3, 2]
    assert schedule.passes == 5  # at 4, 5, 9, 10 and 14 s


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_initial_run_that_ended_before_is_an_error(engine: str) -> None:
    on, load, initial = two_at_work(end=3)
    with pytest.raises(InputError, match="job 1 would have ended before the initial state"):
        simulate(load, on, ListScheduler(), engine=engine, initial=initial)


@pytest.mark.parametrize("patience_s", [0.0, 40.0])
def test_backlog_of_a_capped_order_includes_jobs_that_wait_initially(patience_s: float) -> None:
    g, on = np.random.default_rng(3), Machine.flat(8)
    load = Workload.of(
        np.sort(g.integers(0, 60, 40)) * SECOND,
        g.integers(5, 40, 40) * SECOND,
        requests={"nodes": g.integers(1, 8, 40)},
    )
    how = ListScheduler(Capped(make("orders", "sjf"), patience_s=patience_s, backlogs=1.0))
    whole = simulate(load, on, how, engine="reference").schedule
    check_every_engine(whole, 90 * SECOND, how, Ideal(), None, ("reference", "compiled"))


def test_settings_incompatible_with_an_initial_state_are_errors() -> None:
    on, load, initial = two_at_work()
    with pytest.raises(InputError, match="a warm-up cannot be combined with an initial state"):
        simulate(load, on, WarmUp.before(ListScheduler(), 2), initial=initial)
    with pytest.raises(InputError, match="closed loop"):
        simulate(replace(load, closed_loop=True), on, ListScheduler(), initial=initial)
    too_much = Initial(4 * SECOND, [*initial.runs, InitialRun(2, 2 * SECOND, initial.runs[0].placement)])
    with pytest.raises(InputError, match="job 3 cannot be running: capacity is not free"):
        simulate(load, on, ListScheduler(), engine="reference", initial=too_much)


def test_initial_runs_with_other_placements_use_the_reference_engine() -> None:
    on, load, initial = two_at_work()
    other = Initial(initial.now, [initial.runs[0]._replace(placement=Placement.of([(0, 0, 0, 1)])), initial.runs[1]])
    result = simulate(load, on, ListScheduler(), initial=other)
    assert result.engine == "reference"
    assert result.obstacle is not None and "resources other than" in result.obstacle.why
