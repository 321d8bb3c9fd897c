import csv
import gzip
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.model import Kind, Machine
from poolwise.quantities import SECOND
from poolwise.traces import read
from poolwise.traces.openb import OpenB
from tests.helpers.data import DATA
from tests.helpers.shared_nodes import shared_nodes

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
SHARED = shared_nodes(cpu_milli=96000, gpu_milli=8000, memory=786432)
FOLDER = DATA / "openb"


def pods(tmp_path, *rows):
    path = Path(tmp_path) / "pods.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("path", "kept", "waiting", "cut"),
    [
        (FOLDER / "openb_pod_list_default.csv.gz", 7255, 897, 34),
        (catalog.find("traces", "openb-gpuspec33.csv.gz"), 7255, 897, 34),
        (FOLDER / "openb_pod_list_gpushare100.csv.gz", 6943, 1209, 25),
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_all_published_pods_are_read_or_counted(path, kept, waiting, cut):
    workload = read(path, SHARED)
    assert (len(workload), workload.excluded) == (kept, {"never scheduled": waiting})
    assert workload.repaired["requested time unknown, set to the runtime"] == kept
    assert workload.repaired["running at the end of the trace, assumed to end then"] == cut
    rows = {}
    with gzip.open(path, "rt") as file:
        rows = {int(row["name"].rpartition("-")[2]): row for row in csv.DictReader(file) if row["scheduled_time"]}
    first = min(int(row["creation_time"]) for row in rows.values())
    for k, number in enumerate(workload.id.tolist()):
        row, job = rows[number], workload.job(k)
        created, began, ended = (int(row[f"{what}_time"]) for what in ("creation", "scheduled", "deletion"))
        assert (job.submit, job.duration) == ((created - first) * SECOND, (ended - began) * SECOND)
        assert job.attribute("wait_s") == began - created
        assert job.request("cpu_milli") == int(row["cpu_milli"])
        assert job.request("gpu_milli") == int(row["num_gpu"]) * int(row["gpu_milli"])
        assert (job.memory, job.tasks) == (int(row["memory_mib"]), 1)
        assert workload.attributes["gpu_spec"][k] == row["gpu_spec"]


@given(st.integers(1, 200_000), st.integers(0, 2**20), st.sampled_from([(0, 0), (1, 220), (1, 1000), (4, 1000)]))
@settings(max_examples=60, deadline=None)
def test_requests_use_resources_of_machine(cpu, memory, gpu):
    count, each = gpu
    with tempfile.TemporaryDirectory() as folder:
        path = pods(folder, f"pod-1,{cpu},{memory},{count},{each},,BE,Running,5,20,10")
        whole = OpenB().read(path, Machine.of_racks(1, 4, cores=16))
        shared = OpenB().read(path, shared_nodes(cores=64, gpu=8, memory=1))
    assert whole.nodes.tolist() == [math.ceil(cpu / 16000)]
    assert whole.memory.tolist() == [pytest.approx(math.ceil(memory * min(1, 16000 / cpu) - 1e-6))]
    assert ("GPUs ignored, because the machine's nodes have none" in whole.repaired) == (count > 0)
    assert shared.request("cores").tolist() == [math.ceil(cpu / 1000)]
    assert shared.request("gpu").tolist() == [count]


@pytest.mark.parametrize(("resource", "amounts"), [("gpu_milli", [220, 4000]), ("gpu", [1, 4])])
def test_gpus_may_be_devices_of_nodes(tmp_path, resource, amounts):
    nodes = shared_nodes(cores=64, memory=1, **{resource: 1})
    rows = ["pod-1,1000,0,1,220,T4,BE,Running,5,20,10", "pod-2,1000,0,4,1000,,BE,Running,6,20,10"]
    for machine in (
        replace(nodes, kind=np.array([Kind.NODE, Kind.DEVICE]), capacity=np.array([[64, 1, 0], [0, 0, 1000]])),
        replace(nodes, kind=np.array([Kind.NODE, Kind.DEVICE]), type=("n", resource), capacity=nodes.capacity * [1, 1, 0]),
    ):
        workload = OpenB().read(pods(tmp_path, *rows), machine)
        assert workload.request(resource).tolist() == amounts
        assert workload.attributes["gpus"].tolist() == [1, 4]
        assert workload.attributes["gpu_spec"].tolist() == ["T4", ""]


def test_pods_without_runtime_are_excluded(tmp_path):
    rows = ["p1,1000,1,0,0,,BE,Failed,5,9,9", "p2,1000,0,0,0,,BE,Pending,5,9,", "p3,1000,0,0,0,,BE,Running,7,9,8"]
    workload = read(pods(tmp_path, *rows), SHARED)
    assert workload.id.tolist() == [3]
    assert workload.submit.tolist() == [0]
    assert workload.excluded == {"never scheduled": 1, "runtime unknown or 0": 1}
    assert workload.repaired["memory of 0, kept as zero"] == 1
    assert np.array_equal(workload.attributes["memory_known"], [0])
    with pytest.raises(InputError, match="no usable rows"):
        read(pods(tmp_path, *rows[:2]), SHARED)


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("pod,1000,1,0,0,,BE,Failed,5,9,6", "name", "does not end in a number"),
        ("pod-1,1000,1,0,0,,BE,Failed,5,9,6", "name", "is already in line 2"),
        ("p2,many,1,0,0,,BE,Failed,5,9,6", "cpu_milli", "not a whole number"),
        ("p2,1000,,0,0,,BE,Failed,5,9,6", "memory_mib", "empty cell"),
        ("p2,1000,1,-1,0,,BE,Failed,5,9,6", "num_gpu", "not between 0"),
        ("p2,1000,1,1,1500,,BE,Failed,5,9,6", "gpu_milli", "not between 0"),
        ("p2,1000,1,1,0,,BE,Failed,5,9,6", "gpu_milli", "share of its GPUs"),
        ("p2,1000,1,0,0,,BE,Failed,-5,9,6", "creation_time", "not a time"),
        ("p2,1000,1,0,0,,BE,Failed,5,soon,6", "deletion_time", "not a finite number"),
        ("p2,1000,1,0,0,,BE,Failed,5,9.5,6", "deletion_time", "whole number of seconds"),
        ("p2,1000,1,0,0,,BE,Failed,5,9,4", "scheduled_time", "before the creation"),
        ("p2,1000,1,0,0,,BE,Failed,5,6,9", "deletion_time", "before the pod was scheduled"),
        ("p2,1000,1", None, "3 cells, the header 11"),
    ],
    ids=str,
)
def test_unreadable_cell_is_reported_with_line_and_field(tmp_path, row, field, message):
    path = pods(tmp_path, "pod-1,1000,1,0,0,,BE,Running,5,9,6", row)
    with pytest.raises(InputError, match=message) as caught:
        OpenB().read(path, SHARED)
    error = caught.value
    assert (error.file, error.line, error.field, bool(error.remedy)) == (path, 3, field, True)


def test_missing_columns_are_reported(tmp_path):
    path = tmp_path / "pods.csv"
    path.write_text("cpu_milli,gpu_milli,creation_time\n1,2,3\n")
    with pytest.raises(InputError, match="lacks name, memory_mib") as caught:
        read(path, SHARED)
    assert (caught.value.line, caught.value.field) == (1, "name")


def test_node_list_is_not_recognized_as_pods():
    assert not OpenB().recognizes(FOLDER / "openb_node_list_all_node.csv.gz")
