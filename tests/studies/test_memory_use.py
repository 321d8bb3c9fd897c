"""Memory use over time in study files, descriptions and explanations."""

import json
import sys
from pathlib import Path

import pytest

from poolwise import studies
from poolwise.cli import app as cli
from poolwise.errors import InputError
from poolwise.explain import memory_stretches
from poolwise.explain.sentences import memory_sentence
from poolwise.model import Outcome
from poolwise.studies.cell_simulation import simulate_again
from poolwise.studies.cells import workload_of
from poolwise.studies.description import describe, read_descriptions
from poolwise.studies.study import load

STUDY = """
version = 1
machine = { version = 1, name = "four", node = [{ name = "thin", cores = 4, memory = "10 GiB" }], rack = [{ count = 1, nodes = { thin = 4 } }], pool = [{ name = "memory", per = "rack", memory = "100 GiB" }] }
workload = { trace = "jobs.csv", format = "columns", options = { map = "id=id,submit=submit:s,duration=run:s,nodes=nodes,memory=mem:GiB" }, memory_use = { name = "table", file = "use.csv" } }
scheduler = { kind = "by_use", settings = { interval_s = 10.0, margin = 0.0, patience_s = 15.0 } }
performance = { model = "ideal" }
measure = { warm_up = 0, baseline = false, metrics = ["memory_use"] }
"""  # noqa: E501


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two jobs that request 80 GiB each but first use 20 GiB; the second runs out of memory once."""
    (tmp_path / "jobs.csv").write_text("id,submit,run,nodes,mem\n1,0,100,1,80\n2,0,100,1,80\n")
    gib = [(1, 0, 20), (1, 50, 80), (2, 0, 20), (2, 60, 80)]
    rows = [f"{job},{seconds},{1024 * memory}\n" for job, seconds, memory in gib]
    (tmp_path / "use.csv").write_text("".join(["job,seconds,memory\n", *rows]))
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_study_measures_runs_out_of_memory(study: Path, tmp_path: Path) -> None:
    result = studies.run(load(study), tmp_path / "out")
    (cell,) = result.cells
    assert cell.metrics["runs_out_of_memory"] == 1 and cell.metrics["resizes"] == 3
    assert cell.metrics["stalled_node_hours"] == pytest.approx(15 / 3600)


def test_memory_use_is_an_input_and_is_described(study: Path, tmp_path: Path) -> None:
    (cell,) = load(study).cells
    (other,) = load(study, {"workload.memory_use.overestimate": 0.5}).cells
    assert cell.key != other.key and workload_of(other).memory.tolist() == [120 * 1024] * 2
    described = describe(cell, tmp_path)
    assert described["run"]["workload"]["memory_use"]["file"] == "use.csv" and "use.csv" in described["files"]
    (tmp_path / "description.json").write_text(json.dumps(described))
    (again,) = read_descriptions(tmp_path / "description.json")
    assert again.cell().key == cell.key
    (tmp_path / "use.csv").write_text("job,seconds,memory\n1,0,1\n")
    with pytest.raises(InputError, match=r"use\.csv changed since"):
        again.cell()


def test_memory_use_has_the_seed_of_the_cell(study: Path) -> None:
    cells = load(study, {"workload.memory_use": "phases", "seeds.count": 2}).cells
    assert [cell.memory_use.settings["seed"] for cell in cells if cell.memory_use is not None] == [0, 1]
    (fixed,) = load(study, {"workload.memory_use": {"name": "phases", "seed": 7}}).cells
    assert fixed.memory_use is not None and fixed.memory_use.settings["seed"] == 7


@pytest.mark.parametrize(
    ("wrong", "field"), [("phasen", "workload.memory_use"), ({"name": "phases", "least": "x"}, "workload.memory_use.least")]
)
def test_unknown_names_and_settings_are_refused(study: Path, wrong: object, field: str) -> None:
    with pytest.raises(InputError) as raised:
        load(study, {"workload.memory_use": wrong})
    assert str(raised.value.field).startswith("workload.memory_use")


def test_memory_stretches_of_a_job(study: Path) -> None:
    schedule = simulate_again(load(study).cells[0])
    stretches = memory_stretches(schedule, 1)
    second = 10**9
    stretched = [
        (s.run, s.begin // second, s.end // second, s.pooled // 1024, (s.used or 0) // 1024, s.stood_still) for s in stretches
    ]
    assert stretched == [
        (1, 10, 20, 70, 20, False),
        (1, 20, 70, 10, 20, False),
        (1, 70, 85, 10, 80, True),
        (2, 100, 160, 70, 20, False),
        (2, 160, 200, 70, 80, False),
    ]
    assert {s.local for s in stretches} == {10 * 1024}
    assert [s.outcome for s in stretches] == [Outcome.OUT_OF_MEMORY] * 3 + [Outcome.FINISHED] * 2
    assert memory_sentence(stretches) == (
        "It held 10 GiB to 70 GiB of pool memory, changed 1 time, used 20 GiB to 80 GiB in total, was stalled for 15 s by a "
        "memory shortage and was killed when memory ran out, which lost 1 min 15 s of run time."
    )
    assert memory_sentence(stretches[3:]) == "It held 70 GiB of pool memory and used 20 GiB to 80 GiB in total."


def test_explain_shows_memory_over_time(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, commands: None
) -> None:
    def output_of(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["poolwise", *words])
        assert cli.run([*words]) == 0
        return capsys.readouterr().out

    (cell,) = load(study).cells
    schedule, recorded, page = tmp_path / "schedule.csv", tmp_path / "run.provenance.json", tmp_path / "page.html"
    recorded.write_text(json.dumps(describe(cell, tmp_path)))
    assert "runs terminated for lack of memory" in " ".join(output_of("simulate", "rerun", str(recorded)).split())
    output_of("simulate", "rerun", str(recorded), "--schedule", str(schedule))
    table = output_of("explain", "run", str(schedule), "2", "--report", str(page))
    assert "stalled: not enough memory, then out of memory" in " ".join(table.split())
    assert "It held 10 GiB to 70 GiB of pool memory" in table and "Memory of job 2" in page.read_text()
    rows = json.loads(output_of("explain", "run", str(schedule), "2", "--json"))["memory"]
    assert len(rows) == 5 and rows[2]["stood_still"] and rows[2]["pooled_mib"] == 10 * 1024
