import json

import polars as pl
import pytest

from poolwise.cli import app as cli

SMALL = ["--set", "workload.jobs=300", "--set", "measure.warm_up=50", "--set", 'vary.scheduler.order=["fcfs", "fm"]']
SMALL += ["--set", 'vary.machine.pool.memory.memory=["192 GiB", "1 TiB"]', "--set", "measure.baseline=false", "--jobs", "1"]


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    assert cli.run(["run", "cerit-pools", "--out", str(out), *SMALL]) == 0
    return out


def test_runs_of_a_study_are_compared_and_exported(ran, tmp_path, capsys):
    csv, parquet, report = (tmp_path / name for name in ("a.csv", "a.parquet", "a.html"))
    words = ("compare", f"{ran}:order=fm", "--changed", 2)
    code, out, _ = call(capsys, *words, "--json", "--csv", csv, "--parquet", parquet, "--report", report)
    content = json.loads(out)
    assert code == 0 and [run["label"] for run in content["runs"]] == ["memory=192 GiB", "memory=1 TiB"]
    assert content["intervals"].startswith("paired block bootstrap") and content["measured_jobs"] == [250]
    assert 0 < len(content["changed"]) <= 4 and len(content["provenance"]["inputs"]) == 2
    assert pl.read_csv(csv).height == pl.read_parquet(parquet).height == len(content["differences"])
    assert (tmp_path / "a.csv.provenance.json").exists()
    page = report.read_text()
    assert page.count("<figure data-chart") == 2 and "memory=1 TiB" in page and "Jobs that changed most" in page
    code, out, _ = call(capsys, *words)
    assert code == 0 and "mean bounded" in out and "Jobs that changed most" in out


def test_schedules_of_two_simulations_are_compared(tmp_path, capsys):
    files = [tmp_path / f"{order}.csv" for order in ("fcfs", "sjf")]
    (tmp_path / "jobs.csv").write_text(
        "id,submit_ns,nodes,duration_ns\n" + "".join(f"{k},{k},{1 + k % 3},{(1 + 7 * k % 11) * 10**9}\n" for k in range(40))
    )
    for file in files:
        words = ("simulate", tmp_path / "jobs.csv", "--processors", 4, "--order", file.stem, "--schedule", file, "--json")
        assert call(capsys, *words)[0] == 0
    code, out, _ = call(capsys, "compare", *files, "--json")
    content = json.loads(out)
    assert code == 0 and [run["label"] for run in content["runs"]] == ["fcfs.csv", "sjf.csv"]
    wait = next(d for d in content["differences"] if d["metric"] == "mean_wait_s")
    assert wait["difference"] == pytest.approx(wait["value"] - wait["first"]) and wait["difference"] < 0


def test_invalid_input_exits_with_2(ran, tmp_path, capsys):
    code, _, err = call(capsys, "compare", f"{ran}:order=sjf", ran)
    assert code == 2 and "no run matches 'order=sjf'" in err and "order=fm memory=1 TiB" in err
    code, _, err = call(capsys, "compare", ran, "--report", tmp_path / "no" / "a.html")
    assert code == 2 and "is not writable" in err
