"""`simulate --timeline`, and `explain run` of a simulated schedule, for every system."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from poolwise.cli import app as cli
from poolwise.cli.saved_run import choose
from poolwise.errors import InputError
from poolwise.runner import Store
from poolwise.studies import load, run
from tests.helpers.vinesim_files import FILES, words

pytestmark = pytest.mark.long

SHARED = """version = 1
[[node]]
name = "node"
allocation = "shared"
cores = 16
memory = "1000 MiB"
attributes = { frequency = 2.0 }
[[rack]]
nodes = { node = 2 }
[[pool]]
name = "memory"
per = "machine"
memory = "500 MiB"
"""
SYSTEMS = {  # machine, scheduler, options, columns and a row of the trace, tracks of the timeline, what may be short
    "nvme": (
        "nvme-pooled",
        'kind = "composition"',
        ["--table", "smufin=catalog:nvme-smufin.csv"],
        "request.cores,request.bandwidth,request.storage,peak_bandwidth,text.kind,deadline",
        "6,1800,43,6000,smufin,9000000000000",
        {"nodes", "devices"},
        {"cores", "bandwidth", "storage"},
    ),
    "flow": (
        "gpu-4",
        'kind = "flow"',
        [],
        "request.cores,request.gpu,request.bandwidth,text.kind",
        "40,3,100,nw",
        {"nodes", "devices", "links"},
        {"gpu", "cores"},
    ),
    "greedy": (
        "gpu-4",
        'kind = "least_allocated"',
        [],
        "request.cores,request.gpu",
        "40,3",
        {"nodes", "devices", "links"},
        {"gpu", "cores"},
    ),
    "batch": (
        "shared.toml",
        'kind = "batch"\nsettings = { method = "first-fit" }',
        [],
        "request.cores,memory_mib,tolerance",
        "6,700,0.3",
        {"nodes", "pools"},
        {"cores", "memory"},
    ),
    "packing": (
        "shared.toml",
        'order = "fcfs"\nplacement = "pooled"',
        [],
        "request.cores,memory_mib",
        "6,700",
        {"nodes", "pools"},
        {"cores", "memory"},
    ),
}


def call(capsys, *given):
    arguments = [*map(str, given)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["poolwise", *arguments])
        code = cli.run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def check_explained(capsys, schedule: str, rows: pl.DataFrame, short: set[str]) -> None:
    """Check that the explanation of the longest wait adds up to the recorded wait."""
    waited = rows.group_by("id").agg((pl.max("start_ns") - pl.min("submit_ns")).alias("wait")).sort("wait", "id")
    job, wait = waited["id"][-1], waited["wait"][-1]
    assert wait > 0
    code, out, err = call(capsys, "explain", "run", schedule, job, "--json")
    assert code == 0, err
    content = json.loads(out)
    assert (content["status"], content["wait_ns"]) == ("started", wait)
    assert sum(part["ns"] for part in content["totals"]) == wait
    assert {episode["resource"] for episode in content["episodes"]} & short
    assert all(e["resource"] is None or e["needed"] > e["free"][1] >= 0 for e in content["episodes"])
    assert "held back by" in call(capsys, "explain", "run", schedule, job)[1]


def tracks(file: Path) -> set[str]:
    events = json.loads(file.read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)
    return {event["args"]["name"] for event in events if event["name"] == "process_name"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_jobs_on_nodes_are_drawn_and_explained(system, tmp_path, monkeypatch, capsys):
    machine, scheduler, options, columns, row, kinds, short = SYSTEMS[system]
    monkeypatch.chdir(tmp_path)
    Path("shared.toml").write_text(SHARED)
    Path("how.toml").write_text(f"version = 1\n{scheduler}\n")
    lines = [f"id,submit_ns,duration_ns,{columns}", *(f"{k},{k}000000000,{900 + 7 * k}000000000,{row}" for k in range(30))]
    Path("jobs.csv").write_text("\n".join(lines) + "\n")
    run = ("simulate", "jobs.csv", "--machine", machine, "--scheduler", "how.toml", *options)
    code, _, err = call(capsys, *run, "--schedule", "runs.csv", "--timeline", "runs.json")
    assert code == 0, err
    assert tracks(Path("runs.json")) == kinds
    check_explained(capsys, "runs.csv", pl.read_csv("runs.csv"), short)
    Path("jobs.csv").write_text("\n".join(lines[:-1]) + "\n")
    code, _, err = call(capsys, "explain", "run", "runs.csv", 3)
    assert code == 2 and "jobs.csv changed since" in err and "simulate the run again" in err


@pytest.mark.parametrize("system", [*SYSTEMS, "list_flow"])
def test_run_of_a_study_is_explained_under_every_system(system, tmp_path, monkeypatch, capsys):
    """The run is simulated again, including its warm-up, and the reasons add up to the recorded wait."""
    machine, scheduler, options, columns, row, _, short = SYSTEMS["packing" if system == "list_flow" else system]
    scheduler = 'kind = "list_flow"\norder = "fcfs"' if system == "list_flow" else scheduler
    monkeypatch.chdir(tmp_path)
    Path("shared.toml").write_text(SHARED)
    Path("how.toml").write_text(f"version = 1\n{scheduler}\n")
    lines = [f"id,submit_ns,duration_ns,{columns}", *(f"{k},{k}000000000,{900 + 7 * k}000000000,{row}" for k in range(30))]
    Path("jobs.csv").write_text("\n".join(lines) + "\n")
    named = machine if machine.endswith(".toml") else f"catalog:{machine}"
    model = '{ name = "nvme_sharing", tables = { smufin = "catalog:nvme-smufin.csv" } }' if options else '"ideal"'
    Path("study.toml").write_text(
        f'version = 1\nmachine = "{named}"\nscheduler = "how.toml"\n[workload]\ntrace = "jobs.csv"\n[performance]\n'
        f"model = {model}\n[measure]\nwarm_up = 6\nbaseline = false\n[vary]\n"
        '"workload.jobs" = [26, 30]\n'
    )
    for cell in run(load("study.toml"), "out", jobs=1).cells:
        chosen = ("--study", "study.toml", "--json", "--cell")
        outcomes = pl.read_parquet(Store(Path("out")).read_file(cell.key, "parquet"))
        waited = outcomes.with_columns(wait=pl.col("start") - pl.col("submit")).sort("wait", "id")
        job, wait = waited["id"][-1], waited["wait"][-1]
        assert wait > 0
        code, out, err = call(capsys, "explain", "run", "out", job, *chosen, f"jobs={cell.parameters['workload.jobs']}")
        assert code == 0, err
        content = json.loads(out)
        assert (content["status"], content["wait_ns"]) == ("started", wait)
        assert sum(part["ns"] for part in content["totals"]) == wait
        assert {episode["resource"] for episode in content["episodes"]} & short
        by_key = json.loads(call(capsys, "explain", "run", "out", job, *chosen, cell.key[:12])[1])
        assert {**by_key, "provenance": None} == {**content, "provenance": None}


@pytest.mark.parametrize("more", [[], ["--contended"]])
def test_tasks_on_units_are_drawn_and_explained(more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("trace.txt").write_text("".join(f"2 4000 0 0 30000000 2 {job}\n" for job in range(9) for _ in range(3)))
    code, _, err = call(capsys, *words(*more, "--schedule", "runs.parquet", "--timeline", "runs.json"))
    assert code == 0, err
    assert "nodes" in tracks(Path("runs.json"))
    check_explained(capsys, "runs.parquet", pl.read_parquet("runs.parquet"), {"slots"})


def test_unsupported_explanation_exits_with_2_and_a_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("id,submit_ns,duration_ns,nodes\n1,0,1000000000,1\n")
    code, _, err = call(capsys, "explain", "run", "jobs.csv", 1)
    assert code == 2 and "--schedule" in err and "poolwise explain log" in err
    Path("how.toml").write_text('version = 1\norder = "fcfs"\npass_per_event = true\n')
    run = ("simulate", "jobs.csv", "--processors", 1, "--scheduler", "how.toml")
    assert call(capsys, *run, "--schedule", "runs.csv", "--engine", "reference")[0] == 0
    code, _, err = call(capsys, "explain", "run", "runs.csv", 1)
    assert code == 2 and "one pass per instant" in err and "simulate again" in err
    code, _, err = call(capsys, "place", "batch-150x1200", "--timeline", "t.json")
    assert code == 2 and "--timeline" in err


def test_schedule_that_differs_when_simulated_again_is_rejected(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("id,submit_ns,duration_ns,nodes\n1,0,1000000000,1\n2,0,1000000000,1\n")
    assert call(capsys, "simulate", "jobs.csv", "--processors", 1, "--order", "fcfs", "--schedule", "runs.csv")[0] == 0
    code, out, _ = call(capsys, "explain", "run", "runs.csv", 2, "--json")
    assert code == 0 and json.loads(out)["wait_ns"] == 10**9
    Path("runs.csv").write_text(Path("runs.csv").read_text().replace("2,0,1000000000", "2,0,5"))
    code, _, err = call(capsys, "explain", "run", "runs.csv", 2)
    assert code == 2 and "recorded to start at 5 ns" in err


def test_rows_that_share_a_run_count_as_one_selection():
    study = load("whole-datacenter", {"seeds.count": 1})
    cell = study.cells[-1]
    assert choose(study.cells, Path("out"), [cell.key[:12]]).key == cell.key
    chosen = ("scheduler=catalog:pack-fm", "machine=catalog:whole-datacenter")
    assert choose(study.cells, Path("out"), chosen).key in {other.key for other in study.cells}
    with pytest.raises(InputError, match="8 cells match"):
        choose(study.cells, Path("out"), chosen[:1])
