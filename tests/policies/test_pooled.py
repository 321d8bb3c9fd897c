"""Pooled placement on nodes, memory pools, devices by type and composed NVMe: against explicit rules, on random states."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.model import Changes, Kind, Placement, Queue, Refusal, Reject, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.devices.shares import DeviceShares
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.policies.placement.nvme.policies import NvmeFirstFit
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.list_flow import ListFlow
from poolwise.studies import load_machine

MACHINES = {name: load_machine(catalog.find("machines", name)) for name in ("whole-datacenter", "whole-datacenter-fixed")}
GIB = 1024


def jobs_of(rows):
    """Jobs that request (cores, GiB, bandwidth, GiB of NVMe, t4, p100)."""
    names = ("cores", "memory", "bandwidth", "storage", "t4", "p100")
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(names))
    columns[:, [1, 3]] *= GIB
    return Workload.of(np.arange(len(rows)), np.full(len(rows), 60), requests=dict(zip(names, columns.T, strict=True)))


def empty(machine, jobs, free=None):
    return Snapshot(
        0,
        machine,
        jobs.table,
        machine.capacity,
        machine.capacity if free is None else free,
        RunTable(machine.capacity.size),
        Ideal(),
    )


requests = st.tuples(
    st.integers(1, 100),
    st.integers(0, 500),
    st.just(0),
    st.just(0),
    st.integers(0, 9),
    st.integers(0, 5),
)


def possible(machine, free, job, least_local):
    """Return the nodes with everything for a job without NVMe, checked one at a time."""
    column, fitting = machine.resource, []
    for node in machine.of_kind(Kind.NODE).tolist():
        pools = [o for o in machine.of_kind(Kind.POOL).tolist() if machine.rack[o] == machine.rack[node]]
        local, pool = free[node, column("memory")], sum(free[o, column("memory")] for o in pools)
        fits = free[node, column("cores")] >= job.request("cores") and local + pool >= job.memory
        fits = fits and local >= least_local * job.memory
        for kind in ("t4", "p100"):
            reached = [
                free[o, column("devices")]
                for o in machine.of_kind(Kind.DEVICE).tolist()
                if machine.type[o] == kind and machine.home[o] in (-1, node)
            ]
            fits = fits and sum(reached) >= job.request(kind)
        fitting += [node] if fits else []
    return fitting


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(MACHINES)),
    rows=st.lists(requests, min_size=1, max_size=6),
    least_local=st.sampled_from([0.0, 0.25, 1.0]),
    local_first=st.booleans(),
    seed=st.integers(0, 99),
)
def test_job_is_placed_if_and_only_if_a_node_has_everything(name, rows, least_local, local_first, seed):
    machine, jobs = MACHINES[name], jobs_of(rows)
    free = np.floor(machine.capacity * np.random.default_rng(seed).random(machine.capacity.shape) ** 0.3).astype(np.int64)
    free = np.where(
        machine.kind[:, None] == Kind.DEVICE, np.round(free / np.maximum(machine.capacity, 1)).astype(np.int64), free
    )
    state, policy = empty(machine, jobs, free), Pooled(least_local=least_local, local_first=local_first)
    prefiltered = policy.prefilter(np.arange(len(jobs)), free[None], state)
    for k in range(len(jobs)):
        job, able = jobs.job(k), possible(machine, free, jobs.job(k), least_local)
        placed = policy.place(job, state)
        assert isinstance(placed, Placement) == bool(able)
        assert prefiltered[k] or not able
        if isinstance(placed, Placement):
            check(placed, machine, free, job, able, least_local)


@settings(max_examples=40)
@given(name=st.sampled_from(sorted(MACHINES)), row=requests, tasks=st.integers(2, 5), seed=st.integers(0, 99))
def test_each_task_of_a_gang_is_placed_on_what_the_earlier_ones_left(name, row, tasks, seed):
    machine, workload = MACHINES[name], jobs_of([row])
    gang = Workload.of(workload.submit, workload.duration, requests=workload.table.requests, tasks=[tasks])
    share = np.random.default_rng(seed).random(machine.capacity.shape) ** 0.1
    devices = machine.kind[:, None] == Kind.DEVICE
    free = np.where(devices, machine.capacity, np.floor(machine.capacity * share)).astype(np.int64)
    placed, left = Pooled().place(gang.job(0), empty(machine, gang, free)), free.copy()
    for task in range(tasks):
        able = possible(machine, left, workload.job(0), 0.25)
        if isinstance(placed, Refusal) and not able:
            return
        assert able
        alone = Pooled().place(workload.job(0), empty(machine, workload, left))
        if isinstance(placed, Placement):
            rows = placed.task == task
            mine = Placement(np.zeros(rows.sum(), np.int64), placed.owner[rows], placed.resource[rows], placed.amount[rows])
            assert sorted(mine.rows()) == sorted(alone.rows())
        alone.take_from(left)
    assert isinstance(placed, Placement)


def test_gang_that_requests_nvme_is_refused():
    machine = MACHINES["whole-datacenter"]
    gang = Workload.of([0], [60], requests={"cores": [1], "memory": [GIB], "bandwidth": [100], "storage": [GIB]}, tasks=[2])
    refusal = Pooled().place(gang.job(0), empty(machine, gang))
    assert isinstance(refusal, Refusal) and "several tasks" in str(refusal.reason)


def check(found, machine, free, job, able, least_local):
    """Check that a job gets all its requests from one able node, its rack's pool and devices that serve it."""
    taken = np.zeros_like(free)
    np.add.at(taken, (found.owner, found.resource), found.amount)
    assert (taken <= free).all()
    (node,) = [o for o in found.owners() if machine.kind[o] == Kind.NODE]
    assert node in able
    memory = taken[:, machine.resource("memory")]
    assert memory.sum() == job.memory
    assert memory[node] >= least_local * job.memory
    assert taken[node, machine.resource("cores")] == job.request("cores")
    for owner in found.owners():
        if machine.kind[owner] == Kind.POOL:
            assert machine.rack[owner] == machine.rack[node]
            assert memory[node] == free[node, machine.resource("memory")]  # the pool gives only what the node lacks
        if machine.kind[owner] == Kind.DEVICE:
            assert machine.home[owner] in (-1, node)
    for kind in ("t4", "p100"):
        mine = [o for o in found.owners() if machine.type[o] == kind]
        assert len(mine) == job.request(kind)


def test_memory_comes_from_the_node_then_from_the_pool_of_its_rack():
    machine, jobs = MACHINES["whole-datacenter"], jobs_of([(1, 400, 0, 0, 0, 0), (1, 100, 0, 0, 0, 0)])
    placed = Pooled().place(jobs.job(0), empty(machine, jobs))
    memory = {machine.owners[o]: a for _, o, r, a in placed.rows() if r == machine.resource("memory")}
    assert memory == {"rack0.dense0": 192 * GIB, "rack0.memory": 208 * GIB}
    rest = empty(machine, jobs).with_started(0, placed)
    near = Pooled().place(jobs.job(1), rest)
    assert not [o for o in near.owners() if machine.kind[o] == Kind.POOL]  # another node has all of it
    assert isinstance(Pooled(least_local=0.5).place(jobs.job(0), rest), Refusal)


def test_devices_come_from_the_rack_first_and_nvme_with_the_node():
    machine, jobs = MACHINES["whole-datacenter"], jobs_of([(1, 1, 3000, 600, 0, 6)])
    placed = Pooled().place(jobs.job(0), empty(machine, jobs))
    names = [machine.owners[o] for o in placed.owners()]
    assert [name for name in names if "p100" in name] == [f"rack0.p100{k}" for k in range(4)] + ["rack1.p1000", "rack1.p1001"]
    assert len([name for name in names if "nvme" in name]) == 2  # 600 GiB are more than one device
    bandwidth = {o: a for _, o, r, a in placed.rows() if r == machine.resource("bandwidth")}
    assert sum(bandwidth.values()) == 3000
    assert isinstance(Pooled(NvmeFirstFit()).place(jobs.job(0), empty(machine, jobs)), Refusal)


def test_fixed_servers_refuse_jobs_that_no_server_can_hold():
    machine, jobs = MACHINES["whole-datacenter-fixed"], jobs_of([(1, 1, 0, 0, 0, 3), (17, 1, 0, 0, 0, 1)])
    for job in (0, 1):
        refusal = Pooled().place(jobs.job(job), empty(machine, jobs))
        assert refusal == Refusal("no node has enough cores, memory and devices at once")
    assert isinstance(Pooled().place(jobs.job(1), empty(MACHINES["whole-datacenter"], jobs)), Placement)


def test_unknown_request_is_rejected_before_the_run():
    machine = MACHINES["whole-datacenter"]
    jobs = Workload.of([0], [60], requests={"cores": [1], "memory": [1], "h100": [1]})
    for scheduler in (ListScheduler, ListFlow):
        with pytest.raises(InputError, match="job 1 requests h100") as error:
            scheduler(placement=Pooled()).check(machine, jobs.table)
        assert error.value.field == "h100"


@pytest.mark.parametrize("scheduler", [ListScheduler(placement=Pooled()), ListScheduler(placement=DeviceShares()), ListFlow()])
@pytest.mark.parametrize("may_grow", [False, True])
def test_arriving_job_with_an_unknown_request_does_not_block_others(scheduler, may_grow):
    machine = MACHINES["whole-datacenter"]
    jobs = Workload.of([0, 0], [60, 60], requests={"cores": [1, 1], "memory": [1, 1], "h100": [1, 0]})
    state, queue, dispatcher = empty(machine, jobs), Queue.of(jobs.table, np.arange(2)), scheduler.open(machine, 0)
    state.may_grow = may_grow
    decisions = dispatcher.schedule(queue, state, Changes())
    why = "requests h100, which the machine does not have on the nodes where jobs are placed"
    if may_grow:
        assert decisions.waits[0] == Refusal(why, "h100", 1, 0)
    else:
        assert decisions.entries == (Reject(0, f"cannot fit on the empty machine: {why}"),)
        decisions = dispatcher.schedule(queue.only(np.array([1])), state, Changes())
    assert [start.job for start in decisions.starts] == [1]


@pytest.mark.parametrize(
    ("policy", "field"), [(Pooled(least_local=1.5), "least_local"), (Pooled(nvme=RackPlacement()), "nvme")]
)
def test_invalid_settings_are_named(policy, field):
    jobs = jobs_of([(1, 1, 0, 0, 0, 0)])
    machine = MACHINES["whole-datacenter"]
    for call in (lambda: policy.place(jobs.job(0), empty(machine, jobs)), lambda: policy.check(machine, jobs.table)):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.field == field


def test_given_node_and_devices_are_used_or_refused():
    machine, jobs = MACHINES["whole-datacenter"], jobs_of([(4, 10, 0, 0, 2, 0)])
    state, policy = empty(machine, jobs), Pooled()
    node, devices = machine.owner("rack2.fast0"), (machine.owner("rack1.t43"), machine.owner("rack3.t40"))
    placed = policy.place_at(jobs.job(0), node, devices, state)
    assert {node, *devices} == set(placed.owners())
    taken = state.with_started(0, placed)
    assert isinstance(policy.place_at(jobs.job(0), node, devices, taken), Refusal)
    fixed = MACHINES["whole-datacenter-fixed"]
    elsewhere = (fixed.owner("rack0.dense1.t40"), fixed.owner("rack0.dense1.t41"))
    assert isinstance(policy.place_at(jobs.job(0), fixed.owner("rack0.dense0"), elsewhere, empty(fixed, jobs)), Refusal)
