"""`poolwise simulate`: the contract of its options, its JSON, its schedule file, and its errors."""

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from poolwise import simulation, traces
from poolwise.cli import app as cli_app
from poolwise.cli.app import run
from poolwise.files.machine import load_machine
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory

ROW = "{id} {submit} -1 {run} {procs} -1 {memory} {procs} {asked} -1 1 1 1 1 1 1 -1 -1"


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    cli_app._discover()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Six jobs of 4 or 12 processors; the fifth is larger than 2 racks x 4 nodes x 4 cores."""
    rows = [
        ROW.format(id=k + 1, submit=10 * k, run=100 + k, procs=64 if k == 4 else 4 + 8 * (k % 2), memory=2_000_000, asked=200)
        for k in range(6)
    ]
    path = tmp_path / "log.swf"
    path.write_text("; a log\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "machine.toml"
    path.write_text(
        "version = 1\n"
        '[[node]]\nname = "thin"\ncores = 4\nmemory = "4 GiB"\n'
        "[[rack]]\ncount = 2\nnodes = { thin = 4 }\n"
        '[[pool]]\nname = "memory"\nper = "rack"\nmemory = "16 GiB"\n',
        encoding="utf-8",
    )
    return path


def test_json_has_the_documented_keys(log: Path, machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(log), "--machine", str(machine), "--order", "fm", "--json", "--engine", "reference"]) == 0
    content = json.loads(capsys.readouterr().out)
    promised = {"jobs", "excluded", "rejected", "mean_wait_s", "mean_bounded_slowdown", "makespan_s", "utilization"}
    promised |= {"engine", "wall_s"}
    assert promised <= content.keys()
    assert content["jobs"] == 5
    assert content["rejected"] == {"cannot fit on the empty machine: not enough free nodes": 1}
    assert content["engine"] == "reference"
    assert set(content["provenance"]["inputs"]) == {"log.swf", "machine.toml"}


def test_remote_memory_slows_jobs_by_seed(log: Path, machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four jobs have two thirds of their memory in the pool, so the default model is that of remote memory."""
    makespan = {}
    for seed in (1, 2):
        assert run(["simulate", str(log), "--machine", str(machine), "--order", "fcfs", "--seed", str(seed), "--json"]) == 0
        makespan[seed] = json.loads(capsys.readouterr().out)["makespan_s"]
        on = load_machine(machine)
        jobs = traces.read(log, on)
        models = {"remote": RemoteMemory(seed=seed), "ideal": Ideal()}
        spans = {
            name: float(simulation.simulate(jobs, on, order="fcfs", model=model).metrics["makespan_s"])
            for name, model in models.items()
        }
        assert makespan[seed] == spans["remote"] > spans["ideal"]
    assert makespan[1] != makespan[2]


def test_schedule_has_one_row_per_job_with_rack_nodes_and_pool(
    log: Path, machine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "schedule.csv"
    arguments = ["simulate", str(log), "--machine", str(machine), "--order", "fcfs", "--schedule", str(target)]
    assert run([*arguments, "--engine", "reference"]) == 0
    capsys.readouterr()
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["1", "2", "3", "4", "6"]
    assert list(rows[0]) == ["id", "submit_ns", "start_ns", "end_ns", "placement"]
    source = json.loads((tmp_path / "schedule.csv.provenance.json").read_text(encoding="utf-8"))
    assert {"poolwise", "command", "seed", "inputs"} <= source.keys()
    assert set(source["inputs"]) == {"log.swf", "machine.toml"}
    # 4 processors x 2,000,000 KB are 7813 MiB a node, 4096 of them local: the rest comes from the rack's pool
    assert rows[0]["placement"] == "0:1:3717"
    assert rows[0]["start_ns"] == "0"
    assert int(rows[0]["end_ns"]) >= 100 * 10**9


@pytest.mark.long
def test_scheduler_file_replaces_its_parts(
    log: Path, machine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on = ["simulate", str(log), "--machine", str(machine), "--engine", "reference", "--json"]

    def result(*words: str) -> dict[str, object]:
        assert run([*on, *words]) == 0
        content = json.loads(capsys.readouterr().out)
        return {name: value for name, value in content.items() if name not in ("wall_s", "provenance", "warnings")}

    assert result("--scheduler", "catalog:fm-easy") == result("--order", "fm", "--backfill", "easy")
    mine = tmp_path / "mine.toml"
    mine.write_text('version = 1\norder = "sjf"\nbackfill = "none"\nscope = "system"\n', encoding="utf-8")
    assert result("--scheduler", str(mine)) == result("--order", "sjf", "--backfill", "none", "--scope", "system")
    assert result() == result("--order", "fcfs", "--backfill", "easy")
    for words, says in (
        (["--scheduler", str(mine), "--order", "fm"], "--scheduler and --order exclude each other"),
        (["--scheduler", str(mine), "--scope", "rack"], "--scheduler and --scope exclude each other"),
        (["--scheduler", "catalog:fm-eazy"], "did you mean 'fm-easy'"),
    ):
        assert run([*on, *words]) == 2
        assert says in capsys.readouterr().err


def test_engines_print_the_same_results(log: Path, machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for engine in ("reference", "auto"):
        assert run(["simulate", str(log), "--machine", str(machine), "--order", "wfp3", "--json", "--engine", engine]) == 0
        content = json.loads(capsys.readouterr().out)
        results.append({k: v for k, v in content.items() if k not in ("engine", "wall_s", "provenance")})
    assert results[0] == results[1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--processors", "8", "--order", "fcsf"], ["unknown order 'fcsf'", "did you mean 'fcfs'"]),
        (["--processors", "8", "--order", "fcfs", "--backfill", "esy"], ["did you mean 'easy'"]),
        (["--processors", "8", "--order", "fcfs", "--format", "swg"], ["did you mean 'swf'"]),
        (["--order", "fcfs"], ["either --machine or --processors"]),
        (["--machine", "no-such.toml", "--order", "fcfs"], ["no-such.toml"]),
        (["--machine", "cerit-rack", "--order", "fcfs"], ["did you mean 'cerit-racks'"]),
        (["--processors", "8", "--order", "fcfs", "--schedule", "/no/such/folder/x.csv"], ["/no/such/folder"]),
        (["--processors", "8", "--order", "missing.py:Order"], ["no such file"]),
    ],
)
def test_invalid_options_exit_with_2_and_a_remedy(
    log: Path, arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(log), *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    for word in words:
        assert word in shown.err.replace("\n", " ")


@pytest.mark.parametrize("content", ["1 2 3\n", ROW.format(id=1, submit="x", run=1, procs=1, memory=1, asked=1) + "\n", ""])
def test_broken_trace_exits_with_2(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.swf"
    path.write_text(content, encoding="utf-8")
    assert run(["simulate", str(path), "--processors", "8", "--order", "fcfs"]) == 2
    assert "broken.swf" in capsys.readouterr().err


def test_truncated_gzip_exits_with_2(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress(log.read_bytes())[:-12])
    assert run(["simulate", str(path), "--processors", "8", "--order", "fcfs"]) == 2
    assert "cut.swf.gz" in capsys.readouterr().err


def test_failed_run_leaves_no_file(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(tmp_path.iterdir())
    target = tmp_path / "schedule.csv"
    assert run(["simulate", str(log), "--processors", "8", "--order", "nope", "--schedule", str(target)]) == 2
    capsys.readouterr()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.long
def test_no_drawing_library_is_imported_for_a_simulation(log: Path) -> None:
    words = ["simulate", str(log), "--processors", "64", "--engine", "reference", "--json"]
    script = f"import sys; from poolwise.cli.app import run; sys.exit(run({words!r}) or 'vl_convert' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_warm_up_is_excluded_from_the_metrics_and_stated(capsys):
    words = ["simulate", "catalog:example-sacct.txt", "--machine", "cerit-racks"]
    results = []
    for jobs in (0, 300):
        assert run([*words, "--set", f"measure.warm_up={jobs}", "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert [result["jobs"] for result in results] == [373, 373] and [result["measured_jobs"] for result in results] == [373, 73]
    assert run([*words, "--set", "measure.warm_up=300"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Measured on the 73 jobs that finished, after a warm-up of 300 jobs under FCFS without backfilling." in shown
    assert run([*words, "--set", "measure.warm_up=373"]) == 2
    assert "leaves no job of 373 to measure" in capsys.readouterr().err


def test_details_are_printed_with_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default the table has the main metrics that apply, no second slowdown and no assumed price."""
    monkeypatch.chdir(folder)
    words = ["simulate", "jobs.csv", "--machine", "machine.toml"]
    assert run(words) == 0
    brief = capsys.readouterr().out
    assert run([*words, "--all"]) == 0
    whole = capsys.readouterr().out
    for detail in ("90th percentile of the wait", "assumed price of the installed memory", "median job latency"):
        assert detail not in brief and detail in whole
    assert "`--all` shows 14 more metrics" in brief and "--all" not in whole
    assert "mean runtime degradation" in brief
    assert run(["simulate", "jobs.csv", "--processors", "8"]) == 0
    assert "remote memory" not in capsys.readouterr().out


@pytest.mark.parametrize("pool", ["", '[[pool]]\nname = "memory"\nper = "rack"\nmemory = "64 GiB"\n'])
def test_remote_memory_is_shown_only_for_machines_with_pools(
    pool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = '[[node]]\nname = "n"\ncores = 4\nmemory = "64 GiB"\n'
    (tmp_path / "machine.toml").write_text(f"version = 1\n{node}[[rack]]\nnodes = {{ n = 4 }}\n{pool}")
    (tmp_path / "jobs.csv").write_text("submit,duration,nodes,memory\n2026-03-01T12:00:00,60,1,1\n")
    assert run(["simulate", str(tmp_path / "jobs.csv"), "--machine", str(tmp_path / "machine.toml")]) == 0
    assert ("mean runtime degradation" in capsys.readouterr().out) == bool(pool)
