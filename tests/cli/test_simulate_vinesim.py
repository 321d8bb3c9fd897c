"""`poolwise simulate vinesim`."""

import json
from pathlib import Path
from typing import Any

import pytest

from poolwise.cli import app as cli_app
from poolwise.cli.app import run
from tests.helpers.vinesim_files import FILES, words


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    cli_app._discover()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_has_latency_utilization_cost_and_energy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("--prices", "prices.txt", "--power", "power.txt", "--sample", "10us", "--json")) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {content[f"{name}_job_latency_us"] for name in ("mean", "p50", "p99", "p99_9")} == {2.5}
    assert (content["jobs"], content["measured_tasks"], content["makespan_s"]) == (6, 12, 37.5e-6)
    assert content["unit_utilization_by_type.cpu-intel"] == 0
    assert content["unit_utilization_by_type.gpu"] == pytest.approx(6 * 2.5 / 37.5)
    assert len(content["units"]) == 4 and sum(unit["utilization"] for unit in content["units"]) == pytest.approx(
        12 * 2.5 / 37.5
    )
    assert content["purchase_cost"] == 4600
    assert content["energy_j"] == pytest.approx(((60 + 120) * 37.5 + 2 * 180 * 15) * 1e-6)
    assert content["series"]["begin_us"] == [0, 10, 20, 30]
    assert (content["engine"], content["waiting"]) == ("compiled", 0)
    assert set(content["provenance"]["inputs"]) == set(FILES)


def test_table_lists_jobs_tasks_and_price(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("--prices", "prices.txt")) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["jobs", "that", "ran", "6"] in lines and ["measured", "tasks", "12", "tasks"] in lines
    assert ["purchase", "price", "of", "the", "machine", "4,600", "$"] in lines


def test_bare_setting_configures_the_placement(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three tasks that prefer one of two GPUs: the third waits for one, or takes a CPU."""
    (folder / "trace.txt").write_text("2 0 0 0 3000000 2 0\n" * 3, encoding="utf-8")
    makespans = []
    for setting in ("reading=only", "reading=first"):
        assert run(words("--placement", "pref", "--set", setting, "--json", without="--placement")) == 0
        makespans.append(json.loads(capsys.readouterr().out)["makespan_s"])
    assert makespans == [5e-6, 50e-6]


def test_schedule_and_timeline_are_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("--schedule", "runs.csv", "--timeline", "runs.json", "--engine", "reference", "--json")) == 0
    lines = (folder / "runs.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["id,submit_ns,start_ns,end_ns,placement", "0,0,0,2500,gpu2:slots=1"] and len(lines) == 13
    assert (folder / "runs.json").is_file()
    assert json.loads(capsys.readouterr().out)["engine"] == "reference"


def test_contended_transfers_share_links(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "trace.txt").write_text("2 1000000 0 0 3000000 2 0\n", encoding="utf-8")
    responses = {}
    for more in ((), ("--contended",)):
        assert run(words(*more, "--json")) == 0
        responses[more] = json.loads(capsys.readouterr().out)["mean_response_us"]
    assert responses == {(): 8003.1, ("--contended",): 803.1}


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (words(without="--affinity"), "--affinity is missing"),
        (words(without="--machine"), "--machine is missing"),
        (words(without="--inter-arrival"), "--inter-arrival is missing"),
        (words("--order", "fcfs"), "No such option: --order. Did you mean `poolwise simulate log`?"),
        (words("--processors", "4"), "No such option: --processors. Did you mean `poolwise simulate log`?"),
        (words("--sample", "often"), "not a sampling interval"),
        (words("--set", "tie=coin"), "should be 'order' or 'random'"),
        (words("--set", "ties=order"), "did you mean 'tie'"),
        (words("--placement", "racks"), "does not place single tasks on units"),
        (words("--placement", "hihg"), "did you mean 'high'?"),
        (words("--inter-arrival", "7 parsecs"), "not an inter-arrival time"),
        (words("--affinity-kind", "percent"), "unknown convention 'percent'"),
        (words("--prices", "nowhere.txt"), "no such file"),
        (["simulate", "trace.txt", "--affinity", "affinity.txt"], "Did you mean `poolwise simulate vinesim`?"),
        (
            ["simulate", "log", "trace.txt", "--format", "vinesim", "--machine", "cerit-racks"],
            "as `poolwise simulate vinesim` does",
        ),
    ],
)
def test_invalid_options_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(arguments) == 2
    streams = capsys.readouterr()
    assert message in " ".join(streams.err.split()) and not streams.out
