"""List scheduling on whole nodes that differ: compiled and reference engine produce the same bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poolwise
from benchmarks import naive_pools
from poolwise.engines import simulate
from poolwise.engines.list_scheduling import columns
from poolwise.engines.list_scheduling.loading import COMMON, MIXED, load_all, load_kernels
from poolwise.model import Kind, Machine, Partition, Workload
from poolwise.model.machine_builder import MachineBuilder
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.changing_racks import compare_changing
from tests.helpers.mid_state import check_every_engine, instants
from tests.helpers.mixed_machines import mixed_machine, mixed_study
from tests.helpers.naive_mixed import Group, NaiveMixed
from tests.helpers.random_studies import EASY_FAMILY, compare, difference, model, one_head
from tests.helpers.seeds import few_and_more

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")


@pytest.fixture(scope="module", params=["any", pytest.param("machine code", marks=pytest.mark.long)])
def code(request: pytest.FixtureRequest) -> None:
    """Run the kernels as Python code unless they are compiled already, or load them as machine code first."""
    if request.param == "machine code":
        load_all(mixed=True)


@pytest.mark.parametrize("deep", [0, 8, 10_000])
@pytest.mark.parametrize("seeds", few_and_more(30_000, 5, 24))
def test_random_studies_with_easy(seeds: range, deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    for seed in (deep + seed for seed in seeds):
        compare(seed, draw=mixed_study)


@pytest.mark.parametrize("backfill", ["conservative", pytest.param("kept", marks=pytest.mark.long)])
@pytest.mark.parametrize("seeds", few_and_more(31_000, 10, 50))
def test_random_studies_with_reservations(seeds: range, backfill: str) -> None:
    for seed in seeds:
        compare(seed, (backfill,), 80, draw=mixed_study)


@pytest.mark.long
def test_reservations_change_when_runs_end_early() -> None:
    """Queues are long; jobs in front of others move to capacity that runs leave early, on the same racks or not."""
    for seed in range(34_000, 34_040):
        g = np.random.default_rng(seed)
        on, n = mixed_machine(g), 90
        duration = g.integers(1, 30, n)
        memory, named = g.choice([30, 64, 80, 150], n), {name: np.full(n, "") for name in ("partition", "constraint")}
        load = Workload.of(
            np.sort(g.integers(0, 2 * n, n)) * SECOND,
            duration * SECOND,
            requested=duration * g.choice([1, 1, 2, 4], n) * SECOND,
            requests={"nodes": g.integers(1, 8, n), "memory": memory},
            attributes={"u": g.random(n), **named},
        )
        scheduler = ListScheduler(make("orders", ("fcfs", "wfp3")[seed % 2]), make("backfills", "conservative"))
        model = RemoteMemory() if seed % 4 == 0 else Ideal()
        plain, fast = (simulate(load, on, scheduler, model=model, engine=engine) for engine in ("reference", "compiled"))
        assert difference(plain.schedule, fast.schedule) == "", seed


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("seeds", few_and_more(32_000, 5, 35))
def test_random_studies_with_changing_capacity(seeds: range) -> None:
    draw = partial(mixed_study, limits=False)
    schedules = [compare_changing(seed, 60, draw=draw) for seed in seeds]
    schedules += [compare_changing(seed, 60, ("conservative",), draw) for seed in (100 + seed for seed in seeds)]
    assert sum(not schedule.done.all() for schedule in schedules) > len(schedules) / 7


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("seeds", few_and_more(33_000, 4, 25))
def test_warm_starts_match_the_full_run(seeds: range) -> None:
    for seed in seeds:
        g = np.random.default_rng(seed)
        on, load = mixed_study(g, int(g.integers(2, 60)))
        load = replace(load, attributes={**load.attributes, "u": g.random(len(load))})
        backfill = make("backfills", g.choice([*EASY_FAMILY, "conservative"]).item())
        placement = make("placements", "racks", scope=g.choice(["rack", "system"]).item())
        scheduler, truth = ListScheduler(make("orders", "sjf"), backfill, placement), model(g)
        whole = simulate(load, on, scheduler, model=truth, engine="reference").schedule
        for time in instants(whole, 3, g):
            check_every_engine(whole, time, scheduler, truth, None, ("reference", "compiled"))


@pytest.mark.parametrize("scope", ["rack", "system"])
def test_warm_start_from_runs_that_borrow_in_each_rack(scope: str) -> None:
    build = MachineBuilder("mixed", ("nodes", "memory"))
    for rack in range(2):
        for local in (32, 64):
            build.whole_nodes(f"rack{rack}.of{local}", 2, rack=rack, memory=local, cores=1)
        build.pool(f"rack{rack}.pool", rack=rack, memory=1000)
    times = [0, 0, 10 * SECOND, 10 * SECOND]
    load = Workload.of(times, 60 * SECOND, requests={"nodes": [4, 4, 3, 1], "memory": [100, 200, 90, 20]})
    scheduler = ListScheduler(placement=make("placements", "racks", scope=scope))
    whole = simulate(load, Machine.of(build), scheduler, engine="reference").schedule
    assert len(whole.placement_of(0)) == len(whole.placement_of(1)) == 3
    check_every_engine(whole, 30 * SECOND, scheduler, Ideal(), None, ("reference", "compiled"))


@pytest.mark.long
@pytest.mark.parametrize("days", [7, pytest.param(15, marks=pytest.mark.further)])
@pytest.mark.parametrize("order", ["fcfs", "fm"])
def test_a_log_runs_alike_on_fat_nodes_in_partitions(order: str, days: int) -> None:
    build = MachineBuilder("cerit", ("nodes", "memory"))
    for rack in range(4):
        build.whole_nodes(f"rack{rack}.thin", 20, rack=rack, memory="16 GiB", cores=12)
        build.whole_nodes(f"rack{rack}.fat", 6, rack=rack, memory="128 GiB", cores=12)
        build.pool(f"rack{rack}.pool", rack=rack, memory="256 GiB")
    machine = Machine.of(build)
    owners, layout = np.arange(machine.n_owner), machine.racks
    usable = {"all": layout.nodes, "fat": layout.nodes[layout.local > 16 * 1024], "half": layout.nodes[layout.rack < 2]}
    sets = {name: np.isin(owners, nodes) for name, nodes in usable.items()}
    machine = replace(machine, node_sets=sets, partitions=(Partition("all", default=True), Partition("fat"), Partition("half")))
    load = poolwise.read("catalog:cerit-2013.swf.gz", machine, only={"to": f"{days} d"})
    named = np.random.default_rng(0).choice(["", "fat", "half", "half,fat"], len(load), p=[0.6, 0.1, 0.2, 0.1])
    load = replace(load, attributes={**load.attributes, "partition": named})
    load_kernels(COMMON[0] + MIXED)
    load_kernels(COMMON[1] + MIXED)
    scheduler = ListScheduler(make("orders", order))
    plain, fast = (
        simulate(load, machine, scheduler, model=RemoteMemory(), engine=engine).schedule for engine in ("reference", "compiled")
    )
    assert difference(plain, fast) == ""
    waited = plain.start > load.submit[plain.job]
    assert len(plain.job) > 500 and waited.mean() > 0.1


@st.composite
def machines(draw: st.DrawFn) -> tuple[list[Group], list[int], Machine]:
    """Draw racks of up to three groups each, as groups with pools and as a machine with two overlapping partitions."""
    sizes = st.tuples(st.integers(1, 4), st.sampled_from((32, 64, 256)), st.sampled_from((0, 0, 2)))
    racks = draw(st.lists(st.lists(sizes, min_size=1, max_size=3), min_size=1, max_size=3))
    groups = [Group(r, *size) for r, rack in enumerate(racks) for size in rack]
    pools = [draw(st.sampled_from((0, 200, 2000))) for _ in racks]
    build = MachineBuilder("mixed", ("nodes", "memory"))
    for k, (rack, nodes, local, gpus) in enumerate(groups):
        per_node = {"memory": local, "cores": 1, "gpu": gpus}
        build.add(f"rack{rack}.{k}", Kind.NODE, "node", {"nodes": nodes}, rack=rack, per_node=per_node)
    for rack, memory in enumerate(pools):
        build.pool(f"rack{rack}.pool", rack=rack, memory=memory)
    machine = Machine.of(build)
    odd = np.isin(np.arange(machine.n_owner), machine.racks.nodes[::2])
    sets = {"odd": odd, "fat": np.isin(np.arange(machine.n_owner), machine.racks.nodes[machine.racks.local >= 64])}
    return groups, pools, replace(machine, node_sets=sets)


@pytest.mark.usefixtures("code")
@settings(max_examples=60, deadline=None)
@given(machines(), st.integers(0, 2**32 - 1), st.data())
def test_both_engines_run_jobs_as_the_naive_simulator(
    drawn: tuple[list[Group], list[int], Machine], seed: int, data: st.DataObject
) -> None:
    groups, pools, machine = drawn
    backfill = data.draw(st.sampled_from(("none", "easy", "easy_no_extra", "conservative")))
    order, scope = data.draw(st.sampled_from(("fcfs", "sjf", "wfp3"))), data.draw(st.sampled_from(("rack", "system")))
    g, n = np.random.default_rng(seed), data.draw(st.integers(1, 40))
    gpus = g.choice([0, 0, 1, 3], n)
    named = g.choice(["", "odd", "fat", "odd,fat"], n)
    workload = Workload.of(
        np.sort(g.integers(0, 60 * n, n)) * SECOND,
        g.choice((60, 600, 601), n) * SECOND,
        id=g.permutation(n) + 1,
        requests={"nodes": g.integers(1, 7, n), "memory": g.choice((0, 32, 33, 64, 100, 256, 300), n), "gpu": gpus},
        attributes={"u": g.random(n), "partition": named},
    )
    allowed = {
        job: {
            k
            for k, group in enumerate(groups)
            if group.gpus >= gpu and (not name or ("odd" in name and k % 2 == 0) or ("fat" in name and group.local >= 64))
        }
        for job, gpu, name in zip(
            workload.id.tolist(), workload.request("gpu").tolist(), workload.attributes["partition"], strict=True
        )
    }
    naive = NaiveMixed(groups, pools, allowed)
    columns = (workload.id, workload.submit, workload.nodes, workload.duration, workload.memory, workload.attributes["u"])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    jobs = [naive_pools.Job(*row, min(group.local for group in groups)) for row in rows]
    expected = naive_pools.simulate(jobs, 0, 0, 0, order, backfill, scope, naive.place, naive.runtime, naive.empty())
    with_one_head = one_head(make("backfills", backfill))  # as the naive simulator has it
    scheduler = ListScheduler(make("orders", order), with_one_head, make("placements", "racks", scope=scope))
    for engine in ("reference", "compiled"):
        schedule = simulate(workload, machine, scheduler, model=RemoteMemory(), engine=engine).schedule  # type: ignore[arg-type]
        ran = schedule.workload.id[schedule.job].tolist(), schedule.start.tolist(), schedule.end.tolist()
        assert {job: (start, end) for job, start, end in zip(*ran, strict=True)} == expected
        assert len(schedule.rejected) == n - len(expected)
