"""Placement on racks with pools: choice of racks and pools, and an exact prefilter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model import Machine, Placement, Refusal, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.memory.racks import RackPlacement

LOCAL = 64
Rows = list[tuple[int, int, int]]


def view(free_nodes: list[int], free_pool: list[int], jobs: list[tuple[int, int]]) -> Snapshot:
    """Racks with the given free amounts, and jobs of (nodes, memory)."""
    racks = len(free_nodes)
    machine = Machine.of_racks(racks, 20, local=LOCAL, pool=1000)
    free = np.zeros((2 * racks, 2), dtype=np.int64)
    free[:racks, 0], free[racks:, 1] = free_nodes, free_pool
    nodes, memory = (np.array(column) for column in zip(*jobs, strict=True))
    workload = Workload.of(
        np.zeros(len(jobs), dtype=np.int64), np.ones(len(jobs), dtype=np.int64), requests={"nodes": nodes, "memory": memory}
    )
    return Snapshot(0, machine, workload.table, machine.capacity, free, RunTable(free.size), Ideal())


def rows(placement: Placement | Refusal) -> Rows | str:
    """Return (owner, resource, amount) rows, or the reason."""
    return placement.reason if isinstance(placement, Refusal) else [row[1:] for row in placement.rows()]


@pytest.mark.parametrize(
    ("scope", "nodes", "pool", "job", "expected"),
    [
        ("rack", [3, 5, 5], [0, 0, 0], (3, 10), [(1, 0, 3)]),  # most free nodes, then the lowest index
        ("rack", [9, 5, 5], [100, 300, 300], (3, 164), [(1, 0, 3), (4, 1, 300)]),  # rack 0 has nodes, not memory
        ("rack", [9, 2, 5], [100, 300, 200], (4, 164), [(1, 0, 2), (2, 0, 2), (4, 1, 200), (5, 1, 200)]),
        ("rack", [9, 2, 5], [100, 300, 200], (6, 164), "not enough pool memory in reach of the free nodes"),
        ("system", [9, 2, 5], [100, 300, 200], (6, 164), [(0, 0, 6), (3, 1, 100), (4, 1, 300), (5, 1, 200)]),
        ("system", [9, 2, 5], [100, 300, 200], (4, 164), [(0, 0, 4), (3, 1, 100), (4, 1, 300)]),  # own first, then most
        ("system", [9, 2, 5], [100, 300, 200], (7, 164), "not enough pool memory"),
        ("system", [1, 2, 5], [0, 0, 0], (9, 10), "not enough free nodes"),
        ("rack", [1, 4, 4], [0, 0, 0], (9, 10), [(0, 0, 1), (1, 0, 4), (2, 0, 4)]),
        ("rack", [1, 4, 4], [0, 0, 0], (5, 10), [(1, 0, 4), (2, 0, 1)]),
    ],
)  # fmt: skip
def test_placements_by_hand(scope: str, nodes: list[int], pool: list[int], job: tuple[int, int], expected: Rows | str) -> None:
    snapshot = view(nodes, pool, [job])
    assert rows(RackPlacement(scope).place(snapshot.table.job(0), snapshot)) == expected


machines = st.integers(1, 4).flatmap(
    lambda racks: st.tuples(
        st.lists(st.integers(0, 8), min_size=racks, max_size=racks),
        st.lists(st.integers(0, 400), min_size=racks, max_size=racks),
    )
)
demands = st.lists(st.tuples(st.integers(1, 20), st.sampled_from((0, 64, 65, 90, 164, 264))), min_size=1, max_size=6)
scopes = st.sampled_from((RackPlacement("rack"), RackPlacement("system")))


@settings(max_examples=200, deadline=None)
@given(machines, demands, scopes)
def test_placement_fits_and_satisfies_the_request(
    machine: tuple[list[int], list[int]], jobs: list[tuple[int, int]], placement: RackPlacement
) -> None:
    snapshot = view(*machine, jobs)
    racks = len(machine[0])
    for k in range(len(jobs)):
        job = snapshot.table.job(k)
        placed = placement.place(job, snapshot)
        remote = max(0, job.memory - LOCAL)
        if isinstance(placed, Refusal):
            room = machine[0] if placement.scope == "system" or not remote else [
                min(n, p // remote) for n, p in zip(*machine, strict=True)
            ]  # fmt: skip
            assert sum(room) < job.nodes or sum(machine[1]) < remote * job.nodes
            continue
        need = np.zeros_like(snapshot.free)
        np.add.at(need, (placed.owner, placed.resource), placed.amount)
        assert (need <= snapshot.free).all()
        assert (placed.amount > 0).all()
        assert (need[:racks, 0].sum(), need[racks:, 1].sum()) == (job.nodes, remote * job.nodes)
        if placement.scope == "rack":
            np.testing.assert_array_equal(need[racks:, 1], need[:racks, 0] * remote)


@settings(max_examples=100, deadline=None)
@given(st.lists(machines, min_size=1, max_size=4), demands, scopes)
def test_screen_is_exact_in_every_form(
    states: list[tuple[list[int], list[int]]], jobs: list[tuple[int, int]], placement: RackPlacement
) -> None:
    racks = len(states[0][0])
    views = [view((n * 4)[:racks], (p * 4)[:racks], jobs) for n, p in states]

    def fits(k: int, snapshot: Snapshot) -> bool:
        return not isinstance(placement.place(snapshot.table.job(k), snapshot), Refusal)

    every = np.arange(len(jobs))
    free = np.stack([snapshot.free for snapshot in views])
    for snapshot in views:  # many jobs, one state
        expected = [fits(k, snapshot) for k in every]
        assert placement.prefilter(every, snapshot.free[None], snapshot).tolist() == expected
    for k in every:  # one job, many states
        assert placement.prefilter(every[k : k + 1], free, views[0]).tolist() == [fits(k, snapshot) for snapshot in views]
    both = min(len(jobs), len(views))  # each job in a state of its own
    paired = placement.prefilter(every[:both], free[:both], views[0])
    assert paired.tolist() == [fits(k, snapshot) for k, snapshot in zip(every[:both], views, strict=False)]
