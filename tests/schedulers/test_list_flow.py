"""List scheduling with flow placement: order and backfill choose the jobs, one flow the places."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from poolwise import catalog
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.interfaces import PlacementPolicy
from poolwise.metrics import Outcomes
from poolwise.model import Changes, Queue, Reject, Snapshot, Start
from poolwise.model.run_table import RunTable
from poolwise.performance.combined import Combined
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.device_network import DeviceNetwork
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.transfer import Transfer
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FM
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.list_flow import ListFlow
from poolwise.studies import load_machine
from poolwise.traces.generators import generate
from tests.helpers.random_studies import difference

MACHINE = load_machine(catalog.find("machines", "whole-datacenter"))
FIXED = load_machine(catalog.find("machines", "whole-datacenter-fixed"))
MODELS = Combined((CpuFrequency(), DeviceNetwork("catalog:gpu-pods"), NvmeSharing(), Transfer()))


def crowd(jobs=40, gap=5.0):
    return generate("openb_philly", jobs=jobs, seed=1, mean_gap_s=gap)


def first_decisions(workload, machine, scheduler):
    """Return a scheduler's decisions if all jobs arrive at once on the idle machine."""
    queue = Queue(workload.table)
    for job in range(len(workload)):
        queue.add(job)
    now = int(workload.submit[-1])
    state = Snapshot(now, machine, workload.table, machine.capacity, machine.capacity, RunTable(machine.capacity.size), MODELS)
    dispatcher = scheduler.open(machine, 0)
    decisions = dispatcher.schedule(queue, state, Changes(arrived=tuple(range(len(workload)))))
    rejected = [decision.job for decision in decisions if isinstance(decision, Reject)]
    return dispatcher.schedule(queue.only(np.setdiff1d(queue.jobs, rejected)), state, Changes()) if rejected else decisions


@pytest.mark.parametrize("machine", [MACHINE, FIXED], ids=lambda machine: machine.name)
def test_order_and_backfill_choose_the_jobs_and_the_flow_their_places(machine):
    jobs = crowd(20)
    with_flow, without = (first_decisions(jobs, machine, kind(FM(), Easy(), Pooled())) for kind in (ListFlow, ListScheduler))
    started = [{d.job for d in decisions if isinstance(d, Start)} for decisions in (with_flow, without)]
    assert started[0] == started[1] != set()
    places = [[d.placement.rows() for d in decisions if isinstance(d, Start)] for decisions in (with_flow, without)]
    assert places[0] != places[1]


def test_run_gives_each_job_its_requested_resources():
    jobs = crowd()
    result = simulate(jobs, MACHINE, ListFlow(FM()), model=MODELS)
    schedule = result.schedule
    assert not schedule.refused
    assert Outcomes.of(schedule).finished.sum() + len(schedule.rejected) == len(jobs)
    for run in range(schedule.n_run):
        job, rows = jobs.job(int(schedule.job[run])), schedule.placement_of(run)
        for name in ("cores", "memory", "storage"):
            assert sum(a for _, r, a in rows if r == MACHINE.resource(name)) == job.request(name)
        for kind in ("v100", "p100", "t4"):
            assert sum(MACHINE.type[o] == kind for o, _, _ in rows) == job.request(kind)


@dataclass(frozen=True)
class CountingCompletion(PlacementPolicy):
    """User-defined placement, unrelated to `Pooled`, that counts how often it completes flow placements."""

    inner: Pooled = field(default_factory=Pooled)
    asked: ClassVar[int] = 0

    def whole_devices(self, machine):
        return self.inner.whole_devices(machine)

    def least(self, memory):
        return self.inner.least(memory)

    def place(self, job, snapshot):
        return self.inner.place(job, snapshot)

    def place_at(self, job, node, devices, snapshot):
        CountingCompletion.asked += 1
        return self.inner.place_at(job, node, devices, snapshot)


def test_any_completing_placement_is_accepted():
    shipped, own = (
        simulate(crowd(), MACHINE, ListFlow(FM(), placement=kind()), model=MODELS) for kind in (Pooled, CountingCompletion)
    )
    assert CountingCompletion.asked and difference(own.schedule, shipped.schedule) == ""


def test_placement_that_cannot_complete_is_rejected():
    with pytest.raises(InputError) as error:
        ListFlow(placement=RackPlacement()).open(MACHINE, 0)
    assert error.value.field == "placement"


def test_fm_counts_the_memory_of_shared_nodes():
    assert MACHINE.local_memory == 60 * 1024
    jobs = crowd(20)
    queue = Queue(jobs.table)
    for job in range(len(jobs)):
        queue.add(job)
    now = int(jobs.submit[-1]) + 10**12
    state = Snapshot(now, MACHINE, jobs.table, MACHINE.capacity, MACHINE.capacity, RunTable(MACHINE.capacity.size), MODELS)
    overload = np.maximum(1.0, jobs.memory / (60 * 1024))
    waited = queue.waited_s(now)
    assert FM().priority(queue, state) == pytest.approx(waited / (jobs.requested_s * overload), rel=1e-12)
