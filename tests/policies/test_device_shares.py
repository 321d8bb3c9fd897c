"""Shares of devices: against an exhaustive placement, packing guarantees, and conformance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.conformance.cases import Case
from poolwise.conformance.policies import check_placement
from poolwise.errors import InputError
from poolwise.model import Changes, Kind, Machine, Placement, Queue, Refusal, Start, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.placement.devices.shares import DeviceShares
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.gpu_nodes import gpu_nodes

WHOLE = 1000
KINDS = ("T4", "P100", "V100")


def cluster(nodes, rack_gpus=0) -> Machine:
    """Shared nodes of (cores, memory, number of GPUs, type), GPUs of the rack last; GPUs are shared in thousandths."""
    gpus = [k for k, node in enumerate(nodes) for _ in range(node[2])]
    capacity = np.zeros((len(nodes) + len(gpus) + rack_gpus, 3), dtype=np.int64)
    capacity[: len(nodes), :2] = [node[:2] for node in nodes]
    capacity[len(nodes) :, 2] = WHOLE
    n = len(capacity)
    return Machine(
        name="shares",
        owners=tuple(f"o{k}" for k in range(n)),
        kind=np.where(np.arange(n) < len(nodes), Kind.NODE, Kind.DEVICE).astype(np.int64),
        type=("node",) * len(nodes) + tuple(KINDS[nodes[k][3]] for k in gpus) + (KINDS[0],) * rack_gpus,
        rack=np.zeros(n, dtype=np.int64),
        position=np.zeros((n, 2), dtype=np.int64),
        home=np.array([-1] * len(nodes) + gpus + [-1] * rack_gpus, dtype=np.int64),
        resources=("cores", "memory", "gpu_milli"),
        capacity=capacity,
    )


def pods(rows, tasks=1) -> Workload:
    """(cores, memory, GPUs, thousandths of each, accepted types) each, all at once."""
    zeros = np.zeros(len(rows), dtype=np.int64)
    cores, memory, count, each, spec = zip(*rows, strict=True)
    return Workload.of(
        zeros,
        zeros + SECOND,
        tasks=tasks,
        requests={"cores": cores, "memory": memory, "gpu_milli": np.array(count) * np.array(each)},
        attributes={"gpus": np.array(count), "gpu_spec": np.array(["|".join(s) for s in spec])},
    )


def test_requests_for_shares_need_devices_with_the_resource() -> None:
    requesting = pods([(1, 1, 1, 500, ())])
    DeviceShares().check(cluster([(4, 4, 1, 0)]), requesting.table)
    with pytest.raises(InputError, match="requests gpu_milli"):
        DeviceShares().check(gpu_nodes(), requesting.table)


def exhaustive(policy, machine, free, row):
    """Return (node, devices, amount) by trying every node and every device, None if nothing fits."""
    cores, memory, count, each, spec = row
    each = WHOLE if count and not policy.shared else each
    nodes = [o for o in range(machine.n_owner) if machine.kind[o] == Kind.NODE]
    devices = [o for o in range(machine.n_owner) if machine.kind[o] == Kind.DEVICE]
    plenty = {kind: sum(machine.type[d] == kind for d in devices) for kind in KINDS}
    most = [max(int(machine.capacity[n, c]) for n in nodes) for c in (0, 1)]
    fit = [d for d in devices if free[d, 2] >= each and (not spec or machine.type[d] in spec)]
    fullest = sorted(fit, key=lambda d: (free[d, 2], -plenty[machine.type[d]], machine.type[d], d))
    room = [n for n in nodes if free[n, 0] >= cores and free[n, 1] >= memory]
    over = {n: (free[n, 0] - cores) / most[0] + (free[n, 1] - memory) / most[1] for n in room}
    idle = {n: sum(free[d, 2] for d in devices if machine.home[d] == n) / WHOLE for n in room}
    here = {n: [d for d in fullest if machine.home[d] == n][:count] for n in room}
    inside = [n for n in room if len(here[n]) == count]
    if not count and room:
        return min(room, key=lambda n: (over[n] + 1000 * idle[n], n)), [], 0
    if count and inside:
        node = min(inside, key=lambda n: (over[n] + idle[n], n))
        return node, here[node], each
    reached = [d for d in fullest if policy.pooled or machine.home[d] == -1]
    if count and room and len(reached) >= count:
        return min(room, key=lambda n: (over[n] + 1000 * idle[n], n)), reached[:count], each
    return None


nodes = st.tuples(st.integers(1, 16), st.integers(1, 16), st.integers(0, 3), st.integers(0, 2))
requested = st.tuples(
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 3),
    st.sampled_from([50, 300, 500, 1000]),
    st.sets(st.sampled_from(KINDS)).map(sorted),
)


@given(st.lists(nodes, min_size=1, max_size=5), st.integers(0, 2), st.lists(requested, min_size=1, max_size=14), st.data())
@settings(max_examples=60)
def test_placement_matches_the_exhaustive_search(machine, rack_gpus, rows, data):
    machine, workload = cluster(machine, rack_gpus), pods(rows)
    policy = DeviceShares(pooled=data.draw(st.booleans()), shared=data.draw(st.booleans()))
    simulation = Simulation(workload, machine, Ideal())
    next(simulation.events())
    snapshot = simulation.snapshot()
    states = []
    for job, row in enumerate(rows):
        states.append(snapshot.free)
        placed, wanted = policy.place(workload.job(job), snapshot), exhaustive(policy, machine, snapshot.free, row)
        prefiltered = policy.prefilter(np.arange(len(rows)), snapshot.free[None], snapshot)
        assert prefiltered.tolist() == [exhaustive(policy, machine, snapshot.free, other) is not None for other in rows]
        each = policy.prefilter(np.array([job]), np.stack(states), snapshot)
        assert each.tolist() == [exhaustive(policy, machine, state, row) is not None for state in states]
        if wanted is None:
            assert isinstance(placed, Refusal)
            continue
        node, devices, each = wanted
        own = [(0, node, column, amount) for column, amount in enumerate(row[:2]) if amount] or [(0, node, 0, 0)]
        assert placed == Placement.of([*own, *((0, device, 2, each) for device in devices)])
        snapshot = snapshot.with_started(job, placed)
        assert snapshot.free.min() >= 0


def packed(workload, machine, policy):
    """Return the starts of one pass; the platform must accept all of them."""
    simulation = Simulation(workload, machine, Ideal())
    next(simulation.events())
    queue = Queue(workload.table)
    for job in range(len(workload)):
        queue.add(job)
    everyone = Changes(arrived=tuple(range(len(workload))))
    dispatcher = ListScheduler(backfill=Skip(), placement=policy).open(machine, 0)
    outcome = simulation.commit(dispatcher.schedule(queue, simulation.snapshot(), everyone))
    assert not outcome.rejected
    return [decision for decision in outcome.committed if isinstance(decision, Start)]


def test_device_serves_several_tasks_up_to_its_capacity():
    machine = cluster([(64, 64, 1, 0)])
    rows = [(1, 1, 1, 300, [])] * 5
    assert len(packed(pods(rows), machine, DeviceShares())) == 3
    assert len(packed(pods(rows), machine, DeviceShares(shared=False))) == 1


def test_pooled_devices_serve_nodes_without_devices():
    machine = cluster([(4, 64, 4, 0), (16, 64, 0, 0)])
    rows = [(4, 1, 1, 1000, [])] * 6
    assert len(packed(pods(rows), machine, DeviceShares())) == 1
    assert len(packed(pods(rows), machine, DeviceShares(pooled=True))) == 4


def test_tasks_without_devices_avoid_nodes_with_devices():
    machine = cluster([(8, 8, 1, 0), (16, 16, 0, 0)])
    (start,) = packed(pods([(8, 8, 0, 0, [])]), machine, DeviceShares())
    assert start.placement.owners() == (1,)


def test_fewest_devices_hold_the_share_if_the_job_gives_no_number():
    machine = cluster([(8, 8, 3, 0)])
    zero = np.zeros(1, dtype=np.int64)
    workload = Workload.of(zero, zero + SECOND, requests={"gpu_milli": zero + 1500})
    (start,) = packed(workload, machine, DeviceShares())
    assert start.placement.amount[start.placement.resource == 2].tolist() == [750, 750]


def test_all_tasks_of_a_job_are_placed_or_none():
    machine = cluster([(2, 8, 1, 0), (2, 8, 1, 0)])
    (start,) = packed(pods([(2, 1, 1, 600, [])], tasks=2), machine, DeviceShares())
    assert start.placement.task.max() == 1 and len(set(start.placement.owner.tolist())) == 4
    assert not packed(pods([(2, 1, 1, 600, [])], tasks=3), machine, DeviceShares(pooled=True))


def test_refusals_state_the_shortage():
    machine = cluster([(4, 4, 1, 0)])
    workload = pods([(5, 1, 0, 0, []), (1, 1, 1, 1000, ["P100"]), (1, 1, 2, 1000, []), (4, 1, 0, 0, [])])
    simulation = Simulation(workload, machine, Ideal())
    refusals = [DeviceShares().place(workload.job(k), simulation.snapshot()) for k in range(3)]
    assert [str(refusal) for refusal in refusals] == [
        "no node has enough cores (cores: needs 5, 4 free)",
        "too few devices of type P100 with 1000 gpu_milli free on a node with room for all else (devices: needs 1, 0 free)",
        "too few devices with 1000 gpu_milli free on a node with room for all else (devices: needs 2, 1 free)",
    ]


def test_request_for_a_missing_resource_is_rejected():
    zero = np.zeros(1, dtype=np.int64)
    workload = Workload.of(zero, zero + SECOND, requests={"fpga": zero + 1})
    machine = cluster([(4, 4, 1, 0)])
    with pytest.raises(InputError, match="job 1 requests fpga") as error:
        ListScheduler(placement=DeviceShares()).check(machine, workload.table)
    assert error.value.field == "fpga"
    with pytest.raises(InputError, match="no shared nodes"):
        racks = Machine.of_racks(1, 2)
        DeviceShares().place(workload.job(0), Simulation(workload, racks, Ideal()).snapshot())


@pytest.mark.parametrize("pooled", [False, True])
def test_policy_passes_the_conformance_checks(pooled):
    rows = np.arange(24)
    duration = (1 + rows % 5) * 60 * SECOND
    workload = Workload.of(
        rows // 3 * 30 * SECOND,
        duration,
        requests={"cores": 1 + rows % 4, "devices": rows % 3},
        attributes={"gpus": rows % 3},
    )
    policy = DeviceShares(pooled, resource="devices")
    case = Case(workload, gpu_nodes((2, 1), cores=8, rack_gpus=1), ListScheduler(backfill=Skip(), placement=policy))
    for check in (*check_placement(policy), *check_placement(policy, case)):
        assert not check.problem, check
