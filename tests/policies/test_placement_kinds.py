"""Jobs with equal requests are evaluated once, with the same answers as one by one."""

import sys
from functools import partial

import numpy as np
import pytest

from poolwise.arrays import IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.interfaces.placement import signatures_of
from poolwise.model import Job, JobTable, Machine, MachineBuilder, Placement, Queue, Refusal, Snapshot
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement import requests
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.fitting import Fitting

RNG = np.random.default_rng(18)


def shared() -> Machine:
    build = MachineBuilder("shared")
    for k in range(4):
        node = build.node(f"n{k}", cores=8, memory=64, rack=k % 2)
        for i in range(k % 3):
            build.device(f"g{k}{i}", type="gpu", home=node, devices=1)
    build.device("drive", type="nvme", bandwidth=8, storage=8)
    sets = {"even": np.array([name in ("n0", "n2") for name in (owner.name for owner in build.owners)])}
    return Machine(**build.columns(), node_sets=sets)


def whole() -> Machine:
    build = MachineBuilder("whole")
    for k in range(3):
        build.whole_nodes(f"r{k}", 8, rack=k, memory=64)
        build.pool(f"p{k}", rack=k, memory=100)
    return Machine(**build.columns())


def jobs(machine: Machine, count: int, composed: bool) -> JobTable:
    """Few kinds of jobs, in random order; some may run only on some nodes."""
    ones, whole = np.ones(count, dtype=np.int64), "nodes" in machine.resources
    most = {"nodes": 6, "memory": 90} if whole else {"cores": 9, "memory": 80, "gpu": 3}
    requests = {name: RNG.choice([0, 1, amount // 2, amount], count) for name, amount in most.items()}
    if composed:
        requests |= {name: RNG.choice([0, 0, 2], count) for name in ("bandwidth", "storage")}
    where = np.array(["", "even"], dtype=object)[RNG.integers(0, 1 if whole else 2, count)]
    return JobTable(np.arange(count), ones, ones, ones, requests, {"constraint": where})


def alike_in(placement: PlacementPolicy, snapshot: Snapshot) -> IntArray | None:
    return signatures_of(placement, snapshot.machine, snapshot.table)


@pytest.mark.parametrize(
    ("placement", "machine", "composed"),
    [
        (EmptiestNodes(), shared(), False),
        (Pooled(), shared(), False),
        (Pooled(), shared(), True),
        (RackPlacement("system"), whole(), False),
        (RackPlacement("rack"), whole(), False),
    ],
    ids=["nodes", "pooled", "composed", "racks of a system", "racks"],
)
def test_answers_match_evaluating_each_job(
    placement: PlacementPolicy, machine: Machine, composed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = evaluated = 0
    for _ in range(20):
        table, free = jobs(machine, 80, composed), RNG.integers(0, machine.capacity + 1)
        snapshot = Snapshot(0, machine, table, free, free, RunTable(free.size), Ideal())
        queue = Queue.of(table, np.sort(RNG.choice(80, 70, replace=False)))
        verdicts = []
        for fewest in (sys.maxsize, 0):
            monkeypatch.setattr(requests, "MIN_JOBS", fewest)
            verdicts.append(placement.prefilter(queue.jobs, free[None], snapshot))
        assert np.array_equal(verdicts[0], verdicts[1])
        judged: list[int] = []

        def judge(job: int, state: Snapshot, calls: list[int] = judged, snapshot: Snapshot = snapshot) -> Refusal | None:
            calls.append(job)
            answer = placement.place(Job(snapshot.table, job), snapshot)
            return None if isinstance(answer, Placement) else answer

        assert alike_in(placement, snapshot) is not None
        each = Fitting().refusals(queue, snapshot, judge)
        judged.clear()
        assert Fitting().refusals(queue, snapshot, judge, partial(alike_in, placement)) == each
        refused, evaluated = refused + len(each), evaluated + len(judged)
    assert 0 < refused < 20 * 70 and evaluated < 20 * 70


def test_kinds_keep_their_numbers_when_jobs_arrive() -> None:
    machine = shared()
    table, more = jobs(machine, 40, False), jobs(machine, 40, False)
    before = requests.request_kinds(machine, table).copy()
    table.append(more)
    after = requests.request_kinds(machine, table)
    assert np.array_equal(after[:40], before) and len(after) == 80
    where = table.attributes["constraint"]
    requested = [(where[k], *(int(column[k]) for column in table.requests.values())) for k in range(80)]
    assert len(set(zip(requested, after.tolist(), strict=True))) == len(set(requested)) == len(set(after.tolist()))
