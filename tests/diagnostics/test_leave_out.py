"""Tests of the selection of the largest jobs, and of the search for the fewest that change an answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.diagnostics.leave_out import CHEAP, fewest, largest_jobs, leave_out_few, reason_to_skip
from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.traces import without

POOL = "machine.pool.memory.memory"


def workload(memory: list[int]) -> Workload:
    n = len(memory)
    ones = np.ones(n, dtype=np.int64)
    return Workload.of(np.arange(n), ones, id=np.arange(n) + 7, requests={"nodes": ones, "memory": np.array(memory)})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), max_size=12), st.integers(100, 1100))
def test_sentence_names_exactly_the_jobs_with_larger_requests(large, n):
    jobs = workload([*(10 * x for x in large), *[10] * (n - len(large))])
    largest = largest_jobs(jobs, POOL)
    assert len(largest.ids) == min(10, n // 100) and largest.what == "memory per node"
    for count in range(1, len(largest.ids) + 1):
        above = set(jobs.id[jobs.memory > largest.amounts[count]].tolist())
        assert (count in largest.counts) == (above == set(largest.ids[:count]))
        if count in largest.counts:
            assert largest.text(count).startswith(f"{count} of {n:,} jobs (job")
            assert largest.text(count).endswith(f"more than {int(largest.amounts[count])} MiB of memory per node")


@pytest.mark.parametrize(
    ("large", "text"), [(0, "More than 2 jobs request the most nodes, so no small"), (1, "more than 1 node;")]
)
def test_sizes_in_nodes_are_compared_with_the_nodes_of_jobs(large: int, text: str) -> None:
    nodes = np.ones(200, dtype=np.int64)
    nodes[:large] = 9
    jobs = Workload.of(np.arange(200), nodes, id=np.arange(200), requests={"nodes": nodes, "cores": 0 * nodes + 4})
    group = largest_jobs(jobs, "machine.rack.0.nodes.n")
    without_them = leave_out_few(group, 1, lambda ids: 1, lambda answer: ("the answer is the same", None), "answer").text
    assert text in without_them and "per node" not in without_them


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=10, max_size=10), st.integers(1, 12), st.integers(1, 12))
def test_fewest_jobs_that_change_the_answer_are_found(large, first, second):
    jobs = workload([*(10 * x for x in large), *[10] * 1000])
    group = largest_jobs(jobs, POOL)
    calls = []

    def answer_without(ids: tuple[int, ...]) -> int:
        calls.append(ids)
        return (len(ids) >= first) + (len(ids) >= second)

    answers = {count: answer_without(group.ids[:count]) for count in group.counts}
    last = max(answers.values(), default=0)
    expected = (min(count for count, there in answers.items() if there == last), last) if last else None
    calls.clear()
    assert fewest(group, 0, answer_without) == expected
    assert len(calls) <= 5 and len(set(calls)) == len(calls)


def test_jobs_are_ranked_by_the_sized_resource():
    ones = np.ones(300, dtype=np.int64)
    nodes, gpu, memory = ones.copy(), ones.copy(), ones.copy()
    nodes[[4, 5]], gpu[9], memory[[7, 8]] = 3, 4, (5, 6)
    duration = ones * 3600 * 10**9
    duration[2] *= 8
    jobs = Workload.of(np.arange(300), duration, requests={"nodes": nodes, "memory": memory, "gpu": gpu})
    ranked = {
        key: largest_jobs(jobs, key) for key in (POOL, "machine.rack.0.nodes.thin", "machine.device.gpu.count", "machine.x")
    }
    assert [(group.what, group.ids[:1], group.amounts[0]) for group in ranked.values()] == [
        ("memory per node", (9,), 6),
        ("nodes", (5,), 3),
        ("gpu", (10,), 4),
        ("node-hours", (3,), 8),
    ]
    text = ranked["machine.rack.0.nodes.thin"].text(2)
    assert text == "2 of 300 jobs (jobs 5, 6) request more than 1 node"


def test_expensive_repetition_is_skipped_with_reason():
    assert reason_to_skip({"compiled"}, CHEAP // 10, 10) is None
    assert "10 runs of 500,001 jobs" in str(reason_to_skip({"compiled"}, CHEAP // 10 + 1, 10))
    assert "reference engine" in str(reason_to_skip({"compiled", "reference"}, 100, 10))


def test_removing_jobs_keeps_the_others_and_rejects_unknown_ids():
    jobs = workload([1, 2, 3, 4])
    left = without(jobs, (8, 10))
    assert left.id.tolist() == [7, 9] and left.memory.tolist() == [1, 3] and left.submit.tolist() == [0, 2]
    assert without(jobs, ()) is jobs
    with pytest.raises(InputError, match="has no job 6"):
        without(jobs, (6, 7))
    with pytest.raises(InputError, match="no job remains"):
        without(jobs, (7, 8, 9, 10))
