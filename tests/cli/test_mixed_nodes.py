"""A rack of thin and a rack of fat nodes, from files: every command uses the nodes by their own sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poolwise.cli.app import _discover, run
from poolwise.files.machine import load_machine

MACHINE = """
version = 1
name = "thin and fat"
[[node]]
name = "thin"
memory = "186 GiB"
cores = 64
[[node]]
name = "fat"
memory = "1500 GiB"
cores = 64
[[rack]]
count = 1
nodes = { thin = 4 }
[[rack]]
count = 1
nodes = { fat = 4 }
"""
STUDY = """
version = 1
title = "Thin and fat nodes"
machine = "machine.toml"
[workload]
trace = "log.csv"
[scheduler]
order = "fcfs"
backfill = "easy"
[measure]
warm_up = 0
"""
PLAN = """
[plan]
kind = "pools"
[[plan.size]]
key = "machine.node.fat.memory"
values = ["400 GiB", "600 GiB", "1500 GiB"]
price = "4 $/GiB"
[[plan.size]]
key = "machine.node.thin.memory"
values = ["93 GiB", "186 GiB"]
price = "2 $/GiB"
[[plan.target]]
metric = "mean_bounded_slowdown"
at_most = 1.5
[plan.certainty]
over = "nothing"
min = 1
"""
STATE = """
version = 1
origin = "2026-11-22T08:00:00Z"
now = "2026-11-22T18:00:00Z"
source = "a test"
scheduler = "catalog:fm-easy"
running = 2
waiting = 2
"""
COLUMNS = "id,submit_ns,requested_ns,tasks,nodes,memory_mib"


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    _discover()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write forty jobs, one each hour: in turn four nodes of 90 GiB and two of 500 GiB, side by side."""
    rows = [f"{k},{3600 * k},1800,{4 - 2 * (k % 2)},{(90, 500)[k % 2] * 1024}" for k in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(["id,submit,duration,nodes,memory_mib", *rows]) + "\n")
    for name, text in (("machine", MACHINE), ("study", STUDY), ("plan", STUDY + PLAN)):
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


@pytest.mark.long
def test_simulate_and_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(folder / "log.csv"), "--machine", str(folder / "machine.toml"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["jobs"], content["rejected"], content["engine"], content["mean_wait_s"]) == (40, {}, "compiled", 0)
    assert run(["run", str(folder / "study.toml"), "--out", str(folder / "out"), "--jobs", "1"]) == 0
    page = (folder / "out" / "report.html").read_text()
    assert "186 GiB to 1.46484 TiB" in page and "8 nodes with 186 GiB each" not in page


def test_plan_pays_for_each_type_of_node(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(folder / "plan.toml"), "--out", str(folder / "out"), "--jobs", "1", "--json"]) == 0
    headline = json.loads(capsys.readouterr().out)["headline"]
    assert "600 GiB of memory in each fat node and 93 GiB of memory in each thin node" in headline
    assert f"{4 * 600 * 4 + 4 * 93 * 2:,} $" in headline


def test_forecast(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = load_machine(folder / "machine.toml")
    thin, fat = (machine.owners[owner] for owner in machine.racks.nodes.tolist())
    (folder / "state.toml").write_text(STATE)
    (folder / "running.csv").write_text(
        f"{COLUMNS},start_ns,placement\n"
        f"11,3600000000000,86400000000000,1,3,65536,7200000000000,{thin}:nodes=3\n"
        f"12,10800000000000,28800000000000,1,3,512000,14400000000000,{fat}:nodes=3\n"
    )
    (folder / "waiting.csv").write_text(
        f"{COLUMNS}\n13,18000000000000,14400000000000,1,2,512000\n14,25200000000000,28800000000000,1,1,65536\n"
    )
    assert run(["forecast", "state", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "job 14 starts at 2026-11-22 18:00 +0000" in out
    assert "job 13 " in out and "2026-11-22 20:00 +0000" in out  # 13 waits for the fat nodes of 12
