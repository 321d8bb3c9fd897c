import html
import json
import re
import shlex
import sys

import pytest

import poolwise
from poolwise.cli import app as cli
from poolwise.errors import InputError
from poolwise.runner import Store

SETTINGS = ["--set", "workload.jobs=300", "--set", "measure.warm_up=50", "--set", 'vary.scheduler.order=["fcfs", "fm"]']
SETTINGS += ["--set", 'vary.machine.pool.memory.memory=["192 GiB"]', "--set", "measure.baseline=false"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A folder with the results of a small study, and the id of the job that waited longest under FM."""
    out = tmp_path_factory.mktemp("run") / "out"
    words = ["run", "cerit-pools", "--out", str(out), "--jobs", "1", *SETTINGS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["poolwise", *words])
        assert cli.run(words) == 0
    return out


@pytest.fixture(scope="module")
def longest(ran):
    """(id, wait in ns) of the job that waited longest under FM."""
    import polars as pl

    store = Store(ran)
    facts = {key: json.loads(content) for key, ending, content in store.everything() if ending == "json"}
    (key,) = [key for key, fact in facts.items() if fact["inputs"]["scheduler"]["order"]["name"] == "fm"]
    frame = pl.read_parquet(store.read_file(key, "parquet")).filter(pl.col("status") == "finished")
    frame = frame.with_columns(wait=pl.col("start") - pl.col("submit")).sort("wait", "id")
    return frame["id"][-1], frame["wait"][-1]


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def without_provenance(text):
    return {**json.loads(text), "provenance": None}


def test_json_episodes_add_up_to_the_recorded_wait(ran, longest, capsys):
    job, wait = longest
    code, out, err = call(capsys, "explain", "run", ran, job, "--cell", "order=fm", "--json")
    answer = json.loads(out)
    assert (code, err, answer["job"], answer["status"], answer["wait_ns"]) == (0, "", job, "started", wait)
    assert wait > 0 and sum(episode["to_ns"] - episode["from_ns"] for episode in answer["episodes"]) == wait
    assert sum(episode["passes"] for episode in answer["episodes"]) == answer["passes"]
    for episode in answer["episodes"]:
        assert episode["resource"] is None or episode["needed"] > episode["free"][1]


def test_table_shows_the_short_resource_and_the_placement(ran, longest, capsys):
    code, out, _ = call(capsys, "explain", "run", ran, longest[0], "--cell", "scheduler.order=fm", "--cell", "seed=0")
    assert code == 0
    for word in (f"job {longest[0]}", "held back by", "needed", "free", "short of", "Started after", "thin"):
        assert word in out


def test_cell_is_selected_by_key(ran, longest, capsys):
    _, by_value, _ = call(capsys, "explain", "run", ran, longest[0], "--cell", "order=fm", "--json")
    _, _, err = call(capsys, "explain", "run", ran, longest[0])
    key = next(line.split()[0] for line in err.splitlines() if "order=fm" in line)
    code, by_key, _ = call(capsys, "explain", "run", ran, longest[0], "--cell", key, "--json")
    assert code == 0 and by_key == by_value


def test_errors_list_cells_nearest_jobs_and_remedies(ran, tmp_path, capsys):
    code, out, err = call(capsys, "explain", "run", ran, 1)
    assert (code, out) == (2, "") and "contain 2 cells" in err and "order=fcfs" in err
    code, _, err = call(capsys, "explain", "run", ran, 1, "--cell", "order=sjf")
    assert code == 2 and "no cells match order=sjf" in err and "order=fm" in err
    code, _, err = call(capsys, "explain", "run", ran, 10**9, "--cell", "order=fm")
    assert code == 2 and "nearest: " in err
    code, _, err = call(capsys, "explain", "run", tmp_path, 1)
    assert code == 2 and "not the results of a study" in err
    code, _, err = call(capsys, "explain", "run", ran, 1, "--order", "fm")
    assert code == 2 and "Did you mean `poolwise explain log`" in " ".join(err.split())
    code, _, err = call(capsys, "explain", "run", tmp_path / "log.swf", 1)
    assert code == 2 and "poolwise explain log" in err
    code, _, err = call(capsys, "explain", "run", tmp_path / "log.swf", 1, "--cell", "order=fm")
    assert code == 2 and "not a results folder" in err


def test_results_without_description_or_of_another_version_are_rejected(ran, longest, capsys):
    file = ran / "provenance.json"
    original = file.read_text()
    try:
        file.write_text(json.dumps({**json.loads(original), "command": ["something else"]}))
        words = ("--cell", "order=fm", "--json")
        code, explained, _ = call(capsys, "explain", "run", ran, longest[0], *words)
        assert code == 0, "the recorded command is not used"
        file.write_text(json.dumps({name: value for name, value in json.loads(original).items() if name != "runs"}))
        code, _, err = call(capsys, "explain", "run", ran, longest[0], *words)
        assert code == 2 and "does not describe a run" in err and "run the command again" in err
        code, _, err = call(capsys, "explain", "run", ran, longest[0], *words, "--study", "cerit-pools")
        assert code == 2 and "--cell" in err, "other settings give other cells"
        code, by_study, _ = call(capsys, "explain", "run", ran, longest[0], *words, "--study", "cerit-pools", *SETTINGS)
        assert code == 0 and without_provenance(by_study) == without_provenance(explained)
        file.write_text(json.dumps({**json.loads(original), "sources_sha256": "of another version"}))
        code, _, err = call(capsys, "explain", "run", ran, longest[0], "--cell", "order=fm")
        assert code == 2 and "another version" in err
    finally:
        file.write_text(original)


def test_results_that_differ_when_simulated_again_are_rejected(ran, longest, capsys, monkeypatch):
    from poolwise import simulation
    from poolwise.studies import description

    monkeypatch.setattr(description, "scheduler_of", lambda section, warm_up: simulation.list_scheduler("sjf", "none"))
    code, _, err = call(capsys, "explain", "run", ran, longest[0], "--cell", "order=fm")
    assert code == 2 and "differs from the recorded run" in err


def test_job_of_a_log_is_explained(tmp_path, capsys, monkeypatch):
    from poolwise.cli import console

    monkeypatch.setattr(console.out, "width", 200)
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    rows += [f"{k},{k},{n},{length * 10**9},0" for k, (n, length) in enumerate(((3, 10), (4, 5), (1, 20)), 1)]
    (tmp_path / "jobs.csv").write_text("\n".join(rows) + "\n")
    words = ("explain", "log", tmp_path / "jobs.csv", 3, "--processors", 4, "--order", "fcfs")
    code, out, _ = call(capsys, *words)
    assert code == 0 and "job 2, reserved after" in out and "blocked by a reservation" in out
    code, out, _ = call(capsys, *words, "--backfill", "none", "--json")
    assert code == 0 and json.loads(out)["episodes"][0]["cause"] == "order"


def test_long_wait_is_abbreviated_without_all(capsys, monkeypatch, ran, longest):
    from poolwise.cli import output

    monkeypatch.setattr(output, "MOST", 0)
    words = ("explain", "run", ran, longest[0], "--cell", "order=fm")
    assert "1 more row: --all shows them" in " ".join(call(capsys, *words)[1].split())
    assert "more row" not in " ".join(call(capsys, *words, "--all")[1].split())


def test_command_that_a_report_prints_explains_the_longest_wait(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["run", str(folder / "study.toml"), "--out", "my results/a 'b'", "--jobs", "1"]) == 0
    page = html.unescape((tmp_path / "my results" / "a 'b'" / "report.html").read_text())
    (printed,) = re.findall(r"<figcaption>[^<]*run: poolwise (explain run [^<]* --report wait\.html)", page)
    code, out, _ = call(capsys, *shlex.split(printed))
    assert code == 0 and "Job " in out and (tmp_path / "wait.html").is_file()


def test_saved_runs_are_compared_and_drawn_as_simulated_ones(ran):
    reference = f"{ran}:order=fm"
    assert {figure.name for figure in poolwise.figures(reference)} == {"tail", "nodes_over_time", "queue_over_time", "gantt"}
    run = poolwise.simulate(poolwise.Workload.of(["0 s"], ["1 min"]), poolwise.Machine.flat(1), engine="reference")
    assert {d.interval.mean for d in poolwise.compare(run, run).differences if d.metric == "mean_wait_s"} == {0.0}
    assert len(poolwise.compare(reference, reference).runs) == 2
    with pytest.raises(InputError, match="matches 2 runs"):
        poolwise.figures(ran)
