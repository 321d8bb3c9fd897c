import json
import sys

import pytest

from poolwise.cli import app as cli
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
    frame = pl.read_parquet(store.kept_file(key, "parquet")).filter(pl.col("status") == "finished")
    frame = frame.with_columns(wait=pl.col("start") - pl.col("submit")).sort("wait", "id")
    return frame["id"][-1], frame["wait"][-1]


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_tells_the_recorded_wait_as_episodes(ran, longest, capsys):
    job, wait = longest
    code, out, err = call(capsys, "explain", ran, job, "--cell", "order=fm", "--json")
    said = json.loads(out)
    assert (code, err, said["job"], said["status"], said["wait_ns"]) == (0, "", job, "started", wait)
    assert wait > 0 and sum(episode["to_ns"] - episode["from_ns"] for episode in said["episodes"]) == wait
    assert sum(episode["passes"] for episode in said["episodes"]) == said["passes"]
    for episode in said["episodes"]:
        assert episode["resource"] is None or episode["needed"] > episode["free"][1]


def test_the_table_says_what_was_short_and_where_the_job_started(ran, longest, capsys):
    code, out, _ = call(capsys, "explain", ran, longest[0], "--cell", "scheduler.order=fm", "--cell", "seed=0")
    assert code == 0
    for word in (f"job {longest[0]}", "held back by", "needed", "free", "short of", "started after", "thin"):
        assert word in out


def test_a_key_chooses_a_cell_as_well(ran, longest, capsys):
    _, by_value, _ = call(capsys, "explain", ran, longest[0], "--cell", "order=fm", "--json")
    _, _, err = call(capsys, "explain", ran, longest[0])
    key = next(line.split()[0] for line in err.splitlines() if "order=fm" in line)
    code, by_key, _ = call(capsys, "explain", ran, longest[0], "--cell", key, "--json")
    assert code == 0 and by_key == by_value


def test_errors_name_the_cells_the_nearest_jobs_and_what_to_give(ran, tmp_path, capsys):
    code, out, err = call(capsys, "explain", ran, 1)
    assert (code, out) == (2, "") and "hold 2 cells" in err and "order=fcfs" in err
    code, _, err = call(capsys, "explain", ran, 1, "--cell", "order=sjf")
    assert code == 2 and "no cells fit order=sjf" in err and "order=fm" in err
    code, _, err = call(capsys, "explain", ran, 10**9, "--cell", "order=fm")
    assert code == 2 and "nearest: " in err
    code, _, err = call(capsys, "explain", tmp_path, 1)
    assert code == 2 and "not the results of a study" in err
    code, _, err = call(capsys, "explain", ran, 1, "--order", "fm")
    assert code == 2 and "--cell" in err
    code, _, err = call(capsys, "explain", tmp_path / "log.swf", 1)
    assert code == 2 and "--order" in err
    code, _, err = call(capsys, "explain", tmp_path / "log.swf", 1, "--cell", "order=fm")
    assert code == 2 and "is not a folder of results" in err


def test_results_say_how_they_came_about_or_that_they_do_not(ran, longest, capsys):
    file = ran / "provenance.json"
    kept = file.read_text()
    try:
        file.write_text(json.dumps({**json.loads(kept), "command": ["something else"]}))
        words = ("--cell", "order=fm", "--json")
        code, told, _ = call(capsys, "explain", ran, longest[0], *words)
        assert code == 0, "no command is read"
        file.write_text(json.dumps({name: value for name, value in json.loads(kept).items() if name != "runs"}))
        code, _, err = call(capsys, "explain", ran, longest[0], *words)
        assert code == 2 and "do not describe their run" in err and "run it again" in err
        code, _, err = call(capsys, "explain", ran, longest[0], *words, "--study", "cerit-pools")
        assert code == 2 and "--cell" in err, "with other settings it has other cells"
        assert call(capsys, "explain", ran, longest[0], *words, "--study", "cerit-pools", *SETTINGS)[:2] == (0, told)
        file.write_text(json.dumps({**json.loads(kept), "sources_sha256": "of another version"}))
        code, _, err = call(capsys, "explain", ran, longest[0], "--cell", "order=fm")
        assert code == 2 and "another version" in err
    finally:
        file.write_text(kept)


def test_results_that_do_not_come_out_again_are_an_error(ran, longest, capsys, monkeypatch):
    from poolwise import api
    from poolwise.studies import description

    monkeypatch.setattr(description, "scheduler_of", lambda section, warm_up: api.list_scheduler("sjf", "none"))
    code, _, err = call(capsys, "explain", ran, longest[0], "--cell", "order=fm")
    assert code == 2 and "does not come out as recorded" in err


def test_a_trace_is_explained_without_a_study(tmp_path, capsys, monkeypatch):
    from poolwise.cli import console

    monkeypatch.setattr(console.out, "width", 200)
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    rows += [f"{k},{k},{n},{length * 10**9},0" for k, (n, length) in enumerate(((3, 10), (4, 5), (1, 20)), 1)]
    (tmp_path / "jobs.csv").write_text("\n".join(rows) + "\n")
    words = ("explain", tmp_path / "jobs.csv", 3, "--processors", 4, "--order", "fcfs")
    code, out, _ = call(capsys, *words)
    assert code == 0 and "job 2, reserved after" in out and "kept off a reservation" in out
    code, out, _ = call(capsys, *words, "--backfill", "none", "--json")
    assert code == 0 and json.loads(out)["episodes"][0]["rule"] == "order"


def test_a_long_story_is_cut_and_says_so(capsys, monkeypatch, ran, longest):
    from poolwise.cli import explain

    monkeypatch.setattr(explain, "LINES", 0)
    words = ("explain", ran, longest[0], "--cell", "order=fm")
    assert "more: --all shows them" in " ".join(call(capsys, *words)[1].split())
    assert "more: --all" not in " ".join(call(capsys, *words, "--all")[1].split())
