"""User metrics in `simulate`, `run`, `compare` and their reports, from a file and from an installed package."""

import json
from dataclasses import replace
from importlib.metadata import EntryPoint

import polars as pl
import pytest

from poolwise import registry, studies
from poolwise.cli import app as cli
from poolwise.errors import InputError
from poolwise.metrics import Outcomes
from poolwise.studies.cell_simulation import simulate_again

OWN = '''
from dataclasses import dataclass

from poolwise.metrics import Metric


@dataclass(frozen=True)
class Held:
    """Node-seconds that finished jobs held, and how many nodes the machine has."""

    metrics = {
        "held_node_s": Metric("node-seconds held", "node s", "lower"),
        "nodes_by_kind": Metric("nodes", "nodes", "neither", per="kind"),
    }

    def of(self, run):
        schedule = run.schedule
        nodes = schedule.machine.capacity[:, schedule.machine.resource("nodes")]
        run_s = (schedule.end - schedule.start) / 1e9
        held = sum(run_s[k] * schedule.amount[schedule.offset[k] : schedule.offset[k + 1]].sum() for k in range(schedule.n_run))
        return {"held_node_s": float(held), "nodes_by_kind.all": float(nodes.sum())}
'''
STUDY = """version = 1
title = "Who holds what?"
machine = { version = 1, format = "processors", count = 4 }
workload = { trace = "jobs.csv" }
measure = { warm_up = 0, baseline = false, metrics = ["own.py:Held"] }
vary = { "scheduler.order" = ["fcfs", "sjf"] }
"""
JOBS = "id,submit_ns,nodes,duration_ns\n" + "".join(f"{k},{k},{1 + k % 3},{(1 + 7 * k % 11) * 10**9}\n" for k in range(40))
HELD = float(sum((1 + k % 3) * (1 + 7 * k % 11) for k in range(40)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("own.py", OWN), ("study.toml", STUDY), ("jobs.csv", JOBS)):
        (tmp_path / name).write_text(text)
    return tmp_path


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def simulate(capsys, *more):
    code, out, err = call(capsys, "simulate", "jobs.csv", "--processors", 4, *more)
    assert code == 0, err
    return out


def test_metric_of_a_file_is_measured_in_one_run(folder, capsys):
    words = ("--order", "fcfs", "--metric", "own.py:Held")
    content = json.loads(simulate(capsys, *words, "--json", "--schedule", "a.csv"))
    assert content["held_node_s"] == HELD and content["nodes_by_kind.all"] == 4
    assert content["provenance"]["metrics"] == [{"name": "own.py:Held"}]
    assert "node-seconds held" in simulate(capsys, *words)
    code, out, _ = call(capsys, "simulate", "rerun", "a.csv.provenance.json", "--set", "scheduler.order=sjf", "--json")
    assert code == 0 and json.loads(out)["held_node_s"] == HELD, "a rerun has the metrics of the recorded run"
    assert "held_node_s" not in json.loads(simulate(capsys, "--order", "fcfs", "--json"))


def test_metric_appears_in_a_study_its_report_and_a_comparison(folder, capsys, monkeypatch):
    code, out, err = call(capsys, "run", "study.toml", "--out", "out", "--jobs", 1)
    assert code == 0 and f"{HELD:.0f}" in out, err
    frame = pl.read_csv(folder / "out" / "results.csv")
    assert frame["held_node_s"].to_list() == [HELD] * 2 and frame["nodes_by_kind.all"].to_list() == [4] * 2
    page = (folder / "out" / "report.html").read_text()
    assert page.count("node-seconds held") >= 2, "in the table of results and in the glossary"
    code, out, _ = call(capsys, "compare", "out", "--json", "--report", "compare.html")
    rows = {row["metric"]: row for row in json.loads(out)["differences"]}
    assert code == 0 and rows["held_node_s"]["value"] == HELD and rows["held_node_s"]["unit"] == "node s"
    assert rows["nodes_by_kind.all"]["first"] == 4
    assert "node-seconds held" in (folder / "compare.html").read_text()
    monkeypatch.setenv("COLUMNS", "120")  # so that the words are on one line
    assert "node-seconds held" in call(capsys, "compare", "out")[1]
    (folder / "own.py").write_text(OWN.replace("node-seconds held", "held by jobs"))
    assert call(capsys, "explain", "run", "out", 9, "--cell", "order=sjf")[0] == 0, "runs do not depend on metrics"


def test_schedules_are_simulated_again_for_metrics_beyond_times(folder, capsys):
    for order in ("fcfs", "sjf"):
        simulate(capsys, "--order", order, "--schedule", f"{order}.csv", "--metric", "own.py:Held")
    code, out, _ = call(capsys, "compare", "fcfs.csv", "sjf.csv", "--json")
    content = json.loads(out)
    assert code == 0 and [run["held_node_s"] for run in content["runs"]] == [HELD] * 2
    assert all(0 < run["utilization"] <= 1 for run in content["runs"]), "not a metric of times alone"
    simulate(capsys, "--order", "fm", "--schedule", "plain.csv")
    words = ("compare", "plain.csv", "plain.csv")
    assert "held_node_s" not in call(capsys, *words, "--json")[1]
    assert "held_node_s" in call(capsys, *words, "--metric", "own.py:Held", "--json")[1]
    frame = pl.read_csv(folder / "plain.csv")
    frame.with_columns(pl.col("end_ns") + 1).write_csv(folder / "plain.csv")
    code, _, err = call(capsys, *words, "--metric", "own.py:Held")
    assert code == 2 and "a new simulation of the run gives different times" in " ".join(err.split())
    (folder / "plain.csv.provenance.json").unlink()
    code, _, err = call(capsys, *words, "--metric", "own.py:Held")
    assert code == 2 and "its provenance file is missing" in " ".join(err.split())


def test_schedule_that_differs_from_saved_outcomes_is_rejected(folder):
    study = studies.load(folder / "study.toml", {"vary.scheduler.order": ["fcfs"]})
    result = studies.run(study, folder / "out", jobs=1)
    outcomes = result.outcomes(result.cells[0])
    schedule = simulate_again(study.cells[0], outcomes)
    assert Outcomes.of(schedule).end.tolist() == outcomes.end.tolist()
    for changed in ({"start": outcomes.start + 1}, {"end": outcomes.end + 1}):
        with pytest.raises(InputError, match="a new simulation of the run gave a different schedule"):
            simulate_again(study.cells[0], replace(outcomes, **changed))


def test_metric_of_an_installed_package_is_in_every_summary(folder, capsys, monkeypatch):
    """A study and a comparison can also request it by name."""
    monkeypatch.syspath_prepend(folder)
    point = EntryPoint(name="held", value="own:Held", group="poolwise.metrics")
    monkeypatch.setattr(
        registry, "entry_points", lambda *, group, name="held": [point] if (group, name) == ("poolwise.metrics", "held") else []
    )
    content = json.loads(simulate(capsys, "--order", "fcfs", "--json", "--schedule", "a.csv"))
    assert content["held_node_s"] == HELD
    named = STUDY.replace("own.py:Held", "held")
    (folder / "study.toml").write_text(named)
    code, out, _ = call(capsys, "run", "study.toml", "--out", "out", "--jobs", 1, "--json")
    assert code == 0 and [cell["held_node_s"] for cell in json.loads(out)["cells"]] == [HELD] * 2
    code, out, _ = call(capsys, "compare", "a.csv", "a.csv", "--metric", "held", "--json")
    assert code == 0 and [run["held_node_s"] for run in json.loads(out)["runs"]] == [HELD] * 2


def test_metric_that_applies_to_no_run_is_rejected(folder, capsys):
    (folder / "study.toml").write_text(STUDY.replace('"own.py:Held"', '"units"'))
    code, _, err = call(capsys, "run", "study.toml", "--out", "out", "--jobs", 1)
    printed = " ".join(err.split())
    assert (
        code == 2 and "the metric 'units' does not apply to any run of this study" in printed and "measure.metrics" in printed
    )
