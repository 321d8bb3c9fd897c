import csv
import json

import pytest

from poolwise.cli import app as cli


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def mix(tmp_path):
    path = tmp_path / "mix.toml"
    path.write_text(
        'version = 1\njobs = 150\n[[kind]]\nname = "smufin"\nbase_time = "1600 s"\ncores = 6\n'
        'bandwidth = "1800 MB/s"\nstorage = "43 GB"\ntable = "catalog:nvme-smufin.csv"\n'
    )
    return path


def test_workloads_of_a_mix_are_generated_simulated_and_drawn(mix, tmp_path, capsys):
    jobs, timeline, schedule = tmp_path / "jobs.parquet", tmp_path / "timeline.json", tmp_path / "schedule.csv"
    code, out, _ = call(capsys, "calibrate", mix, "--machine", "nvme-pooled", "--load", 0.6, "--out", jobs)
    assert code == 0
    assert "ideal load 0.6" in out or "ideal load 0.59" in out
    code, _, err = call(
        capsys, "simulate", jobs, "--machine", "nvme-pooled", "--order", "edf", "--backfill", "skip",
        "--placement", "nvme_disaggregation_aware", "--table", "smufin=catalog:nvme-smufin.csv", "--timeline", timeline,
        "--schedule", schedule,
    )  # fmt: skip
    assert code == 0, err
    names = {e["args"]["name"] for e in json.loads(timeline.read_text())["traceEvents"] if e["name"] == "thread_name"}
    assert {"rack0.node0", "nvme0"} <= names
    with schedule.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    for row in rows:
        parts = [part.split(":") for part in row["placement"].split(";")]
        assert parts[0][0].startswith("rack0.node")
        assert parts[0][1:] == ["cores=6"]
        assert sum(int(word.removeprefix("storage=")) for part in parts[1:] for word in part[2:]) == 41008  # 43 GB
    inputs = json.loads((tmp_path / "schedule.csv.provenance.json").read_text(encoding="utf-8"))["inputs"]
    assert set(inputs) == {"jobs.parquet", "nvme-pooled.toml", "nvme-smufin.csv"}


def test_unreachable_load_exits_with_3_and_names_the_nearest(mix, capsys):
    code, _, err = call(capsys, "calibrate", mix, "--machine", "nvme-pooled", "--load", 0.999)
    assert code == 3
    assert "the closest result" in err


def test_invalid_arguments_are_rejected(mix, capsys):
    assert call(capsys, "calibrate", mix, "--machine", "nvme-pooled", "--load", 1.5)[0] == 2
    code, _, err = call(capsys, "calibrate", mix, "--machine", "nvme-poled", "--load", 0.5)
    assert (code, "nvme-pooled" in err) == (2, True)
