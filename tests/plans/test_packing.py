"""Packing plans: hand-computed examples, granted plus idle equals installed, and the shipped cluster."""

import csv
import gzip
import hashlib
import json
from collections import Counter
from html import unescape

import numpy as np
import pytest

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.model import Kind, Workload
from poolwise.plans import packing_task, plan
from poolwise.plans.packing_task import draw_jobs, pack
from poolwise.quantities import SECOND
from poolwise.report.page import write_report
from tests.helpers.data import DATA

MACHINE = """\
version = 1

[[node]]
name = "rich"
allocation = "shared"
memory = "64 GiB"
resources = { cpu_milli = 4000 }

[[node]]
name = "poor"
allocation = "shared"
memory = "64 GiB"
resources = { cpu_milli = 16000 }

[[rack]]
nodes = { rich = 1, poor = 1 }

[[device]]
name = "gpu"
type = "T4"
count = 4
at = "rich"
resources = { gpu_milli = 1000 }

[[device]]
name = "other"
type = "V100"
at = "poor"
resources = { gpu_milli = 1000 }
"""
PLAN = """\
version = 1
title = "two unlike nodes"
machine = "machine.toml"

[workload]
trace = "pods.csv"

[scheduler]
backfill = "skip"
placement = { name = "device_shares", pooled = false }

[plan]
kind = "packing"
load = 2.0

[vary]
"scheduler.placement.pooled" = [false, true]

[seeds]
values = [0, 1]
"""
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "machine.toml").write_text(MACHINE)
    (tmp_path / "pods.csv").write_text(f"{HEADER}\npod-1,4000,1024,1,1000,T4,LS,Running,0,9,0\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_two_unlike_nodes_match_a_hand_computation(file, tmp_path):
    """Ten pods need 4 CPUs and a T4; the node with T4s has CPUs for one, and pooling adds the CPUs of the other node."""
    done = plan.plan(plan.load_plan(file), tmp_path / "out", 1)
    local, pooled = done.answer.content["candidates"]
    assert [case["case"] for case in (local, pooled)] == ["not pooled", "pooled"]
    assert (local["jobs"], local["fit"], pooled["fit"]) == (10, 1, 4)
    assert (local["away"], pooled["away"]) == (0, 3)
    assert local["types"] == {
        "T4": {"installed": 4, "idle": 3, "whole": 3, "stranded": 3},
        "V100": {"installed": 1, "idle": 1, "whole": 1, "stranded": 0},  # no waiting pod accepts it
    }
    assert pooled["types"]["T4"] == {"installed": 4, "idle": 0, "whole": 0, "stranded": 0}
    assert done.answer.headline == (
        '4 of 10 jobs fit with "pooled": 3 more (300.0 %) than with "not pooled"; 0 instead of 3 GPUs are stranded.'
    )
    assert done.answer.candidates["verdict"].to_list() == ["fits most", ""]
    write_report(done.answer, tmp_path / "out" / "report.html")
    page = (tmp_path / "out" / "report.html").read_text()
    assert done.answer.headline in unescape(page) and page.count("<figure data-chart") == 2


@pytest.mark.parametrize(
    ("attribute", "values"), [("exclusive", [1, 0]), ("predecessors", ["", "1"])], ids=["exclusive", "predecessors"]
)
def test_jobs_that_a_packing_does_not_model_are_refused(file, attribute, values, monkeypatch):
    requests = {"cpu_milli": np.full(2, 1000), "gpu_milli": np.full(2, 1000)}
    load = Workload.of(np.zeros(2), np.full(2, SECOND), requests=requests, attributes={attribute: values})
    monkeypatch.setattr(packing_task, "workload_of", lambda cell: load)
    with pytest.raises(InputError, match=f"does not support the attribute {attribute}"):
        pack(plan.load_plan(file).problem.cells[0], "gpu_milli", 1.5)


def test_granted_plus_idle_equals_installed(file, tmp_path):
    rows = [
        f"pod-{k},{500 + 500 * (k % 5)},{700 * k},{min(k % 3, 1)},{137 * (k % 7) + 50},,LS,Running,0,9,0" for k in range(1, 40)
    ]
    (tmp_path / "pods.csv").write_text("\n".join([HEADER, *rows, "pod-40,9000,1,2,1000,,LS,Running,0,9,0"]) + "\n")
    for cell in plan.load_plan(file).problem.cells:
        packed = pack(cell, "gpu_milli", 1.5)
        idle = sum(kind["idle"] for kind in packed["types"].values())
        assert packed["granted"] + idle == pytest.approx(5)
        assert packed["curve"][-1] == pytest.approx([packed["asked"] / 5, packed["granted"] / 5])
        assert 0 < packed["device_fit"] < packed["device_jobs"] < packed["jobs"]
        assert packed["fit"] - packed["device_fit"] <= packed["jobs"] - packed["device_jobs"]


def test_packing_answer_is_reproducible_and_cached(file, tmp_path, monkeypatch):
    first = plan.plan(plan.load_plan(file), tmp_path / "a", 1)
    others = plan.plan(plan.load_plan(file), tmp_path / "b", 1)
    monkeypatch.setattr("poolwise.plans.packing_task.pack", lambda *_: pytest.fail("packed again"))
    again = plan.plan(plan.load_plan(file), tmp_path / "a", 1)
    written = [(tmp_path / name / "plan.json").read_bytes() for name in "ab"]
    assert written[0] == written[1] and first.to_dict() == others.to_dict() == again.to_dict()
    assert json.loads(written[0])["status"] == "decided"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("load = 2.0", "load = 0.0", "greater than 0"),
        ("load = 2.0", 'resource = "fpga"', "unknown resource of devices 'fpga'"),
        ("load = 2.0", "lod = 2.0", "lod"),
        ('trace = "pods.csv"', 'trace = "none.csv"', "no such file"),
    ],
)
def test_invalid_packing_plan_is_rejected(file, old, new, message):
    file.write_text(PLAN.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        plan.load_plan(file)
    assert caught.value.line is not None


def test_drawn_jobs_stop_at_the_load():
    n = 50
    gpu = np.arange(n) % 4 * 250
    workload = Workload.of(np.arange(n), np.full(n, SECOND), requests={"gpu_milli": gpu}, attributes={"row": np.arange(n)})
    for amount in (1, 10_000, 90_000):
        drawn = draw_jobs(workload, "gpu_milli", amount, 3)
        total = drawn.request("gpu_milli")
        assert total[:-1].sum() < amount <= total.sum()
        assert np.array_equal(gpu[drawn.attributes["row"]], total)
        assert np.array_equal(drawn.attributes["row"], draw_jobs(workload, "gpu_milli", amount, 3).attributes["row"])
    assert Counter(drawn.attributes["row"].tolist()).keys() == set(range(n))
    with pytest.raises(InputError, match="no job"):
        draw_jobs(workload, "fpga", 1, 0)


def test_shipped_cluster_matches_the_published_node_list():
    machine = load_machine(catalog.find("machines", "openb"))
    path = DATA / "openb" / "openb_node_list_all_node.csv.gz"
    with gzip.open(path, "rt") as file:
        listed = Counter(
            (int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"]) for row in csv.DictReader(file)
        )
    cpu, memory, gpu = (machine.resource(name) for name in ("cpu_milli", "memory", "gpu_milli"))
    homes: dict[int, list[str]] = {}
    for device in machine.of_kind(Kind.DEVICE).tolist():
        assert machine.capacity[device, gpu] == 1000
        homes.setdefault(int(machine.home[device]), []).append(machine.type[device])
    ours = Counter(
        (int(machine.capacity[node, cpu]), int(machine.capacity[node, memory]), len(gpus), "".join(sorted(set(gpus))))
        for node in machine.of_kind(Kind.NODE).tolist()
        for gpus in [homes.get(node, [])]
    )
    assert ours == listed and sum(listed.values()) == 1523
    assert sum(map(len, homes.values())) == 6212 and len({kind for kinds in homes.values() for kind in kinds}) == 7


def test_shipped_pods_match_the_published_file():
    """The digest is that of Alibaba's compressed openb_pod_list_gpuspec33.csv."""
    shipped = catalog.find("traces", "openb-gpuspec33.csv.gz").read_bytes()
    assert hashlib.sha256(shipped).hexdigest() == "cb072644d4b8d911bb42359810fcb32ee55eaa354eb3f0e8bed9b3e96d5ddeb8"


def test_shipped_plan_is_valid():
    problem = plan.load_plan("openb-gpus").problem
    assert [tuple(cell.parameters.values()) for cell in problem.cells[::3]] == [
        (shared, pooled) for shared in (True, False) for pooled in (False, True)
    ]
