"""Decisions of flow and greedy scheduling follow from queue and snapshot: reopened at any pass, dispatchers decide equally."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog, registry
from poolwise.files.machine import load_machine
from poolwise.loop import Loop, run_loop
from poolwise.model import Changes, Queue, Refusal, Reject, Snapshot, Start, Wait, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.combined import Combined
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.device_network import DeviceNetwork
from poolwise.performance.ideal import Ideal
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.platforms.simulated import Disturbance, Simulation
from poolwise.policies.order.priorities import FM
from poolwise.quantities import SECOND
from poolwise.schedulers.flow import Firmament, FlowScheduler
from poolwise.schedulers.greedy import LeastAllocated, LocalFirstRandom
from poolwise.schedulers.list_flow import ListFlow
from poolwise.traces.generators import generate
from tests.helpers.gpu_nodes import gpu_nodes
from tests.helpers.reopened import Reopened

KINDS = ("nw", "hotspot", "backprop", "unknown", "")
SCHEDULERS = (
    *(FlowScheduler(costs=name) for name in registry.names("costs")),
    *(FlowScheduler(costs=name, pooled=False, every_s=3.0, admission="filter") for name in registry.names("costs")),
    FlowScheduler(settings={"network_aware": True}, patience_s=20.0),
    FlowScheduler(settings={"network_aware": True}, local_first=False, every_s=7.0),
    FlowScheduler(settings={"max_placed": True}, aggregated=False),
    Firmament(),
    LeastAllocated(),
    LocalFirstRandom(),
)


@st.composite
def cases(draw):
    """Return (machine, workload, disturbances): some jobs never fit, some nodes and devices fail, some of these recover."""
    gpus = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    machine = gpu_nodes(gpus, cores=draw(st.integers(2, 8)), rack_gpus=draw(st.integers(0 if sum(gpus) else 1, 2)))
    n = draw(st.integers(1, 12))

    def column(low, high):
        return np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))

    workload = Workload.of(
        column(0, 15) * SECOND,
        column(1, 30) * SECOND,
        id=np.array(draw(st.permutations(range(n)))),
        tasks=column(1, 3),
        requests={"cores": column(0, 5), "memory": column(0, 70), "gpu": column(0, 3), "bandwidth": column(0, 900)},
        attributes={
            "kind": np.array([KINDS[k] for k in column(0, len(KINDS) - 1).tolist()]),
            "pinned": column(-3, len(gpus) - 1).clip(-1),
            "data_size": column(0, 3) * 1e9,
            "data_x": column(0, 1),
            "data_y": column(0, 3),
        },
    )
    disturbances = []
    for owner, resource in draw(st.sets(st.sampled_from([(0, 0), (0, 1), (len(gpus), 2)]), max_size=2)):
        amount, when = int(machine.capacity[owner, resource]), draw(st.integers(0, 20))
        if amount:
            disturbances.append(Disturbance(when * SECOND, owner, resource, -amount))
            if draw(st.booleans()):
                disturbances.append(Disturbance((when + 10) * SECOND, owner, resource, amount))
    return machine, workload, disturbances


@pytest.mark.long
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=str)
@given(case=cases(), seed=st.integers(0, 99))
@settings(max_examples=6)
def test_reopened_scheduler_decides_equally_for_any_row_order(scheduler, case, seed):
    machine, workload, disturbances = case
    watched = Reopened(scheduler, seed)
    simulation = Simulation(workload, machine, DeviceNetwork(), disturbances=disturbances)
    loop = run_loop(simulation, watched, seed)
    assert not loop.refused
    assert not loop.waiting or disturbances
    assert watched.passes


@pytest.mark.parametrize("costs", ["cpu_mem", "octopus"])
@pytest.mark.parametrize("name", ["whole-datacenter", "whole-datacenter-fixed"])
def test_reopened_list_flow_decides_equally(name, costs):
    machine = load_machine(catalog.find("machines", name))
    jobs = generate("openb_philly", jobs=25, seed=3, mean_gap_s=5.0)
    models = Combined((CpuFrequency(), DeviceNetwork("catalog:gpu-pods"), NvmeSharing()))
    watched = Reopened(ListFlow(FM(), costs=costs), seed=1)
    loop = run_loop(Simulation(jobs, machine, models), watched)
    assert not loop.waiting
    assert watched.passes > len(jobs)


def test_kept_solver_and_backfill_declare_their_state():
    assert FlowScheduler(solver="kept").keeps_state
    assert not FlowScheduler().keeps_state
    assert not ListFlow().keeps_state


def gang(machine, scheduler, tasks, waiting, taken=0, **requests):
    """Return the decisions for a gang with some waiting tasks on a machine whose first node is partly occupied."""
    columns = {name: np.array([each]) for name, each in requests.items()}
    jobs = Workload.of(np.zeros(1), np.full(1, SECOND), tasks=tasks, requests=columns)
    queue = Queue(jobs.table)
    queue.add(0, waiting)
    free = machine.capacity.copy()
    free[0, 0] -= taken
    state = Snapshot(0, machine, jobs.table, machine.capacity, free, RunTable(free.size), Ideal())
    return scheduler.open(machine, 0).schedule(queue, state, Changes()).entries


@pytest.mark.parametrize("scheduler", [*SCHEDULERS[: len(registry.names("costs"))], Firmament(), LeastAllocated()], ids=str)
def test_only_waiting_tasks_of_a_gang_are_counted_and_started(scheduler):
    machine = gpu_nodes((2, 2), cores=4)
    (start,) = gang(machine, scheduler, 4, (2, 3), taken=4, cores=2, gpu=1)  # there is room for two, not for four
    assert isinstance(start, Start)
    assert start.tasks == (2, 3)
    assert sorted(set(start.placement.task.tolist())) == [2, 3]
    assert int(start.placement.amount[start.placement.resource == 2].sum()) == 2
    (start,) = gang(machine, scheduler, 8, (6, 7), cores=2, gpu=1)  # the idle machine cannot hold eight
    assert isinstance(start, Start)
    (reject,) = gang(machine, scheduler, 8, None, cores=2, gpu=1)
    assert reject == Reject(0, "requests 8 gpu, but the machine has 4")


@pytest.mark.parametrize("scheduler", [FlowScheduler(), Firmament(), LeastAllocated(), LocalFirstRandom()], ids=str)
def test_no_job_is_infeasible_while_the_machine_may_grow(scheduler):
    machine = gpu_nodes((1, 1), cores=4)
    jobs = Workload.of(
        np.array([1, 1, 2]) * SECOND, np.full(3, SECOND), requests={"cores": np.array([4, 1, 9]), "gpu": np.array([1, 1, 1])}
    )
    down = [Disturbance(0, node, 0, -3) for node in (0, 1)]
    for back in (True, False):
        up = [Disturbance(10 * SECOND, 1, 0, 3)] if back else []
        simulation, decisions = Simulation(jobs, machine, Ideal(), disturbances=[*down, *up]), []
        loop = Loop(simulation, scheduler)
        for batch in simulation.events():
            decisions += loop.step(batch).committed
        starts = {decision.job for decision in decisions if isinstance(decision, Start)}
        waits = {decision.job for decision in decisions if isinstance(decision, Wait)}
        assert starts == ({0, 1} if back else {1})
        assert waits >= ({0, 2} if back else set())
        assert list(loop.result.rejected) == ([2] if back else [0, 2])
        start = simulation.recorder.schedule(jobs, machine, loop.result).job_start
        assert start[1] == SECOND  # a job that waits for the machine to grow blocks no other
        assert not back or start[0] == 10 * SECOND


@pytest.mark.parametrize(
    ("asks", "pinned", "why"),
    [
        ({"fpga": 1}, -1, "job 1 requests fpga, which machine 'gpus' does not have on shared nodes or devices"),
        ({}, 9, "job 1 is pinned to owner 9, which is not a node"),
        ({}, -2, "job 1 is pinned to owner -2, which is not a node"),
    ],
)
def test_unchecked_jobs_are_rejected_with_the_message_of_the_check(asks, pinned, why):
    columns = {name: np.array([each, 0]) for name, each in {"cores": 1, **asks}.items()}
    jobs = Workload.of(np.zeros(2), np.full(2, SECOND), requests=columns, attributes={"pinned": np.array([pinned, 0])})
    for scheduler in (FlowScheduler(), LeastAllocated()):
        loop = run_loop(Simulation(jobs, gpu_nodes(), Ideal()), scheduler)
        assert loop.rejected == {0: why}
        assert not loop.waiting


def test_shape_order_follows_requests_regardless_of_arrival():
    """The order of classes in the graph is that of their values, as in `numpy.unique`."""
    rng = np.random.default_rng(0)
    scheduler, machine = FlowScheduler(), gpu_nodes((2, 2))
    jobs = Workload.of(
        np.arange(60),
        np.full(60, SECOND),
        tasks=rng.integers(1, 3, 60),
        requests={"cores": rng.integers(0, 3, 60), "gpu": rng.integers(0, 2, 60)},
        attributes={"kind": np.array(["zz", "b", "a", ""])[rng.integers(0, 4, 60)], "pinned": rng.integers(-1, 2, 60)},
    )
    table, shapes = jobs.table.first(0), scheduler.open(machine, 0).shapes
    for length in (1, 7, 30, 60):
        table.show(length)
        shapes.of(table, np.arange(length))
    rows = rng.permutation(60)[:40]
    live, of = shapes.live(shapes.of(table, rows), table.tasks[rows])
    kinds = np.unique(table.attributes["kind"], return_inverse=True)[1]
    keys = [table.request("cores"), table.request("memory"), table.request("gpu"), table.tasks, kinds]
    keys = np.column_stack([*keys, table.attributes["pinned"]])[rows]
    values, expected = np.unique(keys, axis=0, return_inverse=True)
    assert of.tolist() == expected.reshape(-1).tolist()
    assert live.demand.tolist() == values[:, :3].tolist()
    assert live.tasks.tolist() == values[:, 3].tolist()
    assert [live.kind[k] for k in of.tolist()] == table.attributes["kind"][rows].tolist()
    assert live.pinned.tolist() == values[:, 5].tolist()


def test_refusal_names_the_device_kind_and_its_count():
    machine = gpu_nodes((1,))
    jobs = Workload.of(np.zeros(1), np.full(1, SECOND), requests={"cores": np.ones(1), "gpu": np.full(1, 3)})
    queue = Queue(jobs.table)
    queue.add(0)
    state = Snapshot(0, machine, jobs.table, machine.capacity, machine.capacity, RunTable(4), Ideal(), may_grow=True)
    (wait,) = FlowScheduler().open(machine, 0).schedule(queue, state, Changes()).entries
    assert wait == Wait(0, Refusal("requests 3 gpu, but the machine has 1", "gpu", 3, 1))
    assert replace(wait.refusal, free=0) != wait.refusal
