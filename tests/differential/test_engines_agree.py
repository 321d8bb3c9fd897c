"""List scheduling on racks: compiled and reference engine produce the same bytes, equal to the golden schedules."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.list_scheduling import columns
from poolwise.model import Machine, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS, FM, SJF, Capped, SmallestArea
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators import generate
from tests.helpers.golden import golden_jobs, golden_times
from tests.helpers.random_studies import EASY_FAMILY, OWN, UNITS, YEAR, Stepped, compare, difference
from tests.helpers.seeds import few_and_more

LONG = (YEAR // 100, YEAR // 30, YEAR // 10, YEAR)

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_random_studies_with_scanned_queues(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_random_studies_with_tree_from_first_or_ninth_job(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DEEP_QUEUE", 8 * (block % 2))  # odd blocks switch between tree and scans
    for seed in range(1000 + 20 * block, 1000 + 20 * block + 20):
        compare(seed)


@pytest.mark.parametrize("deep", [0, 10_000])
def test_random_studies_of_months_and_years_and_several_tasks(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends and requests up to and beyond the horizon of 290 years, where both engines raise the same error."""
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    obstacles = [
        compare(seed, (*EASY_FAMILY, "conservative", "kept"), 40, units=LONG) for seed in range(5000 + deep, 5060 + deep)
    ]
    assert obstacles.count("") > 20 and sum("290 years" in text for text in obstacles) > 5


@pytest.mark.long
@pytest.mark.parametrize("deep", [0, 8, 10_000])
def test_user_defined_orders_with_slopes_of_any_sign(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative, zero and mixed slopes with ties, in trees from the first or ninth job on, and in scans."""
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    for seed in range(4000 + deep, 4000 + deep + 90):
        compare(seed, orders=[OWN[seed % len(OWN)]])


@pytest.mark.long
@pytest.mark.parametrize("deep", [0, 8])
def test_caps_and_backfill_orders_in_the_tree(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed and backlog-relative caps exceeded by no, some or all jobs, with and without a backfill order."""
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    for seed in range(7000 + deep, 7090 + deep):
        capped = Capped(OWN[seed % len(OWN)], (0.0, 5.0, 60.0)[seed % 3], (0.0, 0.1, 0.5, 2.0)[seed % 4])
        compare(seed, ("none", "easy", "easy", "apart", "apart", "easy_no_extra"), orders=[capped])


@pytest.mark.parametrize("patience_s", [0.0, 1800.0, 7200.0])
@pytest.mark.parametrize("backfill", [Easy(), Easy(order=SJF()), Easy(order=FM())])
def test_caps_in_the_tree_match_scans(patience_s: float, backfill: Easy, monkeypatch: pytest.MonkeyPatch) -> None:
    """With scarce pools, a start may make an earlier candidate startable, but no job is tested twice in a pass."""
    workload = generate("perlmutter_like", jobs=3000, load=1.1, hungry=True, seed=7)
    machine = Machine.of_racks(6, 256, local=65_536, pool=4 << 20)
    schedules = []
    for deep in (0, 10_000):
        monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
        how = ListScheduler(Capped(SmallestArea(), patience_s, 0.2 * (patience_s > 0)), backfill)
        schedules.append(simulate(workload, machine, how, model=RemoteMemory(), engine="compiled").schedule)
    assert difference(*schedules) == ""
    if patience_s == 0 and backfill == Easy():
        fcfs = simulate(workload, machine, ListScheduler(FCFS(), backfill), model=RemoteMemory(), engine="compiled").schedule
        assert difference(schedules[0], fcfs) == ""


@pytest.mark.parametrize("deep", [0, 8, 10_000])
@pytest.mark.parametrize("seeds", few_and_more(4300, 5, 24))
def test_recalculated_order(seeds: range, deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In trees and scans, with EASY and conservative backfilling, and after a warm-up."""
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    for seed in (deep + seed for seed in seeds):
        compare(seed, ("none", "easy", "easy", "easy_no_extra", "conservative"), most=80, orders=[Stepped()])


@pytest.mark.parametrize("seeds", few_and_more(4200, len(OWN), 18))
def test_user_defined_orders_with_conservative_backfilling(seeds: range) -> None:
    for seed in seeds:
        compare(seed, ("conservative",), most=60, orders=[OWN[seed % len(OWN)]])


@pytest.mark.parametrize("seeds", few_and_more(2000, 8, 40))
def test_random_studies_with_conservative_backfilling(seeds: range) -> None:
    for seed in seeds:
        compare(seed, ("conservative",), most=100)


@pytest.mark.parametrize("seeds", few_and_more(6000, 8, 40))
def test_random_studies_with_held_reservations(seeds: range) -> None:
    for seed in seeds:
        compare(seed, ("kept",), most=60)


@pytest.mark.parametrize("seeds", few_and_more(8000, 16, 120))
def test_random_studies_with_backfilling_at_intervals(seeds: range) -> None:
    """Any order, warm-ups, one pass per event; intervals of Slurm's schedulers, windows, depths and resolutions of any size."""
    for seed in seeds:
        compare(seed, ("slurm",), most=80, orders=None if seed % 4 else [Stepped()], units=UNITS[:3])


def test_job_that_arrives_in_front_of_a_planned_one_is_tested() -> None:
    """The plan of a backfill pass is not kept when a job arrives whose priority is between those of planned jobs."""
    nodes, length = (
        [12, 13, 16, 3, 3],
        [12_000, 600, 6_000, 30_000, 5_400],
    )  # a run, two planned jobs, a blocked one, the new one
    submit = np.array([0, 1, 1, 1, 100]) * SECOND
    workload = Workload.of(submit, np.array(length) * SECOND, requests={"nodes": np.array(nodes)})
    how = ListScheduler(SJF(), make("backfills", "slurm"))
    plain, fast = (simulate(workload, Machine.flat(16), how, engine=engine).schedule for engine in ("reference", "compiled"))
    assert difference(plain, fast) == ""
    assert plain.job_start[4] < 200 * SECOND and plain.job_start[3] > 10_000 * SECOND


@pytest.mark.long
def test_random_studies_without_compiling() -> None:
    """With the compiler disabled, the kernels run as Python code with the same result, with and without the tree."""
    script = (
        "from poolwise.engines.list_scheduling import columns\n"
        "from tests.helpers.random_studies import compare\n"
        "for deep in (0, 1000):\n"
        "    columns.DEEP_QUEUE = deep\n"
        "    for seed in range(3000, 3012): compare(seed, ('none', 'easy', 'easy_no_extra', 'conservative', 'kept'), most=40)\n"
    )
    path = os.pathsep.join(sys.path)  # so that the subprocess finds the package and the test helpers
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@pytest.mark.parametrize("backfill", ["none", "easy", "easy_no_extra", "conservative"])
def test_golden_schedules(backfill: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload, machine = golden_jobs(), Machine.of_racks(4, 16, local=65_536, pool=524_288)
    golden = {(order, scope): times for (order, how, scope), times in golden_times().items() if how == backfill}
    assert len(golden) == 12
    for deep in (0, 8, 10_000):
        monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
        for (order, scope), wanted in golden.items():
            how = ListScheduler(make("orders", order), make("backfills", backfill), make("placements", "racks", scope=scope))
            schedule = simulate(workload, machine, how, model=RemoteMemory(), engine="compiled").schedule
            ids = workload.id[schedule.job].tolist()
            start_and_end = dict(zip(ids, zip(schedule.start.tolist(), schedule.end.tolist(), strict=True), strict=True))
            assert start_and_end == wanted, (order, scope, deep)


@pytest.mark.long
@pytest.mark.parametrize(("order", "pool_tib", "load"), [("fm", 28, 2.5), ("f1", 8, 3.0)])
def test_fourteen_thousand_jobs_with_thousands_waiting(order: str, pool_tib: int, load: float) -> None:
    """Some shortcuts that were right with hundreds of jobs were wrong at this size.

    Arrivals and ends on a grid of an hour keep the reference engine's passes few; so memory is taken but slows no one.
    """
    jobs = generate("perlmutter_like", jobs=14_000, load=load, seed=5)
    grid = 3600 * SECOND
    workload = Workload.of(
        -(-jobs.submit // grid) * grid,
        -(-jobs.duration // grid) * grid,
        requests=jobs.requests,
    )
    machine = Machine.of_racks(6, 256, local=65_536, pool=pool_tib << 20)
    how = ListScheduler(make("orders", order), Easy())
    plain, fast = (simulate(workload, machine, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == ""
    arrived, started = np.sort(workload.submit[plain.schedule.job]), np.sort(plain.schedule.start)
    depth = np.searchsorted(arrived, started, side="right") - np.searchsorted(started, started, side="right")
    assert depth.max() > 3000


def test_record_grows_for_large_placements() -> None:
    """Each job uses nodes and memory of all six racks."""
    jobs = np.arange(400)
    workload = Workload.of(
        jobs * SECOND, np.full(400, 2) * SECOND, requests={"nodes": np.full(400, 12), "memory": np.full(400, 100)}
    )
    machine = Machine.of_racks(6, 2, local=64, pool=80)
    plain, fast = (simulate(workload, machine, ListScheduler(), engine=engine) for engine in ("reference", "compiled"))
    assert len(fast.schedule.owner) == 12 * 400
    assert difference(plain.schedule, fast.schedule) == ""
