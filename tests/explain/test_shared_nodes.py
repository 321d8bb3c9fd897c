"""Explanations on shared nodes: number of nodes, partition, holders of the short resource, and summarized placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import poolwise
from poolwise.explain import explain_wait, wait_answer
from poolwise.model import Kind, Machine, MachineBuilder, Partition
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler


def shared_machine(nodes: int = 8) -> Machine:
    build = MachineBuilder("shared", ("cores", "memory"))
    for k in range(nodes):
        build.node(f"rack0.c{k + 1}", cores=48, memory=96 * 1024)
    return Machine.of(build)


def wait(machine: Machine, **columns: list[int]) -> poolwise.Answer:
    partition = columns.pop("partition", None)
    count = len(columns["cores"])
    lengths = [f"{10 * (k + 1)} min" for k in range(count)]
    workload = poolwise.Workload.of([f"{k} s" for k in range(count)], lengths, requests=columns)
    if partition is not None:
        workload = replace(workload, attributes={"partition": np.array(partition)})
    explanation = explain_wait(workload, machine, ListScheduler(placement=FirstNodes()), count)
    return wait_answer(explanation, "log")


def test_number_of_nodes_with_the_needed_amount_is_reported() -> None:
    answer = wait(shared_machine(), nodes=[1, 6], cores=[4, 48], memory=[0, 96 * 1024])
    assert "at most" not in answer.headline and "did not wait" in answer.headline
    answer = wait(shared_machine(), nodes=[3, 6], cores=[4, 48], memory=[0, 0])
    assert "short of cores (it needed 6 nodes with 48 cores free each, and at most 5 had that much)" in answer.headline
    assert answer.content["episodes"][0]["nodes"] == 6 and answer.content["episodes"][0]["fitting"] == [5, 5]
    assert answer.tables[0].rows[0][5:7] == ["6 nodes with 48", "5 nodes"]


def test_nodes_are_counted_when_several_resources_are_short_together() -> None:
    memory = [96 * 1024, 0, 1024]
    answer = wait(shared_machine(2), nodes=[1, 1, 1], cores=[1, 48, 2], memory=memory)
    assert "(it needed a node with 2 cores and 1 GiB free, but there was none)" in answer.headline


def test_one_node_names_the_largest_free_amount() -> None:
    answer = wait(shared_machine(1), nodes=[1, 1], cores=[4, 48])
    assert "(it needed a node with 48 cores free, and at most 44 were free on one)" in answer.headline


def test_holders_of_the_short_resource_are_named_with_their_expected_ends() -> None:
    answer = wait(shared_machine(), nodes=[3, 1, 6], cores=[4, 1, 48])
    sentence = next(text for text in answer.because if "held the most" in text)
    assert "job 1 (12 cores, expected to end after 9 min 58 s) and job 2 (1 core, expected to end after 20 min)" in sentence
    assert [holder["job"] for holder in answer.content["episodes"][0]["holders"]] == [1, 2]


def test_partition_is_named_and_only_its_holders_count() -> None:
    machine = shared_machine(4)
    sets = {"small": np.arange(4) < 2, "large": np.arange(4) >= 2}
    machine = replace(machine, node_sets=sets, partitions=(Partition("small", default=True), Partition("large")))
    columns = {"nodes": [1, 2, 2], "cores": [4, 4, 48]}
    answer = wait(machine, partition=["small", "large", "large"], **columns)
    assert (
        "short of cores in partition large (it needed 2 nodes with 48 cores free each, and none had that much)"
        in answer.headline
    )
    assert [holder["job"] for holder in answer.content["episodes"][0]["holders"]] == [2]


def test_placement_is_summarized_by_ranges_of_nodes() -> None:
    answer = wait(shared_machine(), nodes=[1, 7], cores=[1, 48], memory=[0, 96 * 1024])
    assert any("on 7 nodes rack0.c2 to rack0.c8, each 48 cores and 96 GiB." in text for text in answer.because)
    assert Kind.NODE in shared_machine().kind


def test_shortage_of_the_blocking_job_is_not_attributed_to_the_waiting_job() -> None:
    # Job 2 needs 4 cores on each of 8 nodes, while job 1 fills one node; job 3 fits, but would delay job 2.
    machine = shared_machine()
    workload = poolwise.Workload.of(
        ["0 s", "1 s", "2 s"], ["10 min", "1 min", "1 h"], requests={"nodes": [1, 8, 1], "cores": [48, 4, 45]}
    )
    easy = explain_wait(workload, machine, ListScheduler(placement=FirstNodes()), 3)
    answer = wait_answer(easy, "log")
    assert "(job 2 needed 8 nodes with 4 cores free each, and at most 7 had that much)" in answer.headline
    assert answer.tables[0].rows[0][5] == "8 nodes with 4 (job 2)"
    assert easy.episodes[0].reason.blocker_needs
    own = explain_wait(workload, machine, ListScheduler(placement=FirstNodes(), backfill=Conservative()), 3)
    assert not own.episodes[0].reason.blocker_needs and own.episodes[0].reason.nodes == 1
    assert "(job 3 needed a node with 45 cores free" in wait_answer(own, "log").headline


def test_placement_on_nodes_of_two_types_lists_nodes_of_both() -> None:
    build = MachineBuilder("mixed", ("cores",))
    for name in ("n1", "n2", "fat1", "n3"):
        build.node(f"rack0.{name}", type=name[:-1], cores=32)
    workload = poolwise.Workload.of(["0 s"], ["1 min"], requests={"nodes": [4], "cores": [32]})
    explanation = explain_wait(workload, Machine.of(build), ListScheduler(placement=FirstNodes()), 1)
    text = "on 4 nodes rack0.n1 to rack0.n2, rack0.fat1 and rack0.n3, each 32 cores."
    assert any(text in line for line in wait_answer(explanation, "log").because)
