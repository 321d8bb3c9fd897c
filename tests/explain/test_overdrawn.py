"""A real cluster may lose resources that runs still hold: every wait has a reason, and no amount is assigned twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from poolwise.interfaces import PlacementPolicy
from poolwise.model import Changes, Machine, Queue, Refusal, Run, Snapshot, Workload
from poolwise.model.machine_builder import MachineBuilder
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.policies.placement.nodes.placement import FirstNodes, PackedNodes
from poolwise.quantities import SECOND
from poolwise.registry import make, names
from poolwise.schedulers.list import ListScheduler

LOCAL, POOL = 64, 300
BACKFILLS = names("backfills")


def racks() -> Machine:
    return Machine.of_racks(3, 4, local=LOCAL, pool=POOL)


def shared() -> Machine:
    build = MachineBuilder("shared", ("cores", "memory"))
    for n in range(6):
        build.node(f"node{n}", type="any", rack=n // 3, cores=4, memory=LOCAL)
    for r in range(2):
        build.pool(f"pool{r}", type="any", rack=r, memory=POOL)
    return Machine.of(build)


@dataclass
class Cluster:
    """Cluster with arbitrary events: runs start and end at any time, and resources fail under them."""

    workload: Workload
    machine: Machine
    placement: PlacementPolicy

    def __post_init__(self) -> None:
        self.now, self.capacity = 0, self.machine.capacity.copy()
        self.runs, self.queue = RunTable(self.capacity.size), Queue(self.workload.table)

    def snapshot(self) -> Snapshot:
        free = self.capacity.copy()
        for run in self.runs:
            run.placement.take_from(free)
        return Snapshot(self.now, self.machine, self.workload.table, self.capacity, free, self.runs, Ideal(), may_grow=True)

    def schedule(self, how: ListScheduler) -> None:
        """Run a pass, request a reason for each job left waiting, and apply the starts."""
        view, dispatcher = self.snapshot(), how.open(self.machine, 0)
        decisions = dispatcher.schedule(self.queue, view, Changes(explain=frozenset(self.queue.jobs.tolist())))
        begun, left = {start.job for start in decisions.starts}, np.maximum(view.free, 0)
        for job in self.queue.jobs.tolist():
            fits = not isinstance(self.placement.place(self.workload.job(job), view), Refusal)
            assert not fits or self.placement.prefilter(np.array([job]), view.free[None], view).all()
            if job not in begun and job not in decisions.rejected:
                assert decisions.reason(job, dispatcher).text
        event("something is overdrawn" if (view.free < 0).any() else "nothing is overdrawn")
        for start in decisions.starts:
            assert (start.placement.amount >= 0).all()
            start.placement.take_from(left)
            end = view.expected_end(start.job, start.placement)
            cells = start.placement.owner * len(self.machine.resources) + start.placement.resource
            self.runs.add(Run(start.job, start.job, (0,), start.placement, self.now, end), cells, ())
            self.queue.remove_tasks(start.job, start.tasks)
        assert (left >= 0).all()


@st.composite
def days(draw: st.DrawFn, whole: bool) -> tuple[Cluster, list[tuple[int, int, float]]]:
    """Return a cluster and its events: kind, place and amount."""
    size = st.tuples(st.integers(1, 8 if whole else 4), st.sampled_from((0, 64, 80, 164, 200)), st.integers(1, 30))
    jobs = draw(st.lists(size, min_size=4, max_size=14))
    nodes, memory, length = (np.array(column) for column in zip(*jobs, strict=True))
    cores = {} if whole else {"cores": 1 + nodes % 4}
    workload = Workload.of(
        np.zeros(len(jobs), dtype=np.int64), length * SECOND, requests={"nodes": nodes, "memory": memory, **cores}
    )
    kinds: tuple[PlacementPolicy, ...] = (FirstNodes(), PackedNodes())
    placement = draw(st.sampled_from((RackPlacement("rack"), RackPlacement("system")) if whole else kinds))
    happens = st.tuples(st.integers(0, 4), st.integers(0, 1000), st.floats(0, 1))
    return Cluster(workload, racks() if whole else shared(), placement), draw(st.lists(happens, min_size=6, max_size=25))


@pytest.mark.parametrize("whole", [True, False], ids=["racks with pools", "shared nodes"])
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(BACKFILLS), st.sampled_from(("fcfs", "sjf")))
def test_every_wait_has_a_reason_under_arbitrary_events(whole: bool, data: st.DataObject, backfill: str, order: str) -> None:
    cluster, happenings = data.draw(days(whole))
    how = ListScheduler(make("orders", order), make("backfills", backfill), cluster.placement)
    arriving = iter(range(len(cluster.workload)))
    for kind, where, much in happenings:
        cluster.now += 1 + int(much * 20) * SECOND
        running = [run.id for run in cluster.runs]
        if kind <= 1:
            for job in (job for job, _ in zip(arriving, range(1 + where % 4), strict=False)):
                cluster.queue.add(job)
        elif kind == 2 and running:
            cluster.runs.remove(running[where % len(running)])
        else:  # an owner loses a part of its resources, or regains all of them
            owner = where % cluster.machine.n_owner
            has = cluster.machine.capacity[owner]
            cluster.capacity[owner] = has if kind == 4 else (has * much).astype(np.int64)
        if len(cluster.queue):
            cluster.schedule(how)
