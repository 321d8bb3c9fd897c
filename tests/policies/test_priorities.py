"""Queue orders against the printed formulas, bit for bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model import Machine, Queue, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND
from poolwise.registry import make

LOCAL = 64

FORMULAS = {
    "sjf": lambda w, s, r, n, overload: -r,
    "fcfs": lambda w, s, r, n, overload: -s,
    "wfp3": lambda w, s, r, n, overload: (w / r) * (w / r) * (w / r) * n,
    "f1": lambda w, s, r, n, overload: -(math.log10(r) * n + 870 * math.log10(s)),
    "fair": lambda w, s, r, n, overload: w / r,
    "fm": lambda w, s, r, n, overload: w / ((math.log10(n) + 1) * r * overload),
}


def priorities(order: str, jobs: list[tuple[int, int, int, int]], now: int, **settings: object) -> tuple[Workload, list[float]]:
    submit, length, nodes, memory = (np.array(column) for column in zip(*jobs, strict=True))
    workload = Workload.of(submit, length + 5, requested=length, requests={"nodes": nodes, "memory": memory})
    machine, queue = Machine.of_racks(1, 4, local=LOCAL, pool=0), Queue(workload.table)
    for job in range(len(jobs)):
        queue.add(job)
    view = Snapshot(now, machine, workload.table, machine.capacity, machine.capacity, RunTable(machine.capacity.size), Ideal())
    return workload, make("orders", order, **settings).priority(queue, view).tolist()


@pytest.mark.parametrize("order", FORMULAS)
@given(
    jobs=st.lists(
        st.tuples(
            st.integers(0, 10**15), st.integers(1, 10**15), st.integers(1, 5000), st.sampled_from((0, 63, 64, 65, 100, 512))
        ),
        min_size=1,
        max_size=5,
    ),
    later=st.integers(0, 10**15),
)
def test_priority_matches_the_printed_formula(order: str, jobs: list[tuple[int, int, int, int]], later: int) -> None:
    now = max(job[0] for job in jobs) + later
    workload, got = priorities(order, jobs, now)
    for k, value in enumerate(got):
        submit, memory = int(workload.submit[k]), int(workload.memory[k])
        expected = FORMULAS[order](
            (now - submit) / SECOND,
            max(submit / SECOND, 1.0),
            int(workload.requested[k]) / SECOND,
            int(workload.nodes[k]),
            1.0 if memory <= LOCAL else memory / LOCAL,
        )
        assert value == expected


def test_priorities_by_hand() -> None:
    """100 s waited, 10 s requested, 100 nodes, twice the local memory, submitted at 1000 s."""
    jobs, now = [(1000 * SECOND, 10 * SECOND, 100, 2 * LOCAL)], 1100 * SECOND
    by_hand = {"sjf": -10, "fcfs": -1000, "wfp3": 100_000, "f1": -(100 + 870 * 3), "fair": 10, "fm": 100 / (3 * 10 * 2)}
    for order, value in by_hand.items():
        assert priorities(order, jobs, now)[1] == [pytest.approx(value, rel=1e-15)]
    assert priorities("f1", jobs, now, as_printed=True)[1] == [pytest.approx(2710, rel=1e-15)]


@pytest.mark.parametrize("nodes", [[], [7, 1, 100], [*range(1, 50), 3, 3]])  # the last case uses a lookup table
def test_node_logarithms_match_the_standard_library(nodes: list[int]) -> None:
    submit = np.arange(len(nodes), dtype=np.int64)
    workload = Workload.of(submit, submit + 1, requests={"nodes": np.array(nodes, dtype=np.int64)})
    assert workload.table.log10_nodes.tolist() == [math.log10(n) for n in nodes]
