"""Shared nodes: compiled and reference engine produce the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.shared_nodes import shared, shared_jobs
from poolwise.engines import simulate
from poolwise.engines.shared_nodes import node_arrays
from poolwise.engines.shared_nodes.windows import window_groups
from poolwise.errors import InputError
from poolwise.interfaces import QueuePolicy
from poolwise.model import Failures, Outage, Outcome, Partition, ReservedWindow, Workload
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine, random_jobs, random_machine
from tests.helpers.random_studies import OWN, Curious, Stepped, difference, one_head
from tests.helpers.seeds import few_and_more
from tests.helpers.shared_studies import (
    PLACEMENTS,
    compare_failing,
    compare_recurring,
    compare_shared,
    compare_windows,
)

FIRST = ListScheduler(FCFS(), placement=FirstNodes())
pytestmark = pytest.mark.filterwarnings("ignore:remote latency")


@pytest.mark.parametrize("block", range(4))
def test_random_studies(block: int) -> None:
    for seed in range(12 * block, 12 * block + 12):
        compare_shared(seed)


def test_head_without_pool_memory_follows_one_with_it() -> None:
    """The two heads have different algorithms for the shadow time, whose cached results must not be mixed up."""
    compare_shared(12355, most=70, pools=True)


@pytest.mark.long
def test_memory_pools_and_the_slowdown_by_remote_memory() -> None:
    for seed in range(100, 150):
        compare_shared(seed, pools=True)


def test_conservative_backfilling() -> None:
    for seed in range(200, 224):
        compare_shared(seed, ("conservative",), most=60)


def test_conservative_backfilling_in_deep_queues() -> None:
    """Most jobs that fit now must wait for reservations, which ends a pass early."""
    for seed in range(224, 236):
        compare_shared(seed, ("conservative",), most=150, nodes=4 if seed % 2 else 20)


@pytest.mark.parametrize("seeds", few_and_more(2000, 3, 10))
def test_backfilling_at_intervals(seeds: range) -> None:
    for seed in seeds:
        compare_shared(seed, ("slurm",), most=60, orders=None if seed % 4 else [Stepped()])


def test_backfilling_at_intervals_in_deep_queues() -> None:
    """Starts are skipped until enough nodes are free and not reserved."""
    for seed in range(2300, 2306):
        compare_shared(seed, ("slurm",), most=150, nodes=4 if seed % 2 else 20)


@pytest.mark.long
def test_backfilling_at_intervals_on_many_nodes() -> None:
    for seed in range(2100, 2150):
        compare_shared(seed, ("slurm",), most=120, nodes=70 if seed % 2 else 20, orders=None if seed % 4 else [Stepped()])


@pytest.mark.parametrize("order", [FCFS(), make("orders", "sjf"), Curious(), Stepped()], ids=lambda order: type(order).__name__)
@pytest.mark.parametrize("seeds", few_and_more(2200, 1, 3))
def test_backfilling_at_intervals_with_tiers(seeds: range, order: QueuePolicy) -> None:
    """Tiers with computed keys are compared in each pass; with recalculated keys, until the next recalculation."""
    for seed in seeds:
        g = np.random.default_rng(seed)
        on = random_machine(g, 9, pools=False)
        parts = tuple(Partition(name, tier=tier) for name, tier in (("long", 1), ("short", 3), ("fast", 1)))
        sets = on.node_sets or {name: g.random(on.n_owner) < 0.7 for name in ("long", "short", "fast")}
        on = replace(on, node_sets=sets, partitions=parts)
        load = random_jobs(g, on, int(g.integers(1, 60)))
        load = replace(load, attributes={"partition": g.choice(["long", "short", "long,short"], len(load))})
        backfill = SlurmBackfill(settings={"bf_interval": 30, "bf_max_job_test": 9})
        how = ListScheduler(order, backfill, make("placements", PLACEMENTS[seed % 4]))
        plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
        assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative", "slurm"])
def test_weights_of_nodes(backfill: str) -> None:
    """The kernels number nodes by weight for first fit, and refuse other placements by name."""
    for seed in range(2400, 2408):
        g = np.random.default_rng(seed)
        on = random_machine(g, 20 if seed % 2 else 9, pools=backfill in ("none", "easy"), devices=backfill != "conservative")
        on = replace(on, attributes={"weight": g.choice([1.0, 2.0, 5.0, np.nan], on.n_owner)})
        load, how = random_jobs(g, on, int(g.integers(1, 60))), replace(FIRST, backfill=one_head(make("backfills", backfill)))
        plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
        assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}"


@pytest.mark.parametrize("placement", PLACEMENTS[1:])
def test_other_placements_on_nodes_of_different_weights_are_refused_by_name(placement: str) -> None:
    on = replace(machine(np.array([[4, 100]] * 2), np.zeros(2, dtype=np.int64)), attributes={"weight": np.array([2.0, 1.0])})
    jobs = Workload.of(np.zeros(1, dtype=np.int64), np.array([SECOND]), requests={"cores": np.array([1])})
    with pytest.raises(InputError, match="on nodes of different weights has no kernel"):
        simulate(jobs, on, replace(FIRST, placement=make("placements", placement)), engine="compiled")


def test_many_nodes_with_parts_on_dozens() -> None:
    for seed in range(500, 510):
        compare_shared(seed, most=80, nodes=70)


@pytest.mark.parametrize("seeds", few_and_more(1100, 5, 22))
def test_failing_nodes(seeds: range) -> None:
    schedules = [compare_failing(seed, 120, nodes=20 if seed % 5 == 0 else 9) for seed in seeds]
    assert sum(schedule.outcome.count(Outcome.LOST) for schedule in schedules) > len(seeds)


def test_node_fails_while_many_runs_are_active() -> None:
    assert compare_failing(1408, 200, nodes=40).outcome.count(Outcome.LOST) > 0


def test_failing_nodes_with_conservative_backfilling() -> None:
    schedules = [compare_failing(seed, 50, ("conservative",)) for seed in range(1800, 1816)]
    assert sum(schedule.outcome.count(Outcome.LOST) for schedule in schedules) > 20


@pytest.mark.long
def test_failing_nodes_with_memory_pools() -> None:
    for seed in range(1200, 1260):
        compare_failing(seed, pools=True, nodes=20 if seed % 5 == 0 else 9)


def test_borrowed_memory_is_not_counted_as_node_memory() -> None:
    compare_shared(404, pools=True)


@pytest.mark.parametrize("seeds", few_and_more(1300, 7, 30))
def test_windows(seeds: range) -> None:
    for seed in seeds:
        compare_windows(seed, nodes=20 if seed % 5 == 0 else 9)


@pytest.mark.parametrize(("seed", "nodes"), [(1743, 9), (1452, 40)])
def test_several_jobs_start_while_the_head_waits_for_the_end_of_a_window(seed: int, nodes: int) -> None:
    compare_windows(seed, 150, nodes=nodes)


def test_early_end_lets_the_head_start_before_a_window() -> None:
    """The head's reservation moves from the end of the window to 6 s when a job ends early at 3 s; the last job must wait."""
    on = machine(np.array([[4, 100]] * 2), np.zeros(2, dtype=np.int64))
    on = replace(on, windows=(ReservedWindow("w", 14 * SECOND, 20 * SECOND, np.ones(2, dtype=np.bool_)),))
    jobs = Workload.of(
        np.array([0, 0, 0, 1, 1, 3]) * SECOND,
        np.array([3, 6, 6, 5, 5, 10]) * SECOND,
        requested=np.array([10, 6, 6, 5, 5, 10]) * SECOND,
        requests={"cores": np.array([2, 2, 4, 4, 4, 2]), "nodes": np.array([1, 1, 1, 2, 2, 1])},
    )
    for engine in ("reference", "compiled"):
        starts = simulate(jobs, on, FIRST, engine=engine).schedule.job_start // SECOND
        assert starts.tolist() == [0, 0, 0, 6, 20, 25]


def test_recurring_windows_with_long_jobs() -> None:
    """A head that fits between no two windows waits for the last one, while other jobs are backfilled."""
    on = machine(np.array([[4, 100]] * 4), np.zeros(4, dtype=np.int64))
    starts = range(10 * SECOND, 200 * SECOND, 20 * SECOND)
    half = np.arange(4) < 2
    on = replace(on, windows=tuple(ReservedWindow(f"w{at}", at, at + 5 * SECOND, half.copy()) for at in starts))
    n = 40
    requests = {"cores": 1 + np.arange(n) % 4, "nodes": 1 + np.arange(n) % 4}
    jobs = Workload.of(np.arange(n) * SECOND, (1 + np.arange(n) * 7 % 30) * SECOND, requests=requests)
    for placement in PLACEMENTS:
        how = replace(FIRST, placement=make("placements", placement))
        plain, fast = (simulate(jobs, on, how, engine=engine).schedule for engine in ("reference", "compiled"))
        assert difference(plain, fast) == ""
        assert int(fast.start.max()) > 200 * SECOND


def _on_both(windows: list[tuple[int, int, int]], order: str, rows: list[tuple[int, int, int, int, str]]) -> list[int]:
    """Return the starts (s) on three nodes of four cores, which must be the same in both engines.

    Windows are (node, start, end), jobs (submit, duration, nodes, cores, user); ada may use the nodes of windows.
    """
    on = machine(np.array([[4, 100]] * 3), np.zeros(3, dtype=np.int64))
    ada = frozenset(["ada"])
    on = replace(
        on, windows=tuple(ReservedWindow(f"w{at}", at * SECOND, end * SECOND, np.arange(3) == n, ada) for n, at, end in windows)
    )
    submit, duration, nodes, cores, users = (np.array(column) for column in zip(*rows, strict=True))
    requests, attributes = {"nodes": nodes, "cores": cores}, {"user": users}
    jobs = Workload.of(submit * SECOND, duration * SECOND, requests=requests, attributes=attributes)
    how = replace(FIRST, order=make("orders", order))
    plain, fast = (simulate(jobs, on, how, engine=engine).schedule for engine in ("reference", "compiled"))
    assert difference(plain, fast) == ""
    return (fast.job_start // SECOND).tolist()


def test_approaching_window_moves_a_job_to_other_nodes() -> None:
    """The fourth job would use node 0, which the third needs; from 21 s on it would overlap a window there.

    The only event in between is the arrival of a job that does not start.
    """
    rows = [(0, 1000, 1, 2, "b"), (0, 100, 1, 4, "b"), (1, 5, 2, 4, "b"), (1, 300, 1, 2, "b"), (50, 9, 3, 4, "b")]
    first = [(0, 1, 1, 4, "b")]  # occupies node 0 first, so that the next two use the other nodes
    assert _on_both([(0, 320, 400)], "fcfs", first + rows)[1:5] == [0, 0, 100, 50]


def test_longer_of_two_equal_requests_avoids_the_window() -> None:
    """As above, and the longer of two jobs would overlap the window immediately."""
    rows = [(0, 1, 1, 4, "b"), (0, 1000, 1, 2, "b"), (0, 100, 1, 4, "b"), (1, 5, 2, 4, "b")]
    late = [(2, 290, 1, 2, "b"), (2, 400, 1, 2, "b")]
    assert _on_both([(0, 320, 400)], "fcfs", rows + late)[3:] == [100, 105, 2]


def test_shorter_head_may_use_more_nodes_before_a_window() -> None:
    """Both wait for the end of the windows: then the longer one cannot start on node 1, the shorter one on either."""
    windows = [(0, 0, 50), (1, 0, 50), (2, 0, 900), (1, 100, 200)]
    rows = [(0, 80, 1, 4, "b"), (0, 2000, 3, 4, "b"), (1, 20, 1, 4, "b"), (2, 500, 1, 4, "ada")]
    assert _on_both(windows, "sjf", rows)[2:] == [50, 2]


def test_window_groups_are_independent_of_node_order() -> None:
    """Placement by rack orders nodes differently from the machine."""
    on = machine(np.array([[4, 100]] * 6), np.array([2, 0, 1, 2, 0, 1]))
    of = (np.arange(6) < 2, np.arange(6) % 2 == 0, np.arange(6) > 3, np.arange(6) < 2)
    on = replace(on, windows=tuple(ReservedWindow(f"w{k}", k, k + 1, inside) for k, inside in enumerate(of)))
    for order in (np.arange(6), np.array([1, 4, 2, 5, 0, 3])):
        groups, numbers = window_groups(on, order)
        for inside, number in zip(of, numbers, strict=True):
            assert np.array_equal(groups[number], inside[order])
        assert numbers.tolist() == window_groups(on, np.arange(6))[1].tolist()


def test_windows_with_user_access_and_few_kinds_of_jobs() -> None:
    for seed in range(1600, 1606):
        compare_recurring(seed)


def test_unsupported_windows_are_named() -> None:
    on = machine(np.array([[4, 100]] * 5), np.zeros(5, dtype=np.int64))
    jobs = Workload.of(np.zeros(1, np.int64), np.full(1, SECOND), requests={"cores": np.ones(1, np.int64)})
    many = tuple(ReservedWindow(f"w{n}", 0, SECOND, np.arange(5) == n) for n in range(5))
    pooled = machine(np.array([[4, 100]]), np.zeros(1, dtype=np.int64), pools={0: 10})
    whole = ReservedWindow("w", 0, SECOND, np.arange(2) < 1)
    conservative = replace(FIRST, backfill=make("backfills", "conservative"))
    for windows, how, why in (
        (replace(on, windows=many), FIRST, "more than 4 groups"),
        (replace(on, windows=many[:1]), conservative, "under conservative backfilling"),
        (replace(on, windows=many[:1]), replace(FIRST, order=Curious()), "called at each pass"),
        (replace(pooled, windows=(whole,)), FIRST, "memory pools"),
    ):
        with pytest.raises(InputError, match=why):
            simulate(jobs, windows, how, engine="compiled")
    with pytest.raises(InputError, match="float64 cannot represent"):
        long = Workload.of(np.zeros(1, np.int64), np.full(1, 2**53 + 1), requests={"cores": np.ones(1, np.int64)})
        simulate(long, replace(on, windows=many[:1]), FIRST, engine="compiled")


@pytest.mark.parametrize("pools", [{}, {0: 1000}])
def test_record_grows_for_lost_runs(pools: dict[int, int]) -> None:
    """Jobs are lost repeatedly, since their node is down every other second."""
    on = machine(np.array([[4, 100]]), np.zeros(1, dtype=np.int64), pools=pools)
    downs = range(SECOND, 400 * SECOND, 2 * SECOND)
    on = replace(on, failures=Failures(tuple(Outage((0,), down, down + SECOND) for down in downs)))
    requests = {"cores": np.array([1, 3, 2, 3]), "memory": np.full(4, 120 if pools else 10)}
    jobs = Workload.of(np.zeros(4, np.int64), np.full(4, 5 * SECOND), requests=requests)
    plain, fast = (simulate(jobs, on, FIRST, engine=engine).schedule for engine in ("reference", "compiled"))
    assert difference(plain, fast) == "" and fast.n_run > 300


@pytest.mark.parametrize("amount", [-1, -4])
def test_partial_or_permanent_outages_are_unsupported(amount: int) -> None:
    on = machine(np.array([[4, 100]]), np.zeros(1, dtype=np.int64))
    jobs = Workload.of(np.zeros(1, np.int64), np.full(1, SECOND), requests={"cores": np.ones(1, np.int64)})
    lost = [Disturbance(5, 0, on.resource("cores"), amount)]
    if amount == -4:
        lost.append(Disturbance(5, 0, on.resource("memory"), -100))
    with pytest.raises(InputError, match="not only by failures and repairs of nodes"):
        simulate(jobs, on, FIRST, engine="compiled", disturbances=lost)


def test_more_releases_than_the_ring_buffer_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(520, 532):
        monkeypatch.setattr(node_arrays, "MAX_RELEASED", 1 + seed % 3)
        compare_shared(seed, most=80, nodes=70 if seed % 2 else 9)


def test_user_defined_orders_with_slopes_of_any_sign() -> None:
    for seed in range(700, 700 + 2 * len(OWN)):
        compare_shared(seed, orders=[OWN[seed % len(OWN)]])


@pytest.mark.long
def test_random_studies_without_compiling() -> None:
    """With the compiler disabled, the kernels run as Python code with the same result."""
    script = (
        "from tests.helpers.shared_studies import compare_shared\n"
        "for seed in range(900, 916):\n"
        "    how = ('conservative',) if seed % 4 == 0 else ('easy',)\n"
        "    compare_shared(seed, how, most=40, pools=seed % 4 > 1)"
    )
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_fifteen_hundred_nodes(placement: str) -> None:
    """Shortcuts that are right on a few nodes may be wrong here; jobs of hundreds of nodes wait."""
    machine, jobs = shared(1500), shared_jobs(500, 1500, 5.0, seed=7)
    hour = 3600 * 10**9  # few instants, hence few passes of the reference engine
    workload = Workload.of(
        -(-jobs.submit // hour) * hour,
        -(-jobs.duration // (6 * hour)) * 6 * hour,
        requested=-(-jobs.requested // (6 * hour)) * 6 * hour,
        requests={**jobs.requests, "nodes": jobs.request("nodes") * (jobs.id % 3) * 20 + jobs.id % 7},
    )
    how = ListScheduler(make("orders", "fm"), make("backfills", "easy"), make("placements", placement))
    plain, fast = (simulate(workload, machine, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == ""
    assert (plain.schedule.start > workload.submit[plain.schedule.job]).sum() > 100
    assert np.unique(fast.schedule.owner).size > 1400
