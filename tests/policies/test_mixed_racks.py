"""Placement on racks whose nodes differ in local memory, against exhaustive search, and against racks of identical nodes."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poolwise
from poolwise.arrays import IntArray
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Job, Kind, Machine, Placement, Refusal, Snapshot, Workload
from poolwise.model.machine_builder import MachineBuilder
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.placement.memory.mixed_racks import MixedRacks, fits_mixed
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler

Group = tuple[int, int, int]
"""(rack, nodes, local memory)"""


def mixed(groups: list[Group], pools: list[int]) -> Machine:
    """Racks of these groups; a pool of 0 is none."""
    build = MachineBuilder("mixed", ("nodes", "memory"))
    for k, (rack, nodes, local) in enumerate(groups):
        build.whole_nodes(f"rack{rack}.group{k}", nodes, rack=rack, memory=local, cores=1)
    for rack, memory in enumerate(pools):
        if memory:
            build.pool(f"rack{rack}.pool", rack=rack, memory=memory)
    return Machine.of(build)


def idle(machine: Machine, jobs: list[tuple[int, int]], free: IntArray | None = None) -> Snapshot:
    """An idle machine, or one with these free amounts, and jobs of (nodes, memory)."""
    nodes, memory = (np.array(column) for column in zip(*jobs, strict=True))
    zero = np.zeros(len(jobs), dtype=np.int64)
    workload = Workload.of(zero, zero + 1, requests={"nodes": nodes, "memory": memory})
    free = machine.capacity if free is None else free
    return Snapshot(0, machine, workload.table, machine.capacity, free, RunTable(free.size), Ideal())


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    racks = draw(st.integers(1, 3))
    groups = draw(
        st.lists(
            st.tuples(st.integers(0, racks - 1), st.integers(1, 4), st.sampled_from((32, 64, 256))), min_size=racks, max_size=5
        )
    )
    groups += [(rack, 1, 64) for rack in range(racks) if rack not in {group[0] for group in groups}]
    return mixed(groups, draw(st.lists(st.integers(0, 500), min_size=racks, max_size=racks)))


demands = st.lists(st.tuples(st.integers(1, 9), st.sampled_from((0, 32, 33, 64, 100, 256, 300))), min_size=1, max_size=5)
scopes = st.sampled_from(("rack", "system"))


def possible(job: Job, machine: Machine, scope: str) -> bool:
    """Try all numbers of nodes of all groups."""
    layout = machine.racks
    free = machine.capacity[layout.nodes, layout.node_column].tolist()
    pools = {p: int(machine.capacity[p, layout.memory_column]) if p >= 0 else 0 for p in layout.pools.tolist()}
    for counts in product(*(range(n + 1) for n in free)):
        if sum(counts) != job.nodes:
            continue
        needed = dict.fromkeys(pools, 0)
        for k, local, pool in zip(counts, layout.local.tolist(), layout.pools.tolist(), strict=True):
            needed[pool] += k * max(0, job.memory - local)
        if all(needed[p] <= pools[p] for p in pools) if scope == "rack" else sum(needed.values()) <= sum(pools.values()):
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(machines(), demands, scopes)
def test_places_exactly_the_jobs_that_some_choice_of_nodes_can_hold(
    machine: Machine, jobs: list[tuple[int, int]], scope: str
) -> None:
    snapshot, placement = idle(machine, jobs), RackPlacement(scope)  # type: ignore[arg-type]
    rows = np.arange(len(jobs))
    prefiltered = placement.prefilter(rows, snapshot.free[None], snapshot)
    for k in rows.tolist():
        job = snapshot.table.job(k)
        placed = placement.place(job, snapshot)
        assert prefiltered[k] == possible(job, machine, scope) == (not isinstance(placed, Refusal))
        if isinstance(placed, Placement):
            _assert_serves(placed, job, machine, scope)


def _assert_serves(found: Placement, job: Job, machine: Machine, scope: str) -> None:
    """Check that a placement has the job's nodes, and the remote memory that they lack, from pools in reach."""
    layout, free = machine.racks, machine.capacity.copy()
    found.take_from(free)
    assert free.min() >= 0
    counts = layout.node_counts(found)
    assert sum(counts.values()) == job.nodes
    needed: dict[int, int] = {}
    for g, count in counts.items():
        pool = int(layout.pools[g])
        needed[pool] = needed.get(pool, 0) + count * max(0, job.memory - int(layout.local[g]))
    remote = {owner: amount for _, owner, resource, amount in found.rows() if resource == layout.memory_column}
    assert sum(remote.values()) == sum(needed.values())
    if scope == "rack":
        assert remote == {pool: amount for pool, amount in needed.items() if amount}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.data(), scopes)
def test_chooses_like_racks_of_identical_nodes_where_nodes_are_identical(
    free: list[int], data: st.DataObject, scope: str
) -> None:
    pool = data.draw(st.lists(st.integers(0, 400), min_size=len(free), max_size=len(free)))
    nodes, memory = data.draw(st.tuples(st.integers(1, 12), st.sampled_from((0, 64, 90, 164))))
    machine = Machine.of_racks(len(free), 6, local=64, pool=400)
    amounts = machine.capacity.copy()
    amounts[machine.racks.nodes, 0], amounts[machine.racks.pools, 1] = free, pool
    snapshot = idle(machine, [(nodes, memory)], amounts)
    expected = RackPlacement(scope).place(snapshot.table.job(0), snapshot)  # type: ignore[arg-type]
    assert machine.racks.uniform
    chosen = MixedRacks(machine.racks, memory, free, pool, scope).choose(nodes)  # type: ignore[arg-type]
    args = (np.array([nodes]), np.array([memory]), machine.racks, np.array([free]), np.array([pool]))
    assert fits_mixed(*args, scope) == (not isinstance(expected, Refusal))  # type: ignore[arg-type]
    if isinstance(expected, Refusal):
        assert isinstance(chosen, Refusal)
    else:
        assert dict(chosen) == machine.racks.node_counts(expected)  # type: ignore[arg-type]


THIN_AND_FAT = [(0, 4, 186), (1, 4, 1500)]


@pytest.mark.parametrize("groups", [THIN_AND_FAT, THIN_AND_FAT[::-1], [(0, 4, 186), (0, 4, 1500)]])
@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ((2, 500), {1500: 2}),  # only large nodes have the memory
        ((2, 100), {186: 2}),  # small nodes first
        ((6, 100), {186: 4, 1500: 2}),
        ((5, 500), None),
    ],
)
def test_uses_nodes_by_their_own_sizes(groups: list[Group], job: tuple[int, int], expected: dict[int, int] | None) -> None:
    machine = mixed(groups, [0, 0])
    snapshot = idle(machine, [job])
    placed = RackPlacement().place(snapshot.table.job(0), snapshot)
    if expected is None:
        assert isinstance(placed, Refusal)
        assert (placed.resource, placed.needed, placed.free) == ("nodes", 5, 4)
    else:
        assert isinstance(placed, Placement)
        counts = machine.racks.node_counts(placed)
        assert {int(machine.racks.local[g]): count for g, count in counts.items()} == expected
    assert machine.summary()["memory in each whole node"] == "4 x 186 MiB, 4 x 1.46484 GiB"


def test_runs_large_jobs_on_large_nodes() -> None:
    machine = mixed(THIN_AND_FAT, [0, 0])
    workload = Workload.of(
        ["0 s"] * 4, ["1 h", "1 h", "1 h", "10 min"], requests={"nodes": [4, 2, 4, 6], "memory": [100, 500, 1000, 100]}
    )
    run = poolwise.simulate(workload, machine)
    hour = 3600 * 10**9
    assert run.outcomes.start.tolist() == [0, 0, hour, 2 * hour]
    assert run.engine == "compiled"
    assert run.metrics["share_remote_memory"] == 0.0  # some node has the memory of each job
    assert [run.schedule.placement_of(k)[0][0] for k in range(3)] == [0, 1, 1]


def test_slowdown_is_that_of_the_nodes_with_most_remote_memory() -> None:
    machine = mixed([(0, 1, 50), (1, 1, 100)], [1000, 1000])
    workload = Workload.of("0 s", "100 s", requests={"nodes": [2], "memory": [100]})
    uniform = Machine.of_racks(2, 1, local=50, pool=1000)
    worst, same = (poolwise.simulate(workload, m, model=RemoteMemory(1), engine="reference") for m in (machine, uniform))
    assert worst.outcomes.end.tolist() == same.outcomes.end.tolist()  # half of the memory of the slowest node is remote
    mean = poolwise.simulate(workload, machine, model=RemoteMemory(1, spread="mean"), engine="reference")
    slowdown = [float(run.outcomes.end[0]) / 100e9 - 1 for run in (mean, worst)]
    assert slowdown[0] == pytest.approx(slowdown[1] / 2)


def test_allocation_by_use_refuses_nodes_of_different_sizes() -> None:
    from poolwise.schedulers.usage_based import UsageBased

    workload = Workload.of("0 s", "1 h", requests={"nodes": [1], "memory": [100]})
    with pytest.raises(InputError, match="nodes with the same local memory only"):
        poolwise.simulate(workload, mixed(THIN_AND_FAT, [0, 0]), scheduler=UsageBased())


@pytest.mark.parametrize("local", [(64, 64), (64, 128)])
@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_refuses_jobs_with_more_gpus_than_any_node(local: tuple[int, int], gpus: int, engine: str) -> None:
    build = MachineBuilder("gpus", ("nodes", "memory"))
    for rack, memory in enumerate(local):
        each = {"memory": memory, "cores": 1, "gpu": gpus}
        build.add(f"rack{rack}.node", Kind.NODE, "node", {"nodes": 2}, rack=rack, per_node=each)
    requests = {"nodes": [2, 2, 2, 9], "memory": [10] * 4, "cores": [5] * 4, "gpu": [0, 2, 3, 0]}
    workload = Workload.of(["0 s"] * 4, "1 h", requests=requests)
    result = simulate(workload, Machine.of(build), ListScheduler(), engine=engine)  # type: ignore[arg-type]
    lacking = [2] if gpus else [1, 2]
    assert result.schedule.job.tolist() == [job for job in (0, 1) if job not in lacking]
    beyond = "cannot fit on the empty machine: requests more gpu per node than any node has"
    assert result.schedule.rejected == {
        **dict.fromkeys(lacking, beyond),
        3: "cannot fit on the empty machine: not enough free nodes",
    }


def test_jobs_with_gpus_run_on_the_nodes_that_have_them(tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(
        'version = 1\n[[node]]\nname = "cpu"\nmemory = "8 GiB"\ncores = 4\n'
        '[[node]]\nname = "gpu"\nmemory = "8 GiB"\ncores = 4\nresources = { gpu = 4 }\n'
        "[[rack]]\ncount = 1\nnodes = { cpu = 2, gpu = 2 }\n"
    )
    machine = poolwise.load_machine(tmp_path / "machine.toml")
    (tmp_path / "log.csv").write_text(
        "id,submit,duration,cores,gpus,memory\n1,0,3600,4,8,1\n2,0,3600,8,0,1\n3,60,60,4,2,1\n4,7260,60,12,0,1\n"
    )
    workload = poolwise.read(tmp_path / "log.csv", machine, map="memory=memory:GiB")
    assert workload.request("gpu").tolist() == [4, 0, 2, 0]
    assert not any("ignored" in reason for reason in workload.repaired)
    run = poolwise.simulate(workload, machine)
    assert (run.outcomes.start // 10**9).tolist() == [0, 0, 3600, 7260]  # job 2 leaves the nodes with GPUs to job 1
    nodes = [machine.racks.node_counts(Placement.of([(0, *row) for row in run.schedule.placement_of(k)])) for k in range(4)]
    assert nodes == [{1: 2}, {0: 2}, {1: 1}, {0: 2, 1: 1}]


def test_machine_on_which_no_job_wants_gpus_is_compiled() -> None:
    build = MachineBuilder("half with GPUs", ("nodes", "memory"))
    build.whole_nodes("rack0.nodes", 2, rack=0, memory=64, cores=1)
    build.add("rack1.nodes", Kind.NODE, "gpu", {"nodes": 2}, rack=1, per_node={"memory": 64, "cores": 1, "gpu": 4})
    workload = Workload.of(["0 s"] * 3, "1 h", requests={"nodes": [1, 2, 1], "memory": [1, 1, 1]})
    runs = [poolwise.simulate(workload, Machine.of(build), engine=engine) for engine in ("compiled", "reference")]  # type: ignore[arg-type]
    assert runs[0].schedule.placements() == runs[1].schedule.placements()
