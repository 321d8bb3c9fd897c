"""`poolwise place` and `poolwise profile fit`."""

import json

import pytest

from poolwise import catalog
from poolwise.cli.app import _discover, app, run
from poolwise.performance.profiles import read_profiles
from tests.helpers.batch_file import BATCH


@pytest.fixture(scope="module", autouse=True)
def commands():
    if not app.registered_commands:
        _discover()


def batch(tmp_path, remote="64 GiB", profile="kmeans", more=""):
    file = tmp_path / "batch.toml"
    file.write_text(BATCH.format(remote=remote, profile=profile) + more)
    return str(file)


@pytest.mark.parametrize("method", ["place", "irop", "opt", "heep", "cfm", "first-fit"])
def test_json_contains_the_result_of_the_checker(tmp_path, capsys, method):
    assert run(["place", batch(tmp_path), "--method", method, "--time-limit", "2s", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {w["name"] for w in content["workloads"]} == {"job0", "job1", "job2"}
    assert content["checker"]["objective"] == pytest.approx(content["objective"])
    assert all(w["local_mib"] + w["remote_mib"] == pytest.approx(6144) for w in content["workloads"])
    if method in ("place", "opt"):
        assert content["checker"]["valid"]
        assert content["bound"] <= content["objective"] + 1e-6
        assert content["bound_of"].startswith("DWLP")
        assert content["objective"] == pytest.approx(content["bound"] * (1 + content["gap"]))
    if method == "opt":
        assert content["gap"] == pytest.approx(0, abs=1e-4)
    if method == "irop":
        assert content["bound_of"].startswith("F-DWLP")


def test_unplaced_workloads_are_named_and_exit_with_3(tmp_path, capsys):
    more = '\n[[workload]]\nname = "wide"\ncores = 9\nfrequency = 1.0\nmemory = "1 GiB"\ntolerance = 0.2\nprofile = "hpcg"\n'
    assert run(["place", batch(tmp_path, more=more), "--time-limit", "50ms", "--json"]) == 3
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    assert content["dropped"] == ["wide"]
    assert len(content["workloads"]) == 3
    assert "(4c)" in captured.err
    assert run(["place", batch(tmp_path, remote="0 MiB"), "--time-limit", "50ms"]) == 3
    assert "left out: job2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("eta = 0.5", "eta = 1.5"), "line 2, field 'eta'"),
        (('profile = "kmeans"', 'profile = "kmean"'), "did you mean 'kmeans'"),
        (('profile = "kmeans"', 'profile = "cfm_quicksort"'), "line 21, field 'workload.job.profile'"),
        (("eta = 0.5", "etta = 0.5"), "did you mean 'eta'"),
        (('remote = "64 GiB"', 'remote = "64"'), "the unit is missing"),
    ],
)
def test_invalid_batch_is_reported_with_its_line(tmp_path, capsys, change, words):
    file = tmp_path / "batch.toml"
    file.write_text(BATCH.format(remote="64 GiB", profile="kmeans").replace(*change))
    assert run(["place", str(file)]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_shipped_batch_has_the_published_size_and_follows_the_seed(capsys):
    contents = []
    for seed in ("0", "0", "1"):
        assert run(["place", "batch-150x1200", "--method", "heep", "--seed", seed, "--json"]) == 0
        contents.append(json.loads(capsys.readouterr().out))
    assert len(contents[0]["workloads"]) == 150
    assert contents[0]["checker"]["valid"]
    assert contents[0]["objective"] == contents[1]["objective"] != contents[2]["objective"]
    assert catalog.find("batches", "batch-150x1200").is_file()


def test_profile_fit_writes_profiles_that_a_batch_can_use(tmp_path, capsys):
    runs = tmp_path / "runs.csv"
    runs.write_text("workload,remote,seconds\n" + "".join(f"mine,{r},{10 * (1 + r)}\n" for r in (0, 0.25, 0.5, 0.75)))
    out = tmp_path / "own.csv"
    assert run(["profile", "fit", str(runs), "--out", str(out), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["profiles"][0]["slowdown"][-1] == pytest.approx(0.75)
    assert content["profiles"][0]["mse_remote"]["max"] < 1e-12
    assert read_profiles(out)["mine"].is_convex
    assert {p.suffix for p in tmp_path.glob("own.*")} == {".csv", ".png", ".svg", ".pdf"}
    file = tmp_path / "batch.toml"
    text = BATCH.format(remote="64 GiB", profile="mine").replace("version = 1", 'version = 1\nprofiles = "own.csv"')
    file.write_text(text)
    assert run(["place", str(file), "--time-limit", "50ms"]) == 0
    assert "every constraint holds" in capsys.readouterr().out
