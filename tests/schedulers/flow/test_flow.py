"""The flow scheduler: nothing is assigned twice, no gang starts in part, and no job starves, on random inputs."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import conformance, registry
from poolwise.conformance.cases import Case
from poolwise.errors import InputError, PolicyError, UnknownNameError
from poolwise.loop import Loop, run_loop
from poolwise.model import Kind, Machine, Wait, Workload
from poolwise.optimize.min_cost_flow import Flow
from poolwise.performance.device_network import DeviceNetwork
from poolwise.platforms.simulated import Simulation
from poolwise.policies.cost.baselines import BestFit
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.flow import Firmament, FlowScheduler, graph
from poolwise.schedulers.greedy import LeastAllocated, LocalFirstRandom
from tests.helpers.gpu_nodes import gpu_nodes

KINDS = ("nw", "hotspot", "backprop", "unknown")
SCHEDULERS = (
    FlowScheduler(),
    FlowScheduler(settings={"network_aware": True}),
    FlowScheduler(local_first=False, settings={"max_placed": True}),
    FlowScheduler(local_first=False, settings={"network_aware": True}, every_s=7.0),
    FlowScheduler(aggregated=False, admission="filter", patience_s=20.0),
    FlowScheduler(solver="kept", settings={"network_aware": True}),
    FlowScheduler(costs="octopus", admission="filter", patience_s=20.0),
    FlowScheduler(costs="quincy", patience_s=0.0),
    Firmament(),
    Firmament(costs="octopus", admission="filter", patience_s=20.0),
    LeastAllocated(),
    LocalFirstRandom(),
)


@st.composite
def machines(draw) -> Machine:
    gpus = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    return gpu_nodes(gpus, cores=draw(st.integers(2, 8)), rack_gpus=draw(st.integers(0 if sum(gpus) else 1, 2)))


@st.composite
def workloads(draw) -> Workload:
    n = draw(st.integers(1, 10))

    def column(low: int, high: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))

    return Workload.of(
        column(0, 30) * SECOND,
        column(1, 30) * SECOND,
        tasks=column(1, 3),
        requests={"cores": column(0, 4), "memory": column(0, 20), "gpu": column(0, 3), "bandwidth": column(0, 900)},
        attributes={"kind": np.array([KINDS[k] for k in column(0, 3).tolist()])},
    )


def simulate(workload, machine, scheduler):
    simulation = Simulation(workload, machine, DeviceNetwork())
    loop = run_loop(simulation, scheduler, 1)
    return simulation.recorder.schedule(workload, machine, loop), loop


def can_ever_run(workload: Workload, machine: Machine, job: int, pooled: bool) -> bool:
    """Return whether the idle machine holds all tasks of a job, by counting."""
    cores, memory, gpu = (int(workload.request(name)[job]) for name in ("cores", "memory", "gpu"))
    tasks, places = int(workload.tasks[job]), 0
    for node in machine.of_kind(Kind.NODE).tolist():
        room = [tasks]
        room += [int(machine.capacity[node, 0]) // cores] if cores else []
        room += [int(machine.capacity[node, 1]) // memory] if memory else []
        room += [int((machine.home == node).sum()) // gpu] if gpu and not pooled else []
        places += min(room)
    return places >= tasks and gpu * tasks <= len(machine.of_kind(Kind.DEVICE))


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=str)
@given(machine=machines(), workload=workloads())
@settings(max_examples=8)
def test_each_job_starts_whole_with_its_request_or_is_infeasible(scheduler, machine, workload):
    schedule, loop = simulate(workload, machine, scheduler)
    assert not loop.refused  # the platform refuses starts that do not fit and jobs that do not wait
    assert not loop.waiting
    pooled = getattr(scheduler, "pooled", isinstance(scheduler, LocalFirstRandom))
    for job in range(len(workload)):
        assert (job in loop.rejected) != can_ever_run(workload, machine, job, pooled)
    assert sorted([*schedule.job.tolist(), *loop.rejected]) == list(range(len(workload)))
    assert (schedule.tasks == workload.tasks[schedule.job]).all()  # one start with all tasks
    for k, job in enumerate(schedule.job.tolist()):
        rows = schedule.placement_of(k)
        devices = [owner for owner, _, _ in rows if machine.kind[owner] == Kind.DEVICE]
        tasks = int(workload.tasks[job])
        assert len(set(devices)) == len(devices) == tasks * int(workload.request("gpu")[job])
        for column, name in enumerate(("cores", "memory")):
            got = sum(amount for owner, resource, amount in rows if resource == column)
            assert got == tasks * int(workload.request(name)[job])
        if not pooled:
            nodes = {owner for owner, _, _ in rows if machine.kind[owner] == Kind.NODE}
            assert {int(machine.home[device]) for device in devices} <= nodes


def jobs(n, *, submit=None, duration=10, tasks=1, **requests) -> Workload:
    submit = np.zeros(n) if submit is None else np.array(submit) * SECOND
    columns = {name: np.broadcast_to(values, (n,)) for name, values in requests.items()}
    return Workload.of(submit, np.broadcast_to(np.array(duration) * SECOND, (n,)), tasks=tasks, requests=columns)


def test_two_gangs_of_four_on_six_gpus_run_one_after_the_other():
    schedule, _ = simulate(jobs(2, tasks=4, cores=1, gpu=1), gpu_nodes((3, 3)), FlowScheduler(admission="filter"))
    assert schedule.start.tolist() == [0, 10 * SECOND]


def test_older_of_two_gangs_that_fit_only_in_total_starts_whole():
    # 2 x 2 tasks of 3 cores on nodes of 5, 5 and 2 cores: 12 cores are requested and free, but only two tasks fit at a time.
    machine = gpu_nodes((0, 0, 0), cores=5)
    capacity = machine.capacity.copy()
    capacity[2, 0] = 2
    schedule, loop = simulate(jobs(2, tasks=2, cores=3), machine.with_capacity(capacity), FlowScheduler())
    assert schedule.job.tolist() == [0, 1]
    assert schedule.start.tolist() == [0, 10 * SECOND]
    assert not loop.refused


def test_large_gang_waits_at_most_its_patience_among_small_jobs():
    # One small job a second for 150 s, ten at a time on twelve GPUs: without patience eight GPUs are never free together.
    small = jobs(150, submit=range(150), cores=1, gpu=1)
    tasks = np.ones(151, dtype=np.int64)
    tasks[20] = 8
    stream = Workload.of(
        np.concatenate([small.submit[:20], small.submit[20:21], small.submit[20:]]),
        np.full(151, 10 * SECOND),
        tasks=tasks,
        requests={"cores": np.ones(151), "gpu": np.ones(151)},
    )
    gang = int(np.argmax(stream.tasks))
    started = []
    for patience in (1e9, 30.0):
        schedule, _ = simulate(stream, gpu_nodes((6, 6), cores=20), FlowScheduler(admission="filter", patience_s=patience))
        started.append(float(schedule.job_start[gang] - stream.submit[gang]) / SECOND)
    assert started[0] > 100
    assert started[1] <= 30 + 10


def test_answer_that_is_not_optimal_is_never_used(monkeypatch):
    def fails(tail, *rest, **options):
        return Flow("infeasible", np.zeros(len(tail), dtype=np.int64), 0)

    monkeypatch.setattr(graph, "min_cost_flow", fails)
    with pytest.raises(PolicyError, match="infeasible"):
        simulate(jobs(1, cores=1), gpu_nodes(), FlowScheduler())


@pytest.mark.parametrize("name", ["utility", "octopus"])
@given(machine=machines(), workload=workloads())
@settings(max_examples=8)
def test_kept_residual_graph_gives_the_cost_of_a_cold_solver(name, machine, workload):
    """Octopus has a price per copy, that is, arcs that a kept graph cannot distinguish: the cold solver is used there."""
    seen = []
    solve = graph.Graph._flow

    def both(self, solver, kept):
        answer = solve(self, solver, kept)
        seen.append((answer.cost, solve(self, "successive_shortest_path", None).cost))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph.Graph, "_flow", both)
        _, loop = simulate(workload, machine, FlowScheduler(costs=name, solver="kept"))
    assert not loop.waiting
    assert all(warm == cold for warm, cold in seen)


def test_pooled_gpu_is_used_from_a_node_without_one():
    workload = jobs(2, cores=8, gpu=1)
    pooled, _ = simulate(workload, gpu_nodes((2, 0)), FlowScheduler())
    local, _ = simulate(workload, gpu_nodes((2, 0)), Firmament())
    assert pooled.start.tolist() == [0, 0]
    assert local.start.tolist() == [0, 10 * SECOND]


def test_local_first_finds_the_node_with_the_gpu():
    machine, workload = gpu_nodes((0, 0, 0, 1)), jobs(1, cores=1, gpu=1)
    node = {}
    for local_first in (True, False):
        schedule, _ = simulate(workload, machine, FlowScheduler(local_first=local_first))
        node[local_first] = schedule.placement_of(0)[0][0]
    assert node[True] == 3
    assert node[False] == 0  # blind to devices: the first of four equal nodes


def profiled(n, kind, **requests) -> Workload:
    plain = jobs(n, duration=100, **requests)
    return Workload.of(plain.submit, plain.duration, requests=plain.requests, attributes={"kind": np.full(n, kind)})


def test_network_aware_placement_waits_for_an_idle_link():
    # nw meets its goal over an idle link but not over a shared one: each sends 900 of 1000 MB/s. Node 0 has cores, no GPU.
    machine = gpu_nodes((0, 2), cores=4)
    capacity = machine.capacity.copy()
    capacity[1, 0] = 0
    workload = profiled(2, "nw", cores=1, gpu=1, bandwidth=900)
    workload = Workload.of(
        np.array([0, 1]) * SECOND, workload.duration, requests=workload.requests, attributes=workload.attributes
    )
    for aware in (False, True):
        schedule, _ = simulate(workload, machine.with_capacity(capacity), FlowScheduler(settings={"network_aware": aware}))
        assert (int(schedule.start[1]) == SECOND) != aware
    assert schedule.start[1] == schedule.end[0]


def test_unreachable_goal_does_not_keep_a_job_waiting_forever(tmp_path):
    profiles = tmp_path / "p.csv"
    header = (
        "kind,local_s,spread,remote_s,loaded_s,goal_s,importance,link_mb_s,cpu_sensitivity,device_sensitivity,cores,memory_gib"
    )
    profiles.write_text(f"{header},assumed,source\nslow,100,0,200,300,50,1,0,0,0,1,1,,\n")
    scheduler = FlowScheduler(settings={"network_aware": True, "profiles": str(profiles)})
    schedule, loop = simulate(profiled(3, "slow", cores=1, gpu=1, bandwidth=100), gpu_nodes((1, 1)), scheduler)
    assert not loop.waiting
    assert schedule.start.tolist() == [0, 0, 100 * SECOND]  # on the local devices, its cheapest places


def test_rounds_take_place_at_intervals_and_by_default_at_ends():
    workload = jobs(3, submit=[1, 2, 31], duration=8, cores=8)
    schedule, _ = simulate(workload, gpu_nodes((0,)), FlowScheduler(every_s=10.0))
    assert (schedule.start / SECOND).tolist() == [10, 18, 40]
    schedule, _ = simulate(workload, gpu_nodes((0,)), FlowScheduler(every_s=10.0, at_ends=False))
    assert (schedule.start / SECOND).tolist() == [10, 20, 40]


def test_pinned_jobs_run_on_their_nodes():
    plain = jobs(4, cores=8)
    workload = Workload.of(
        plain.submit, plain.duration, requests=plain.requests, attributes={"pinned": np.array([1, 1, 0, -1])}
    )
    schedule, _ = simulate(workload, gpu_nodes((0, 0, 0, 0)), FlowScheduler())
    node = {job: schedule.placement_of(k)[0][0] for k, job in enumerate(schedule.job.tolist())}
    assert node == {0: 1, 1: 1, 2: 0, 3: 2}
    assert schedule.start[schedule.job == 1] == 10 * SECOND


@pytest.mark.parametrize(
    ("requests", "attributes", "field"),
    [({"nodes": 1}, {}, "nodes"), ({"fpga": 1}, {}, "fpga"), ({"cores": 1}, {"pinned": [9]}, "pinned")],
)
def test_missing_resource_is_named(requests, attributes, field):
    plain = jobs(1, **requests)
    columns = {name: np.array(values) for name, values in attributes.items()}
    workload = Workload.of(plain.submit, plain.duration, requests=plain.requests, attributes=columns)
    with pytest.raises(InputError) as error:
        FlowScheduler().check(gpu_nodes(), workload.table)
    assert error.value.field == field


def test_octopus_counts_tasks_instead_of_jobs():
    # A gang of three runs on the first node, two single tasks on each of the others; then two more arrive.
    workload = Workload.of(
        np.array([0, 0, 0, 0, 0, 1, 1]) * SECOND,
        np.full(7, 100 * SECOND),
        tasks=np.array([3, 1, 1, 1, 1, 1, 1]),
        requests={"cores": np.ones(7)},
        attributes={"pinned": np.array([0, 1, 1, 2, 2, -1, -1])},
    )
    schedule, _ = simulate(workload, gpu_nodes((0, 0, 0)), FlowScheduler(costs="octopus"))
    assert sorted(schedule.placement_of(k)[0][0] for k in np.flatnonzero(schedule.start == SECOND).tolist()) == [1, 2]


def test_unknown_kinds_and_cost_models_are_named():
    with pytest.raises(UnknownNameError, match="nvme"):
        FlowScheduler(kinds=("nvme",)).open(gpu_nodes(), 0)
    with pytest.raises(UnknownNameError, match="utility"):
        FlowScheduler(costs="utlity").open(gpu_nodes(), 0)
    with pytest.raises(InputError, match="slack"):
        FlowScheduler(settings={"slak": 1}).open(gpu_nodes(), 0)


@pytest.mark.parametrize("name", ["flow", "firmament", "least_allocated", "local_first_random"])
def test_registered_schedulers_fulfill_their_contract_with_gangs_and_gpus(name):
    n = 24
    rows = np.arange(n)
    workload = Workload.of(
        rows // 3 * SECOND,
        (5 + rows % 7) * SECOND,
        tasks=1 + rows % 3,
        requests={"cores": 1 + rows % 3, "gpu": rows % 3, "bandwidth": np.full(n, 300)},
        attributes={"kind": np.array([KINDS[k % 4] for k in rows])},
    )
    case = Case(workload, gpu_nodes((2, 1, 0), rack_gpus=2), model=DeviceNetwork())
    assert [str(result) for result in conformance.check_scheduler(make("schedulers", name), case) if not result.ok] == []


def test_order_of_phases_is_configurable():
    machine = gpu_nodes((1, 1), rack_gpus=1)
    types = tuple("nvme" if k == 4 else t for k, t in enumerate(machine.type))
    both = replace(machine, type=types)
    for kinds in itertools.permutations(("gpu", "nvme")):
        schedule, _ = simulate(jobs(2, cores=1, gpu=1, nvme=np.array([1, 0])), both, FlowScheduler(kinds=kinds))
        assert schedule.start.tolist() == [0, 0]


@dataclass(frozen=True)
class RejectsLargeMemory(BestFit):
    """User-defined cost model for which tasks with more than 1 MiB are hopeless."""

    def hopeless(self, tasks):
        return tasks.demand[:, tasks.resources.index("memory")] > 1


@pytest.mark.parametrize(("costs", "memory", "hopeless"), [("gloomy", 2, True), ("gloomy", 1, False), ("best_fit", 2, False)])
def test_cost_model_declares_hopeless_tasks(costs, memory, hopeless, monkeypatch):
    """The last job finds two free cores, but neither of the two nodes has both."""
    find = registry.find
    monkeypatch.setattr(registry, "find", lambda group, name: RejectsLargeMemory if name == "gloomy" else find(group, name))
    zero = np.zeros(3, dtype=np.int64)
    asks = {"cores": np.array([3, 3, 2]), "memory": np.array([1, 1, memory]), "gpu": zero, "bandwidth": zero}
    jobs, machine = Workload.of(zero, zero + 9 * SECOND, requests=asks), gpu_nodes([1, 1], cores=4)
    simulation = Simulation(jobs, machine, DeviceNetwork())
    loop, reasons = Loop(simulation, FlowScheduler(costs=costs)), []
    for batch in simulation.events():
        outcome = loop.step(batch)
        reasons.extend(decision.refusal.reason for decision in outcome.committed if isinstance(decision, Wait))
    assert reasons and ["even on the idle machine" in reason for reason in reasons] == [hopeless] * len(reasons)
