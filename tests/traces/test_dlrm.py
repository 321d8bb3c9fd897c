"""Tests of the disaggregated DLRM trace: all rows read or counted, roles separated, errors with their cells."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from poolwise import catalog
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.model import Kind, Machine, Workload
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.placement.devices.shares import DeviceShares
from poolwise.quantities import SECOND
from poolwise.schedulers.flow import FlowScheduler
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import read
from poolwise.traces.dlrm import DLRM
from tests.helpers.dlrm_rows import CN, HN, REAL, synthetic_trace, table
from tests.helpers.shared_nodes import shared_nodes


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine(catalog.find("machines", "dlrm-roles"))


@pytest.fixture(scope="module", params=["synthetic", *REAL], ids=["synthetic", *("real" for _ in REAL)])
def trace(request, tmp_path_factory) -> Path:
    return synthetic_trace(tmp_path_factory.mktemp("trace")) if request.param == "synthetic" else request.param


@pytest.fixture(scope="module")
def real(machine) -> list[Workload]:
    return [read(path, machine) for path in REAL]


@pytest.fixture(scope="module")
def workload(trace, machine) -> Workload:
    return read(trace, machine)


def rows_of(trace: Path) -> dict[int, dict[str, str]]:
    with gzip.open(trace, "rt") if trace.suffix == ".gz" else trace.open() as file:
        return {int(row["instance_sn"].rpartition("_")[2]): row for row in csv.DictReader(file)}


def test_every_instance_is_read_or_counted(trace, workload):
    rows = rows_of(trace)
    counts = [len(rows), workload.excluded["runtime 0"], *workload.repaired.values()]
    if trace in REAL:
        assert counts == [23871, 16, 23855, 7280, 8878]
    assert len(workload) == counts[0] - counts[1] == counts[2] and counts[1] > 0
    ran = [rows[number] for number in workload.id.tolist()]
    assert workload.repaired == {
        "requested time unknown, set to the runtime": len(workload),
        "created before the trace, submitted when it begins": sum(not row["creation_time"] for row in ran),
        "running at the end of the trace, assumed to end then": sum(not row["deletion_time"] for row in ran),
    }
    last = max(float(row[f"{what}_time"] or 0) for row in rows.values() for what in ("creation", "scheduled", "deletion"))
    for job, row in ((workload.job(k), rows[number]) for k, number in enumerate(workload.id.tolist())):
        created, began = (float(row[f"{what}_time"] or 0) for what in ("creation", "scheduled"))
        assert job.submit == round(created) * SECOND
        assert job.duration == (round(float(row["deletion_time"] or last)) - round(began)) * SECOND
        assert (job.request("cn"), job.request("hn")) == (row["role"] == "CN", row["role"] == "HN")
        for name, column in (("cores", "cpu"), ("gpu", "gpu"), ("rdma", "rdma")):
            assert job.request(name) == int(row[f"{column}_request"])
        assert 0 <= job.memory - 1024 * float(row["memory_request"]) < 1
        assert 0 <= job.request("storage") - 1024 * float(row["disk_request"]) < 1


def test_assumed_nodes_fit_every_instance_and_the_peak(workload, machine):
    nodes = machine.of_kind(Kind.NODE)
    for role in ("cn", "hn"):
        mine = nodes[machine.capacity[nodes, machine.resource(role)] > 0]
        asks = workload.request(role) > 0
        for name in ("cores", "memory", "storage", "rdma"):
            each = machine.capacity[mine, machine.resource(name)]
            assert workload.request(name)[asks].max() <= each.min()
            change = np.concatenate([workload.request(name)[asks], -workload.request(name)[asks]])
            times = np.concatenate([workload.submit[asks], (workload.submit + workload.duration)[asks]])
            assert np.cumsum(change[np.lexsort((change, times))]).max() < each.sum()


@pytest.mark.parametrize(
    ("role", "resource", "most", "busiest"),
    [
        ("cn", "cores", 192, 393_328),
        ("cn", "memory", 1_024_000, 2_043_320_320),
        ("cn", "storage", 1_019_904, 2_312_854_528),
        ("cn", "rdma", 100, 71_148),
        ("hn", "cores", 24, 28_978),
        ("hn", "memory", 409_600, 165_957_632),
        ("hn", "storage", 696_320, 658_918_400),
        ("hn", "rdma", 75, 94_723),
    ],
)
def test_assumed_nodes_fit_the_real_trace(machine, real, role, resource, most, busiest):
    """Compare with the largest instance and the peak of the real trace (cores, MiB, percent of a card), counted once."""
    nodes = machine.of_kind(Kind.NODE)
    mine = nodes[machine.capacity[nodes, machine.resource(role)] > 0]
    each = machine.capacity[mine, machine.resource(resource)]
    assert most <= each.min() and busiest < each.sum()
    for workload in real:
        asks = workload.request(role) > 0
        change = np.concatenate([workload.request(resource)[asks], -workload.request(resource)[asks]])
        times = np.concatenate([workload.submit[asks], (workload.submit + workload.duration)[asks]])
        assert (most, busiest) == (workload.request(resource)[asks].max(), np.cumsum(change[np.lexsort((change, times))]).max())


def test_missing_times_become_begin_and_end_of_trace(tmp_path, machine):
    rows = [CN.format(3, 0, ",,"), HN.format(7, 1, "475.00000000000006,480.5,900"), CN.format(5, 0, "10,10,10")]
    workload = read(table(tmp_path, *rows), machine)
    assert workload.id.tolist() == [3, 7]
    assert workload.submit.tolist() == [0, 475 * SECOND]
    assert workload.duration.tolist() == [900 * SECOND, 419 * SECOND + SECOND // 2]
    assert workload.attributes["wait_s"].tolist() == [0, 5.5]
    assert workload.excluded == {"runtime 0": 1}
    assert workload.request("storage").tolist() == [261632, 87040]
    assert (workload.attributes["app"].tolist(), workload.attributes["max_per_node"].tolist()) == (["app_0", "app_1"], [-1, 4])


def test_missing_resources_are_ignored_and_counted(tmp_path):
    workload = read(table(tmp_path, CN.format(1, 0, ",,9"), HN.format(2, 1, ",,9")), shared_nodes(cores=64, memory=2**20))
    assert sorted(workload.requests) == ["cores", "memory"]
    left = {reason: count for reason, count in workload.repaired.items() if "ignored" in reason}
    assert left == {
        f"{name} ignored, because the machine has none": count
        for name, count in (("cn", 1), ("hn", 1), ("gpu", 1), ("rdma", 2), ("storage", 2))
    }
    with pytest.raises(InputError, match="allocates whole nodes"):
        DLRM().read(table(tmp_path, CN.format(1, 0, ",,9")), Machine.of_racks(1, 4))
    with pytest.raises(InputError, match="neither cores nor gpu"):
        DLRM().read(table(tmp_path, CN.format(1, 0, ",,9")), shared_nodes(memory=9))


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        (CN.format("x", 0, ",,9"), "instance_sn", "does not end in a number"),
        (CN.format(1, 0, ",,9"), "instance_sn", "is already in line 2"),
        (CN.format(2, 0, ",,9").replace("CN", "GN"), "role", "is not a role"),
        (CN.format(2, 0, ",,9").replace("64,64", "-4,64"), "cpu_request", "is not a valid amount"),
        (CN.format(2, 0, ",,9").replace("64,64", ",64"), "cpu_request", "is not a valid amount"),
        (CN.format(2, 0, "5,,9"), "scheduled_time", "if and only if creation_time is"),
        (CN.format(2, 0, "5,4,9"), "scheduled_time", "before the creation"),
        (CN.format(2, 0, "5,6,4"), "deletion_time", "before the instance was scheduled"),
        (CN.format(2, 0, "5,6,soon"), "deletion_time", "not a finite number"),
        (CN.format(2, 0, "-5,6,9"), "creation_time", "not a time"),
    ],
    ids=str,
)
def test_unreadable_cell_is_reported_with_line_and_field(tmp_path, machine, row, field, message):
    path = table(tmp_path, CN.format(1, 0, ",,9"), row)
    with pytest.raises(InputError, match=message) as caught:
        DLRM().read(path, machine)
    error = caught.value
    assert (error.file, error.line, error.field, bool(error.remedy)) == (path, 3, field, True)


@pytest.mark.parametrize(
    "scheduler",
    [
        FlowScheduler(costs="best_fit", pooled=False, admission="filter"),
        ListScheduler(backfill=Skip(), placement=DeviceShares(resource="gpu")),
    ],
    ids=["flow", "list"],
)
def test_roles_are_placed_on_separate_nodes(tmp_path, scheduler):
    rows = [(CN, HN)[k % 2].format(k, k % 3, f"{k},{k},{60 + 7 * k}") for k in range(24)]
    machine = _two_roles()
    schedule = simulate(read(table(tmp_path, *rows), machine), machine, scheduler).schedule
    assert schedule.done.all() and not schedule.rejected and not schedule.refused
    for run in range(schedule.n_run):
        placed = schedule.placement_of(run)
        nodes = [machine.type[owner] for owner, _, _ in placed if machine.kind[owner] == Kind.NODE]
        devices = [owner for owner, _, _ in placed if machine.kind[owner] == Kind.DEVICE]
        role = schedule.workload.attributes["role"][schedule.job[run]]
        assert set(nodes) == {role.lower()} and len(devices) == (role == "HN")


def _two_roles() -> Machine:
    """Return a machine of two CPU nodes for three instances each and two GPU nodes with two GPUs each."""
    resources = ("cn", "cores", "devices", "gpu", "hn", "memory", "rdma", "storage")
    rows = [dict(cn=9, cores=192, rdma=100)] * 2 + [dict(hn=9, cores=64, rdma=100)] * 2 + [dict(devices=1, gpu=1)] * 4
    capacity = np.array([[row.get(name, 0) for name in resources] for row in rows], dtype=np.int64)
    capacity[:4, resources.index("memory")] = capacity[:4, resources.index("storage")] = 2**20
    return Machine(
        name="roles",
        owners=tuple("abcdefgh"),
        kind=np.repeat([Kind.NODE, Kind.DEVICE], 4).astype(np.int64),
        type=("cn", "cn", "hn", "hn", *["gpu"] * 4),
        rack=np.zeros(8, dtype=np.int64),
        position=np.zeros((8, 2), dtype=np.int64),
        home=np.array([-1, -1, -1, -1, 2, 2, 3, 3]),
        resources=resources,
        capacity=capacity,
    )


def test_samples_partition_the_trace(tmp_path, machine):
    path = table(tmp_path, *(HN.format(k, k % 3, f"{k},{k},{100 + k}") for k in range(20)))
    parts = [read(path, machine, format="dlrm", every=3, seed=seed) for seed in (0, 1, 5)]
    assert sorted(np.concatenate([part.id for part in parts]).tolist()) == list(range(20))
    for part in parts:
        assert part.excluded == {"not in the sample of one in 3": 20 - len(part)}
        assert part.repaired["requested time unknown, set to the runtime"] == len(part)
    with pytest.raises(InputError, match="every is 0") as caught:
        read(path, machine, format="dlrm", every=0)
    assert caught.value.field == "every"


def test_whole_instances_request_no_role(tmp_path, machine):
    rows = (HN.format(1, 0, "0,0,100"), CN.format(2, 0, "0,0,50"), CN.format(3, 1, "0,0,50"))
    workload = read(table(tmp_path, *rows), machine, format="dlrm", whole=True)
    assert workload.id.tolist() == [1, 3]
    assert workload.request("cores").tolist() == [8 + 32, 64]
    assert workload.request("gpu").tolist() == [1, 0]
    assert workload.memory.tolist() == [(40 + 160) * 1024, 320 * 1024]
    assert workload.request("storage").tolist() == [85 * 1024 + 255 * 512 + 256, 255 * 1024 + 512]
    assert {"rdma", "cn", "hn"}.isdisjoint(workload.requests)
    assert workload.attributes["kind"].tolist() == ["hn", "cn"]
    assert workload.excluded == {"CPU instance merged into the GPU instances of its application": 1}


def test_whole_instances_preserve_resource_time(trace, machine):
    apart = read(trace, machine)
    whole = read(trace, machine, format="dlrm", whole=True, most_cores=96)
    assert len(whole) + sum(whole.excluded.values()) == len(apart) + sum(apart.excluded.values())
    assert whole.request("gpu").sum() == apart.request("gpu").sum()
    for name in ("cores", "memory", "storage"):
        held, holds = ((w.request(name) * (w.duration / SECOND)).sum() for w in (apart, whole))
        assert 1 <= holds / held < 1.005
    assert whole.request("cores")[whole.request("gpu") > 0].max() == 96
