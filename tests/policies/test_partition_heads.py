"""Heads per partition by hand: a job waits only for jobs that compete for its nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise import explain_wait
from poolwise.engines import simulate
from poolwise.interfaces import BackfillPolicy
from poolwise.model import Machine, Partition, Workload
from poolwise.policies.backfill.easy import Easy, EasyNodesOnly, EasyNoExtra
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine

Row = tuple[int, int, int, str]


def divided(nodes: int, **sets: tuple[int, ...]) -> Machine:
    """Return nodes of four cores in partitions of given nodes."""
    inside = {name: np.isin(np.arange(nodes), members) for name, members in sets.items()}
    on = machine(np.array([[4, 100]] * nodes), np.zeros(nodes, dtype=np.int64), sets=inside)
    return replace(on, partitions=tuple(Partition(name) for name in sets))


def starts(on: Machine, rows: list[Row], backfill: BackfillPolicy, *, engine: str = "reference") -> list[int]:
    """Return the starts (s) of jobs given as (submit, duration, nodes, partition), each of which uses whole nodes."""
    how = ListScheduler(backfill=backfill, placement=FirstNodes())
    return (simulate(workload(rows), on, how, engine=engine).schedule.job_start // SECOND).tolist()


def workload(rows: list[Row]) -> Workload:
    submit, duration, nodes, parts = (np.array(column) for column in zip(*rows, strict=True))
    requests = {"cores": np.full(len(rows), 4), "nodes": nodes}
    return Workload.of(submit * SECOND, duration * SECOND, requests=requests, attributes={"partition": parts})


DISJOINT: list[Row] = [(0, 50, 1, "a"), (1, 10, 2, "a"), (2, 100, 1, "b"), (3, 10, 1, "a"), (4, 70, 1, "b")]
"""The second is the head of partition a until 50 s; the fourth ends before that; the third and fifth are in partition b."""


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        (NoBackfill(), [0, 50, 2, 60, 4]),
        (NoBackfill("machine"), [0, 50, 50, 60, 60]),
        (EasyNoExtra(), [0, 50, 2, 3, 4]),
        (EasyNoExtra(heads="machine"), [0, 50, 50, 3, 50]),
        (Easy(), [0, 50, 2, 3, 4]),
    ],
    ids=str,
)
def test_job_of_one_partition_starts_while_the_head_of_another_waits(backfill: BackfillPolicy, expected: list[int]) -> None:
    assert starts(divided(4, a=(0, 1), b=(2, 3)), DISJOINT, backfill) == expected


def test_head_blocks_shared_nodes_for_all_partitions() -> None:
    """Node 1 is in both partitions: the third job could start there, which would delay the head of partition a."""
    on = divided(3, a=(0, 1), b=(1, 2))
    rows = [(0, 50, 1, "a"), (0, 30, 1, "b"), (1, 10, 2, "a"), (2, 100, 1, "b"), (3, 5, 1, "b")]
    occupied = [*rows[:1], (0, 1, 1, "b"), (0, 30, 1, "b"), *rows[2:]]  # the second leaves node 1 free, the third uses node 2
    assert starts(on, occupied, NoBackfill()) == [0, 0, 0, 50, 30, 60]
    assert starts(on, occupied, Easy()) == [0, 0, 0, 50, 30, 3]


def test_blocked_job_that_fits_is_a_candidate_and_no_head() -> None:
    """The fifth job fits only on node 1, which the head of partition a blocks, and ends before the head's shadow time."""
    on = divided(3, a=(0, 1), b=(1, 2))
    rows = [(0, 50, 1, "a"), (0, 1, 1, "b"), (0, 90, 1, "b"), (1, 10, 2, "a"), (2, 40, 1, "b")]
    assert starts(on, rows, EasyNoExtra()) == [0, 0, 0, 50, 2]
    assert starts(on, rows, NoBackfill()) == [0, 0, 0, 50, 60]


def test_candidate_delays_none_of_several_heads() -> None:
    """The last job may use all nodes and would use a free one of each head, which wait until 50 s and 30 s."""
    on = divided(4, a=(0, 1), b=(2, 3), all=(0, 1, 2, 3))
    held = [(0, 50, 1, "a"), (0, 30, 1, "b"), (1, 9, 2, "a"), (1, 9, 2, "b")]
    assert starts(on, [*held, (2, 45, 2, "all")], Easy()) == [0, 0, 50, 30, 39], "on the nodes that the first does not block"
    assert starts(on, [*held, (2, 28, 2, "all")], Easy()) == [0, 0, 50, 30, 2]
    assert starts(on, [*held, (2, 45, 1, "all")], Easy()) == [0, 0, 50, 30, 2], "on a node of the first, and in time"
    assert starts(on, [*held, (2, 45, 1, "all")], EasyNoExtra()) == [0, 0, 50, 30, 39]


@pytest.mark.parametrize("backfill", [NoBackfill(), Easy(), EasyNoExtra(), EasyNodesOnly()], ids=str)
def test_heads_do_not_matter_if_all_jobs_use_one_partition(backfill: BackfillPolicy) -> None:
    on = divided(4, a=(0, 1, 2), b=(2, 3))
    g = np.random.default_rng(5)
    rows = [(int(g.integers(20)), int(g.integers(1, 30)), int(g.integers(1, 4)), "a") for _ in range(40)]
    assert starts(on, rows, backfill) == starts(on, rows, replace(backfill, heads="machine"))


def test_explanation_names_the_head_of_the_partition() -> None:
    on = divided(4, a=(0, 1), b=(2, 3))
    rows = [(0, 50, 1, "a"), (0, 50, 1, "b"), (1, 10, 2, "a"), (2, 10, 2, "b"), (3, 60, 1, "b")]
    for backfill in (NoBackfill(), Easy()):
        how = ListScheduler(backfill=backfill, placement=FirstNodes())
        reason = explain_wait(workload(rows), on, how, job=5).episodes[0].reason
        assert reason.blocker == 3, "the row of the head of partition b"
