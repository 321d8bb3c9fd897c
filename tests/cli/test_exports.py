"""Tables of results as CSV, Parquet and JSON."""

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from poolwise.cli import app as cli
from tests.helpers.batch_file import BATCH

SMALL = ["--set", "workload.jobs=100", "--set", "measure.warm_up=10", "--set", 'vary.scheduler.order=["fcfs"]']
SMALL += ["--set", 'vary.machine.pool.memory.memory=["1 TiB"]', "--set", "measure.baseline=false", "--jobs", "1"]


def test_schedule_is_the_same_in_csv_and_parquet(tmp_path):
    trace = tmp_path / "log.csv"
    trace.write_text("id,submit_ns,duration_ns,nodes\n1,0,10000000000,1\n2,5000000000,10000000000,2\n")
    words = ["--processors", "2", "--order", "fcfs", "--json"]
    for name in ("s.csv", "s.parquet"):
        assert cli.run(["simulate", str(trace), *words, "--schedule", str(tmp_path / name)]) == 0
    text = pl.read_csv(tmp_path / "s.csv")
    assert_frame_equal(text, pl.read_parquet(tmp_path / "s.parquet"))
    assert text["start_ns"].to_list() == [0, 10 * 10**9]


def test_study_prints_one_json_object_without_nan(tmp_path, capsys):
    assert cli.run(["run", "cerit-pools", "--out", str(tmp_path / "out"), "--json", *SMALL]) == 0
    content = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [cell["scheduler.order"] for cell in content["cells"]] == ["fcfs"]
    assert content["provenance"]


def test_placement_is_written_as_csv_and_parquet(tmp_path):
    (tmp_path / "batch.toml").write_text(BATCH.format(remote="64 GiB", profile="kmeans"))
    files = {kind: tmp_path / f"w.{kind}" for kind in ("csv", "parquet")}
    words = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    assert cli.run(["place", str(tmp_path / "batch.toml"), *words]) == 0
    assert pl.read_parquet(files["parquet"]).height == 3
    assert pl.read_csv(files["csv"]).height == 3


def test_export_to_a_folder_is_rejected(tmp_path, capsys):
    assert cli.run(["place", "batch-150x1200", "--csv", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
