import json
import subprocess
import sys
from pathlib import Path

import pytest

from poolwise.cli import app as cli
from poolwise.model import Machine
from poolwise.quantities import format_count
from poolwise.traces import read
from tests.helpers.data import PUBLISHED

ROWS = [
    "1 0 3 100 24 -1 1024 24 200 -1 1 5 -1 -1 -1 -1 -1 -1",
    "2 50 3 100 6 -1 -1 6 50 -1 1 5 -1 -1 -1 -1 -1 -1",
    "3 60 3 -1 6 -1 -1 6 50 -1 1 5 -1 -1 -1 -1 -1 -1",
    "4 100 3 7 600 -1 -1 6 50 2048 1 5 -1 -1 -1 -1 -1 -1",
]


@pytest.fixture
def swf(tmp_path):
    path = tmp_path / "some.swf"
    path.write_text("; MaxProcs: 48\n" + "\n".join(ROWS))
    return path


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_info_prints_one_json_object(swf, capsys):
    code, out, err = call(capsys, "trace", "info", swf, "--machine-cores", 12, "--nodes", 4, "--json")
    content = json.loads(out)
    assert (code, err) == (0, "")
    assert content["jobs"] == 3
    assert content["span_s"] == 100.0
    assert content["nodes"]["max"] == 50
    assert content["larger_than_machine"] == 1
    assert content["load"] == (2 * 100 + 1 * 100) / (4 * 100)
    assert content["memory_known"] == pytest.approx(2 / 3)
    assert content["memory_mib"]["min"] == 12
    assert content["excluded"] == {"runtime unknown or 0": 1}
    assert sum(content["repaired"].values()) == 2


def test_info_table_lists_excluded_rows(swf, capsys):
    code, out, err = call(capsys, "trace", "info", swf, "--machine-cores", 12, "--memory-unknown", "exclude")
    assert (code, err) == (0, "")
    assert "runtime unknown or 0" in out
    assert "memory unknown or 0" in out
    assert "24 MiB" in out


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.csv.gz"])
def test_convert_to_a_table_reports_excluded_rows_and_keeps_the_jobs(swf, tmp_path, capsys, name):
    target = tmp_path / name
    code, out, err = call(capsys, "trace", "convert", swf, target, "--machine-cores", 12, "--memory-unknown", "3 GiB")
    assert code == 0
    assert out == f"{target}: 3 jobs\n"
    assert "excluded 1 row: runtime unknown or 0" in err
    assert "repaired 1 row: memory unknown or 0, set to 3 GiB" in err
    machine = Machine.of_racks(1, 4, local=1024, cores=12)
    table, log = read(target, machine), read(swf, machine, memory_unknown="3 GiB")
    for column in ("id", "submit", "duration", "requested", "nodes", "memory"):
        assert getattr(table, column).tolist() == getattr(log, column).tolist()


def test_convert_to_swf_keeps_every_row_and_reports_changes(tmp_path, capsys):
    source, target = tmp_path / "own.txt", tmp_path / "plain"
    source.write_text("".join(f"{row} {{1,2}} q_1d\n" for row in ROWS))
    words = ["--to", "swf", "--extra-columns", 2, "--memory-bytes-per-job", "--comment", "Acknowledge: X"]
    code, out, err = call(capsys, "trace", "convert", source, target, *words)
    assert code == 0
    assert out == f"{target}: 4 jobs\n"
    assert "changed 4 rows: columns 19 to 20 left out" in err
    assert "changed 1 row: used memory set to unknown" in err
    lines = target.read_text().splitlines()
    assert lines[0] == "; Acknowledge: X"
    assert lines[-1] == "4 100 3 7 600 -1 -1 6 50 1 1 5 -1 -1 -1 -1 -1 -1"
    assert len(lines) == 3 + 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["out.swf", "--memory-scale", 2], "keeps rows unchanged"),
        (["out.csv", "--memory-bytes-per-job"], "only to SWF output"),
        (["out.csv", "--comment", "x"], "only to SWF output"),
        (["out.xlsx"], "CSV or Parquet"),
        (["missing/out.csv"], "folder"),
        (["out.csv", "--format", "table", "--memory-scale", 2], "memory_scale"),
        (["out.csv", "--format", "nothing"], "unknown format"),
        (["out.csv", "--extra-columns", 1], "18 fields"),
    ],
    ids=str,
)
def test_unsupported_conversion_exits_with_2(swf, tmp_path, capsys, words, message):
    before = sorted(tmp_path.iterdir())
    code, out, err = call(capsys, "trace", "convert", swf, tmp_path / words[0], *words[1:])
    assert (code, out) == (2, "")
    assert message in err
    assert "remedy" in err
    assert sorted(tmp_path.iterdir()) == before


def test_table_cannot_be_written_as_swf(tmp_path, capsys):
    code, _, err = call(capsys, "trace", "convert", PUBLISHED / "pool_golden_jobs.csv", tmp_path / "out.swf")
    assert code == 2
    assert "only an SWF log" in err


def test_accounting_export_is_recognized_and_converted_for_a_machine(tmp_path, capsys):
    words = ["--machine", "catalog:cerit-racks"]
    code, out, err = call(capsys, "trace", "info", "catalog:example-sacct.txt", *words, "--json")
    content = json.loads(out)
    assert (code, err) == (0, "")
    assert content["machine"] == "CERIT racks"
    assert content["nodes"]["max"] == 43
    assert content["jobs"] + sum(content["excluded"].values()) == 400
    target = tmp_path / "jobs.csv"
    words += ["--memory-field", "requested", "--timezone", "Europe/Berlin"]
    code, out, err = call(capsys, "trace", "convert", "catalog:example-sacct.txt", target, *words)
    assert (code, out) == (0, f"{target}: {content['jobs']} jobs\n")
    for reason, count in {**content["excluded"], **content["repaired"]}.items():
        assert f"{format_count(count, 'row')}: {reason}" in err
    assert len(read(target, Machine.of_racks(1, 1, local=1))) == content["jobs"]


def test_gpus_take_whole_nodes(tmp_path, capsys):
    path = tmp_path / "philly.csv"
    path.write_text("timestamp,duration,num_gpus\n2017-10-09 07:01:55,66.0,9\n")
    code, out, _ = call(capsys, "trace", "info", path, "--machine-gpus", 8, "--json")
    assert (code, json.loads(out)["nodes"]["max"]) == (0, 2)
    code, _, err = call(capsys, "trace", "info", path)
    assert (code, "--machine-gpus" in err) == (2, True)


def test_info_shows_quantiles_of_shared_resources(tmp_path, capsys):
    machine = tmp_path / "shared.toml"
    machine.write_text('version = 1\n[[node]]\nname = "n"\nallocation = "shared"\ncores = 64\n[[rack]]\nnodes = { n = 2 }\n')
    code, out, err = call(capsys, "trace", "info", "catalog:example-sacct.txt", "--machine", machine)
    assert (code, err) == (0, "")
    assert "cores" in out.splitlines()[-9]
    code, _, err = call(capsys, "trace", "info", "catalog:example-sacct.txt", "--machine", machine, "--nodes", 3)
    assert (code, "omit --nodes" in err) == (2, True)


def test_help_shows_an_export_with_all_required_fields(capsys):
    from poolwise.traces.sacct_rows import REQUIRED

    code, out, _ = call(capsys, "trace", "convert", "--help")
    assert code == 0
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "own-log.md").read_text(encoding="utf-8")
    for text in (out, page):
        fields = {name for line in text.splitlines() if "fields=" in line for name in line.partition("=")[2].strip().split(",")}
        assert all(fields.intersection(any_of_them) for any_of_them in REQUIRED)


def test_help_does_not_load_numpy_or_polars():
    program = "import sys; from poolwise.cli import trace; sys.exit(any(m in sys.modules for m in ('numpy', 'polars')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_converted_trace_has_provenance(tmp_path, capsys):
    import json

    from poolwise.cli.app import run

    target = tmp_path / "jobs.csv"
    assert run(["trace", "convert", "catalog:example-sacct.txt", str(target)]) == 0
    capsys.readouterr()
    source = json.loads((tmp_path / "jobs.csv.provenance.json").read_text(encoding="utf-8"))
    assert list(source["inputs"]) == ["example-sacct.txt"]
    assert source["seed"] is None


def test_info_without_a_machine_states_the_assumed_nodes(tmp_path, capsys):
    log = tmp_path / "gpus.txt"
    log.write_text(
        "JobID|Submit|Start|State|NNodes|AllocCPUS|ElapsedRaw|TimelimitRaw|AllocTRES\n"
        "1|2026-03-01T00:00:00|2026-03-01T00:00:00|COMPLETED|2|64|60|98|cpu=64,gres/gpu=4\n"
    )
    assumed = "Nodes and node-seconds assume one-core nodes; specify others with --machine or --machine-cores."
    _, out, _ = call(capsys, "trace", "info", log)
    text = " ".join(out.split())
    assert text.count(assumed) == 2
    _, out, _ = call(capsys, "trace", "info", log, "--json")
    assert json.loads(out)["repaired"]["GPUs ignored, because no machine that has them is given"] == 1
    _, out, _ = call(capsys, "trace", "info", log, "--machine-cores", 32)
    assert assumed not in " ".join(out.split())
